"""The version, which records carry too."""

__version__ = "0.1.0"
