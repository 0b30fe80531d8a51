"""Games in a browser: a replay in one HTML file, and the table that other pages draw too."""

from conquian_env.svg import sprite
from conquian_env.viewer.table import action_names, asset, picture

__all__ = ["action_names", "asset", "picture", "sprite"]
