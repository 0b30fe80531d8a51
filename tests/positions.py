"""Rule sets and positions that several tests use."""

from typing import Any

from conquian_env import Game, RuleSet
from conquian_env.actions import (
    PASS,
    TAKE,
)

PRESETS = ("classic", "classic-1.1")
RULES = (
    RuleSet(),
    RuleSet(seven_jack_adjacent=False),
    RuleSet(force="off"),
    RuleSet(force="auto"),
    RuleSet(force_source="discard"),
    RuleSet(deal=4),
)
VARIANTS = (
    *RULES,
    RuleSet.preset("bicycle"),
    RuleSet.preset("mexican"),
    RuleSet(draw="double", exchange=True, max_deals=2),
    RuleSet(lay_order="ascending"),
)
HAND_0 = "4S 5S 2H 2D 2C KD QC JD 7C AH"
HAND_1 = "AC AD AS 3C 3D 4H 5D 6H 7H JS"


def position(**changes: Any) -> Game:
    """Seat 0 has turned 6S with 4S 5S in hand; `changes` make another position of it."""
    values: dict[str, Any] = {"hands": (HAND_0, HAND_1), "face_up": "6S", "stock": "KC KH"}
    rules = changes.pop("rules", "classic")
    return Game.from_position(rules, **values | changes)


def offered(**changes: Any) -> Game:
    """Seat 1, with a table that could absorb 6S, is offered it by seat 0."""
    values: dict[str, Any] = {
        "hands": ("4H 5H 2H 2D 2C KD QC JD 7C AH", "AC AD AS 3C 3D 4D"),
        "tables": ("", "2S 3S 4S 5S"),
        "actor": 1,
        "phase": "offered",
    }
    return position(**values | changes)


def force(**changes: Any) -> Game:
    """Seat 0 may insist that seat 1 takes 6S."""
    return offered(**{"actor": 0, "phase": "force"} | changes)


def meld(**changes: Any) -> Game:
    """Seat 1 has taken 6S and has 4S 5S to lay."""
    values: dict[str, Any] = {
        "hands": (HAND_1, HAND_0),
        "tables": ("", "6S"),
        "face_up": None,
        "actor": 1,
        "phase": "meld",
    }
    return position(**values | changes)


def won() -> Game:
    """Seat 1 has ten down and takes the eleventh."""
    game = position(
        hands=(HAND_0, ""),
        tables=("", "3H 4H 5H 6H QS QD QH AD AC AS"),
        face_up="7H",
        stock="",
        phase="offered",
        actor=1,
    )
    game.apply(TAKE)
    return game


def drawn() -> Game:
    """The last card is declined."""
    game = position(stock="", phase="offered", source="passed")
    game.apply(PASS)
    return game
