"""What the turns of a seat leave: cards laid until the table is legal, and one discarded.

The *hope* in a position sums its ways (see ``ways``), each by what it is worth. A turn leaves the
ways that hold the table and not the discard.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conquian_env import RuleSet
from conquian_env.actions import DISCARD, LAY
from conquian_env.cards import NUM_CARDS, bit, count, lowest
from conquian_env.jit import jit
from conquian_env.melds import is_legal_table, reach, rulebook
from conquian_env.observation import LAYOUT, cards_at

LAID, LEFT = 0, 1
OWN_HAND, OWN_TABLE = LAYOUT["own_hand"].start, LAYOUT["own_table"].start
MOST_LEAST = 64  # sets of lays that larger ones are compared with


class Plan(NamedTuple):
    """What is known of turns, by card.

    Attributes:
        hopes: int64 [2, 40], left by the best turn that lays, or discards, the card.
        spared: int64 [40], room to work in.
    """

    hopes: NDArray[np.int64]
    spared: NDArray[np.int64]


@jit
def new_plan() -> Plan:
    """A plan of nothing; each thread needs its own."""
    return Plan(np.zeros((2, NUM_CARDS), np.int64), np.zeros(NUM_CARDS, np.int64))


@jit
def plan_turns(
    ways: NDArray[np.int64],
    worth: NDArray[np.int64],
    hand: int,
    table: int,
    book: np.void,
    plan: Plan,
) -> None:
    """Fill ``plan.hopes``, from all turns that discard."""
    plan.hopes[:] = 0
    lays, laid = reach(table, table | hand, book) & hand, 0
    while True:  # over every subset of lays
        after, rest = table | laid, hand & ~laid
        if rest and is_legal_table(after, book):
            _weigh_discards(ways, worth, rest, after, plan.spared)
            _keep(laid, rest, plan)
        laid = (laid - lays) & lays
        if laid == 0:
            break


@jit
def _weigh_discards(
    ways: NDArray[np.int64],
    worth: NDArray[np.int64],
    rest: int,
    table: int,
    spared: NDArray[np.int64],
) -> None:
    """Fill ``spared`` with the hope that is left when a card of ``rest`` is discarded."""
    spared[:] = 0
    for k in range(len(ways)):
        way = ways[k, 0]
        spare = rest & ~way if table & ~way == 0 else 0
        while spare:
            spared[lowest(spare)] += worth[ways[k, 1]]
            spare &= spare - 1


@jit
def _keep(laid: int, rest: int, plan: Plan) -> None:
    """Note the turns that lay these cards and discard one of the rest."""
    best = 0
    while rest:
        card_id = lowest(rest)
        rest &= rest - 1
        best = max(best, plan.spared[card_id])
        plan.hopes[LEFT, card_id] = max(plan.hopes[LEFT, card_id], plan.spared[card_id])
    while laid:
        card_id = lowest(laid)
        laid &= laid - 1
        plan.hopes[LAID, card_id] = max(plan.hopes[LAID, card_id], best)


@jit
def _holds_any(laid: int, least: NDArray[np.int64]) -> bool:
    """Whether a set of cards holds one of others."""
    for k in range(len(least)):  # noqa: SIM110  # numba has no generators
        if least[k] & ~laid == 0:
            return True
    return False


@jit
def _urgent_lays(hand: int, table: int, book: np.void, least: NDArray[np.int64]) -> int:
    """The cards of the least sets that make ``table`` legal, and of those that win."""
    lays, laid, found, cards = reach(table, table | hand, book) & hand, 0, 0, 0
    while True:  # over every subset of lays, and none before what it holds
        after = table | laid
        wins = count(after) == int(book["target"])
        if (wins or not _holds_any(laid, least[:found])) and is_legal_table(after, book):
            cards |= laid
            if found < len(least):
                least[found] = laid
                found += 1
        laid = (laid - lays) & lays
        if laid == 0:
            return cards


@jit
def _narrow(
    observation: NDArray[np.uint8], mask: NDArray[np.bool_], books: NDArray[np.void]
) -> None:
    least = np.zeros(MOST_LEAST, np.int64)
    for i in range(len(mask)):
        if mask[i, LAY:DISCARD].any():
            hand, table = cards_at(observation[i], OWN_HAND), cards_at(observation[i], OWN_TABLE)
            urgent = _urgent_lays(hand, table, books[0], least)
            for card_id in range(NUM_CARDS):
                mask[i, LAY + card_id] &= urgent & bit(card_id) != 0


def narrow(
    observation: NDArray[np.uint8], mask: NDArray[np.bool_], rules: RuleSet
) -> NDArray[np.bool_]:
    """Legal actions without lays that can wait: bool [n, 83] from uint8 [n, 416] and bool [n, 83].

    What is left are the cards of least sets that make the own table legal, and of sets that win.
    Any other card can be laid in a later turn as well: until then it tells the other seat nothing,
    and cannot be insisted on. Where cards are laid in the order of their ids, nothing is left out.
    """
    narrowed = mask.copy()
    if rules.lay_order == "any":
        _narrow(observation, narrowed, rulebook(rules))
    return narrowed
