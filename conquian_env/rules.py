"""The rules as one frozen value (rules 1 to 5; section 6 names the fields)."""

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

from conquian_env.cards import NUM_RANKS, NUM_SUITS
from conquian_env.errors import RuleSetError

Force = Literal["optional", "off", "auto"]
ForceSource = Literal["any", "discard"]
FirstCard = Literal["turned", "dealt"]
Draw = Literal["end", "double"]
LayOrder = Literal["any", "ascending"]

_CHOICES = {
    "force": get_args(Force),
    "force_source": get_args(ForceSource),
    "first_card": get_args(FirstCard),
    "draw": get_args(Draw),
    "lay_order": get_args(LayOrder),
}
MAX_DEALS, MOST_DEALS = 4, 7  # by default; at most, for a stake of 64
_FLAGS = ("seven_jack_adjacent", "hand_melds", "exchange")


@dataclass(frozen=True, slots=True)
class RuleSet:
    """What is played: every field has the value of ``classic`` by default.

    Attributes:
        seven_jack_adjacent: the 7 is next to the jack, so ``6H 7H JH`` is a run (rule 1.3).
        deal: cards dealt to each seat; a table of ``deal + 1`` cards wins (rule 2.2).
        first_card: ``turned``, seat 0 turns the first stock card; ``dealt``, it lies face up after
            the deal: who starts decides on it without hand melds, and turns next if both refuse it.
        force: ``optional``, the other player may insist on a card that the decliner's table alone
            could absorb (rule 4.1); ``off``, nobody may; ``auto``, such a card must be taken.
        force_source: ``any`` face-up card can be forced, or only one that came as a ``discard``.
        hand_melds: who has turned a card may first lay hand cards without taking it.
        exchange: before the first card each seat gives the other a card, unseen until both chose.
        draw: ``end``, a drawn deal ends the game; ``double``, the cards are dealt again, the other
            seat starts and the stake doubles.
        max_deals: with ``double`` the deals of a game, 2 to 7; it ends when the last is drawn.
        lay_order: ``ascending``, cards laid one after the other come in the order of their ids.
            Every table can still be laid; the game tree is many times smaller, for exact work.
        suits, ranks: the pack is the first so many suits and ranks.
        stock: cards in the stock, None for all that are left; others are removed unseen.

    Raises:
        RuleSetError: a field has an unknown value, or the fields cannot be played together.
    """

    seven_jack_adjacent: bool = True
    deal: int = 10
    first_card: FirstCard = "turned"
    force: Force = "optional"
    force_source: ForceSource = "any"
    hand_melds: bool = False
    exchange: bool = False
    draw: Draw = "end"
    max_deals: int = MAX_DEALS
    lay_order: LayOrder = "any"
    suits: int = NUM_SUITS
    ranks: int = NUM_RANKS
    stock: int | None = None

    def __post_init__(self) -> None:
        for name in _FLAGS:
            if type(getattr(self, name)) is not bool:
                raise RuleSetError(f"{name} must be true or false, not {getattr(self, name)!r}")
        for name, allowed in _CHOICES.items():
            if not isinstance(getattr(self, name), str) or getattr(self, name) not in allowed:
                raise RuleSetError(
                    f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )
        self._check_sizes()
        self._check_max_deals()

    def _check_sizes(self) -> None:
        for name in ("suits", "ranks", "deal"):
            if type(getattr(self, name)) is not int:
                raise RuleSetError(f"{name} must be a whole number, not {getattr(self, name)!r}")
        for name, most in (("suits", NUM_SUITS), ("ranks", NUM_RANKS)):
            if not 1 <= getattr(self, name) <= most:
                raise RuleSetError(f"{name}={getattr(self, name)} is outside 1 to {most}")
        if self.deal < 2:
            raise RuleSetError(
                f"deal={self.deal}: a combination has three cards, so deal two or more"
            )
        left = self.pack_size - 2 * self.deal
        if left < 1:
            raise RuleSetError(
                f"deal={self.deal}: two hands of {self.deal} leave no stock in "
                f"{self.pack_size} cards"
            )
        if self.target not in self._table_sizes():
            raise RuleSetError(
                f"deal={self.deal}: no table has the {self.target} cards needed to win"
            )
        if self.stock is not None and (type(self.stock) is not int or not 1 <= self.stock <= left):
            raise RuleSetError(f"stock must be from 1 to the {left} left, not {self.stock!r}")

    def _check_max_deals(self) -> None:
        if type(self.max_deals) is not int or not 2 <= self.max_deals <= MOST_DEALS:
            raise RuleSetError(
                f"max_deals must be a whole number from 2 to {MOST_DEALS}, not {self.max_deals!r}"
            )
        if self.draw == "end" and self.max_deals != MAX_DEALS:
            raise RuleSetError(f"max_deals={self.max_deals} has no meaning without draw='double'")

    def _table_sizes(self) -> set[int]:
        """Sizes a table can have: of runs alone or of sets alone; mixing adds no other size."""
        lines = [self.ranks] if self.seven_jack_adjacent else [min(self.ranks, 7), self.ranks - 7]
        runs = _sums([{0, *range(3, line + 1)} for line in lines] * self.suits)
        return runs | _sums([{0, *range(3, self.suits + 1)}] * self.ranks)

    @property
    def pack_size(self) -> int:
        """Cards in the pack."""
        return self.suits * self.ranks

    @property
    def target(self) -> int:
        """Cards on a table that win (rule 2.2)."""
        return self.deal + 1

    @property
    def stock_size(self) -> int:
        """Cards left after the deal, before the first is turned (rule 2.1)."""
        return self.pack_size - 2 * self.deal if self.stock is None else self.stock

    @property
    def deals_a_game(self) -> int:
        """How many deals a game has at most."""
        return self.max_deals if self.draw == "double" else 1

    @property
    def highest_stake(self) -> int:
        """What a game can be played for at most."""
        return 1 << (self.deals_a_game - 1)

    @property
    def max_offers(self) -> int:
        """How often a card is put to a seat in a deal: a stock card twice, a discard once at most.

        A seat's first combination takes two hand cards at least; the others may be discarded.
        """
        return 2 * self.stock_size + 2 * (self.deal - 2)

    @property
    def max_plies(self) -> int:
        """Actions of a game at most.

        Each offer is answered and may be insisted on; each hand card is laid or discarded once; a
        card may be given.
        """
        return self.deals_a_game * (2 * self.max_offers + 2 * self.deal + 2 * self.exchange)

    @classmethod
    def preset(cls, name: str) -> Self:
        """A rule set by name, one of ``PRESETS``."""
        if not isinstance(name, str) or name not in PRESETS:
            raise RuleSetError(
                f"unknown preset {name!r:.60}: give a RuleSet or one of {', '.join(PRESETS)}"
            )
        return cls(**PRESETS[name])

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON and TOML."""
        return asdict(self)

    def to_text(self) -> str:
        """The name of a preset, or ``classic`` and what differs: ``classic,deal=8,force=off``."""
        for preset in PRESETS:
            if RuleSet.preset(preset) == self:
                return preset
        default = RuleSet()
        changed = [
            f"{name}={value}".lower()
            for name, value in self.to_dict().items()
            if value != getattr(default, name)
        ]
        return ",".join(["classic", *changed])

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The inverse of ``to_text``: any preset's name, and fields to change in it."""
        if not isinstance(text, str):
            raise RuleSetError(f"rules must be a RuleSet or a text, not {text!r:.60}")
        preset, *words = text.split(",")
        changed = dict(word.partition("=")[::2] for word in words)
        if len(changed) < len(words):
            raise RuleSetError(f"rules {text!r:.60}: a field is given twice")
        plain = {name: _plain(value) for name, value in changed.items()}
        return cls.from_dict(cls.preset(preset).to_dict() | plain)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The inverse of ``to_dict``; an unknown field is refused by name."""
        if not isinstance(values, dict):
            raise RuleSetError(f"rules must be a table of fields, not {values!r}")
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise RuleSetError(f"unknown rule field {name!r:.60}")
        return cls(**values)


def _plain(word: str) -> bool | int | str | None:
    """The value that a word of ``to_text`` stands for; True, False and None as in Python too."""
    names: dict[str, bool | None] = {"true": True, "false": False, "none": None}
    if word.lower() in names:
        return names[word.lower()]
    return int(word) if re.fullmatch("-?[0-9]{1,3}", word) else word


def _sums(choices: list[set[int]]) -> set[int]:
    """What one number from each set can add up to."""
    sums = {0}
    for choice in choices:
        sums = {one + other for one in sums for other in choice}
    return sums


_SMALL = {"suits": 4, "ranks": 3, "deal": 5, "lay_order": "ascending"}
PRESETS: dict[str, dict[str, Any]] = {
    "classic": {},
    "classic-1.1": {"seven_jack_adjacent": False},
    "bicycle": {"hand_melds": True, "force_source": "discard"},
    "mexican": {"deal": 8, "exchange": True, "hand_melds": True},
    "nine": {"deal": 9},
    # Small decks, for exact work: chosen by the size of their trees, see RULES.md.
    "nano": _SMALL | {"stock": 1},
    "micro": _SMALL,
    "mini": _SMALL | {"stock": 1, "exchange": True, "hand_melds": True},
}


def rule_set(rules: RuleSet | str) -> RuleSet:
    """``rules`` itself, or what a text such as ``classic`` or ``classic,deal=8`` names."""
    if isinstance(rules, RuleSet):
        return rules
    return RuleSet.from_text(rules)
