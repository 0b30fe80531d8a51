"""The rules as one frozen value (rules 1 to 5; section 6 names the fields)."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from conquian_env.cards import NUM_CARDS
from conquian_env.errors import RuleSetError

Force = Literal["optional", "off", "auto"]
ForceSource = Literal["any", "discard"]

_CHOICES = {"force": get_args(Force), "force_source": get_args(ForceSource)}


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What is played: every field has the value of ``classic`` by default.

    Attributes:
        seven_jack_adjacent: the 7 is next to the jack, so ``6H 7H JH`` is a run (rule 1.3).
        deal: cards dealt to each seat; a table of ``deal + 1`` cards wins (rule 2.2).
        force: ``optional``, the other player may insist on a card that the decliner's table alone
            could absorb (rule 4.1); ``off``, nobody may; ``auto``, such a card must be taken.
        force_source: ``any`` face-up card can be forced, or only one that came as a ``discard``.

    Raises:
        RuleSetError: a field has an unknown value, or the fields cannot be played together.
    """

    seven_jack_adjacent: bool = True
    deal: int = 10
    force: Force = "optional"
    force_source: ForceSource = "any"

    def __post_init__(self) -> None:
        if type(self.seven_jack_adjacent) is not bool:
            raise RuleSetError(
                f"seven_jack_adjacent must be true or false, not {self.seven_jack_adjacent!r}"
            )
        if type(self.deal) is not int:
            raise RuleSetError(f"deal must be a whole number, not {self.deal!r}")
        if self.deal < 2:
            raise RuleSetError(
                f"deal={self.deal}: no table has the {self.target} cards needed to win, "
                "a combination has at least three"
            )
        if self.stock_size < 1:
            raise RuleSetError(
                f"deal={self.deal}: two hands of {self.deal} leave no stock in {NUM_CARDS} cards"
            )
        for name, allowed in _CHOICES.items():
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in allowed:
                raise RuleSetError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )

    @property
    def target(self) -> int:
        """Cards on a table that win (rule 2.2)."""
        return self.deal + 1

    @property
    def stock_size(self) -> int:
        """Cards left after the deal, before the first is turned (rule 2.1)."""
        return NUM_CARDS - 2 * self.deal

    @classmethod
    def preset(cls, name: str) -> Self:
        """A rule set by name, one of ``PRESETS``."""
        if not isinstance(name, str) or name not in PRESETS:
            raise RuleSetError(
                f"unknown preset {name!r}: give a RuleSet or one of {', '.join(PRESETS)}"
            )
        return cls(**PRESETS[name])

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON and TOML."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of ``to_dict``; an unknown field is refused by name."""
        if not isinstance(values, dict):
            raise RuleSetError(f"rules must be a table of fields, not {values!r}")
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise RuleSetError(f"unknown rule field {name!r}")
        return cls(**values)


PRESETS: dict[str, dict[str, Any]] = {
    "classic": {},
    "classic-1.1": {"seven_jack_adjacent": False},
}


def rule_set(rules: RuleSet | str) -> RuleSet:
    """``rules`` itself, or the preset of that name."""
    if isinstance(rules, RuleSet):
        return rules
    return RuleSet.preset(rules)
