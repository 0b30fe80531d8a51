"""Every error the game raises, each one line that names the culprit."""


class ConquianError(Exception):
    """Root of all errors raised by this package."""


class CardError(ConquianError, ValueError):
    """A text that is no card, or a card where it cannot be."""


class RuleSetError(ConquianError, ValueError):
    """A combination of rule fields that cannot be played; the message names the field."""


class IllegalActionError(ConquianError, ValueError):
    """An action that is not legal now; the state is unchanged."""


class PositionError(ConquianError, ValueError):
    """A position or a saved game that breaks card conservation, sizes or the phase."""


class RecordError(ConquianError, ValueError):
    """Text that is no record, or a record that contradicts its own game."""


class SeedError(ConquianError, ValueError):
    """A seed or deal number outside its range."""


class OptionError(ConquianError, ValueError):
    """An argument or option outside the values it can have; the message names it."""


class RenderError(ConquianError, RuntimeError):
    """A picture that cannot be drawn: pygame is missing, or a display for its window."""


def shown(value: object) -> str:
    """A value as an error's one line names it: its repr without line breaks, cut."""
    return " ".join(repr(value).split())[:60]
