"""The 83 actions and the public events, by id and by name.

0 ``pass`` (pass, decline, do not insist) · 1 ``take`` · 2 ``force`` · 3 + c ``lay`` card c from
hand · 43 + c ``discard`` card c. An event is one byte: bit 7 the seat, the rest an action id or
83 + c, the turning of card c, or 123, a card given unseen. In phase ``give`` action 43 + c gives
card c.
"""

import operator
from typing import Any

from conquian_env.cards import NUM_CARDS, card, card_ids, card_name
from conquian_env.errors import IllegalActionError, shown

PASS, TAKE, FORCE = 0, 1, 2
LAY = 3
DISCARD = LAY + NUM_CARDS
NUM_ACTIONS = DISCARD + NUM_CARDS
TURN = NUM_ACTIONS
GAVE = TURN + NUM_CARDS
SEAT_BIT = 7
SEAT_FLAG, CODE_MASK = 1 << SEAT_BIT, (1 << SEAT_BIT) - 1

_ANSWERS = ("pass", "take", "force")


def action_ids(answers: int, lays: int, discards: int) -> list[int]:
    """The sorted ids in the three masks of ``engine.legal``."""
    actions = [action for action in (PASS, TAKE, FORCE) if answers >> action & 1]
    actions += [LAY + card_id for card_id in card_ids(lays)]
    return actions + [DISCARD + card_id for card_id in card_ids(discards)]


def action_id(action: Any) -> int:
    """A whole number of any integer type as an int; it need not be an action.

    Raises:
        IllegalActionError: it is no whole number; a truth value is none.
    """
    try:
        if not isinstance(action, bool):
            return operator.index(action)
    except TypeError:
        pass
    raise IllegalActionError(f"unknown action {shown(action)}: ids run from 0 to {NUM_ACTIONS - 1}")


def action_name(action: int) -> str:
    """The name of an action id, as in ``"discard 7D"`` for 59."""
    if 0 <= action < LAY:
        return _ANSWERS[action]
    if LAY <= action < DISCARD:
        return f"lay {card_name(action - LAY)}"
    if DISCARD <= action < NUM_ACTIONS:
        return f"discard {card_name(action - DISCARD)}"
    raise IllegalActionError(f"unknown action {action}: ids run from 0 to {NUM_ACTIONS - 1}")


def parse_action(text: str) -> int:
    """The id of an action name; the inverse of ``action_name``."""
    match text.split() if isinstance(text, str) else text:
        case [("pass" | "take" | "force") as answer]:
            return _ANSWERS.index(answer)
        case ["lay", name]:
            return LAY + card(name)
        case ["discard", name]:
            return DISCARD + card(name)
    raise IllegalActionError(
        f"unknown action {text!r}: say pass, take, force, lay CARD or discard CARD"
    )


def event_text(event: int) -> str:
    """An event in words, as in ``"seat 1 discard 7D"``."""
    seat, code = event >> SEAT_BIT, event & CODE_MASK
    if code == GAVE:
        return f"seat {seat} give"
    what = f"turn {card_name(code - TURN)}" if code >= TURN else action_name(code)
    return f"seat {seat} {what}"
