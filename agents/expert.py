"""``expert``: rules without search, most of which count *ways* to a final table.

The *hope* in a position sums its ways (see ``ways``), each by the chance that its missing cards
come.

| rule | in | v `greedy` | v without |
| --- | --- | ---: | ---: |
| Win when a take wins. | `_takes`, `_turn` | | |
| Discard what costs least hope. | `_best_turn` | 0.153 | 0.146 |
| Count ways with two or three cards missing, too. | `MOST_MISSING` | 0.130 | 0.115 |
| Those with three, too. | `MOST_MISSING` | 0.032 | 0.031 |
| Decline what leaves less hope than passing. | `_takes` | 0.115 | 0.066 |
| Lay no more than must be: the rest can be laid later. | `_best_turn` | 0.063 | 0.085 |
| Do not discard what the other table absorbs. | `_feeding` | 0.046 | 0.022 |
| Nor pass it, if taking it costs little. | `_takes` | 0.004 | 0.001 |
| Prefer linked cards, as `greedy` does. | `_weigh_discards` | 0.036 | 0.032 |
| Insist, unless the other seat then wins. | `_insists` | 0 | 0.028 |

The numbers are what the score against `greedy` loses without the rule, and the score of all rules
against all but this one (20,000 mirrored deals of `classic`, each ±0.007 or less). The constants
were tuned on other deals; each of them half or twice as large scores less, by at most 0.01.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.heuristic import count_links, partner_table
from agents.ways import WORTH, WayDesk, chance_to_come, combos_by_size, find_ways, new_desk
from conquian_env import Views
from conquian_env.actions import DISCARD, FORCE, LAY, PASS, TAKE
from conquian_env.cards import NUM_CARDS, bit, count, lowest
from conquian_env.jit import jit
from conquian_env.melds import is_legal_table, reach, rulebook
from conquian_env.observation import LAYOUT

STOCK_LEFT, TURNED = LAYOUT["stock_left"].start, LAYOUT["source"].start
_, ONE_MISSING, TWO_MISSING, THREE_MISSING = WORTH  # of a way, but for the chance of its cards
LINK = 0.001  # what a link of a card (see ``heuristic``) is worth in hope
THREAT = 0.3  # what it costs to let the other table grow, divided by the cards that it misses
LETHAL = 10.0  # what it costs to let it win
EAGERNESS = 0.015  # how much hope a take may cost


class Sight(NamedTuple):
    """What a decision hangs on: card masks, and the chance that a certain unseen card comes."""

    hand: int
    table: int
    other_table: int
    unseen: int
    chance: float


class Desk(NamedTuple):
    """Where ways are found, the ``partner_table`` of the rule set, and room to work in."""

    search: WayDesk
    partners: NDArray[np.int64]
    costs: NDArray[np.float64]  # float64 [40], of discarding a card


@jit
def _find_ways(sight: Sight, book: np.void, desk: Desk) -> int:
    own = sight.hand | sight.table
    return find_ways(own, sight.table, sight.unseen, int(book["target"]), desk.search)


@jit
def _hope(desk: Desk, found: int, table: int, without: int, chance: float) -> float:
    """From 0 to 1, by the ways that hold ``table`` and nothing of ``without``."""
    total = 0.0
    for i in range(found):
        way, missing = desk.search.ways[i]
        if table & ~way or way & without:
            continue
        if missing == 1:
            total += ONE_MISSING * chance
        elif missing == 2:
            total += TWO_MISSING * chance * chance
        else:
            total += THREE_MISSING * chance * chance * chance
    return total / (1.0 + total)


@jit
def _feeding(card: int, other_table: int, book: np.void) -> float:
    """What it costs to offer a card that the other table alone absorbs."""
    if other_table == 0 or not is_legal_table(other_table | card, book):
        return 0.0
    left = int(book["target"]) - count(other_table)
    return LETHAL if left == 1 else THREAT / left


@jit
def _weigh_discards(sight: Sight, book: np.void, desk: Desk) -> None:
    """Feeding the other table costs, and so do links, which count where ways do not decide."""
    own, rest = sight.hand | sight.table, sight.hand
    while rest:
        card_id = lowest(rest)
        rest &= rest - 1
        desk.costs[card_id] = _feeding(bit(card_id), sight.other_table, book)
        desk.costs[card_id] += LINK * count_links(desk.partners[card_id], own, sight.unseen)


@jit
def _best_turn(lays: int, sight: Sight, book: np.void, desk: Desk) -> tuple[float, int, int]:
    """The value of a turn after taking, which of ``lays`` to lay, and the discard.

    Of equal turns the one that lays least, then the one with the lowest discard.
    """
    found = _find_ways(sight, book, desk)
    _weigh_discards(sight, book, desk)
    best, best_lay, best_discard, lay = -2 * LETHAL, 0, -1, 0
    while True:  # over every subset of lays
        table = sight.table | lay
        rest = sight.hand & ~lay if is_legal_table(table, book) else 0
        while rest:
            card_id = lowest(rest)
            rest &= rest - 1
            value = _hope(desk, found, table, bit(card_id), sight.chance) - desk.costs[card_id]
            if value > best or (value == best and count(lay) < count(best_lay)):
                best, best_lay, best_discard = value, lay, card_id
        lay = (lay - lays) & lays
        if lay == 0:
            return best, best_lay, best_discard


@jit
def _takes(face_up: int, turned: bool, sight: Sight, book: np.void, desk: Desk) -> bool:
    """Whether taking wins, or leaves about as much hope as passing."""
    hand, table, other_table, unseen, chance = sight
    window = hand | table | face_up
    if count(window) == int(book["target"]) and is_legal_table(window, book):
        return True
    lays = reach(table | face_up, window, book) & hand
    after = Sight(hand, table | face_up, other_table, unseen, chance)
    taking, _, _ = _best_turn(lays, after, book, desk)
    found = _find_ways(sight, book, desk)
    passing = _hope(desk, found, table, 0, chance)
    if turned:
        passing -= _feeding(face_up, other_table, book)
    return taking + EAGERNESS >= passing


@jit
def _turn(lays: int, sight: Sight, book: np.void, desk: Desk) -> int:
    """The next lay, or the discard: all of the hand if that wins, else by ``_best_turn``."""
    own = sight.hand | sight.table
    if lays:  # where ids must ascend, other cards may be laid after these
        above = sight.hand & -(lays & -lays)
        lays = reach(sight.table, sight.table | above, book) & above
    if lays == sight.hand and count(own) == int(book["target"]) and is_legal_table(own, book):
        return LAY + lowest(lays)
    _, lay, card_id = _best_turn(lays, sight, book, desk)
    return LAY + lowest(lay) if lay else DISCARD + card_id


@jit
def _insists(other_table: int, book: np.void) -> bool:
    """Always, for what a seat declined harms it, unless it then wins."""
    return count(other_table) + 1 < int(book["target"])


@jit
def _choose(
    mask: NDArray[np.bool_],
    face_up: int,
    turned: bool,
    sight: Sight,
    book: np.void,
    desk: Desk,
) -> int:
    lays = 0
    for card_id in range(NUM_CARDS):
        lays |= int(mask[LAY + card_id]) << card_id
    if mask[FORCE]:
        return FORCE if _insists(sight.other_table, book) else PASS
    if face_up == 0:
        return _turn(lays, sight, book, desk)
    if mask[TAKE]:
        return TAKE if not mask[PASS] or _takes(face_up, turned, sight, book, desk) else PASS
    return PASS if mask[PASS] else LAY + lowest(lays)  # a hand meld that another has begun


@jit
def _expert(
    mask: NDArray[np.bool_],
    observation: NDArray[np.uint8],
    cards: tuple[NDArray[np.int64], ...],
    books: NDArray[np.void],
    combos: NDArray[np.int64],
    partners: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> None:
    book = books[0]
    desk = Desk(new_desk(combos), partners, np.zeros(NUM_CARDS))
    for i in range(len(actions)):
        hand, table, other_table, dead, face_up = (
            cards[0][i], cards[1][i], cards[2][i], cards[3][i], cards[4][i],
        )  # fmt: skip
        unseen = int(book["pack"]) & ~(hand | table | other_table | dead | face_up)
        chance = chance_to_come(int(observation[i, STOCK_LEFT]), unseen)
        sight = Sight(hand, table, other_table, unseen, chance)
        turned = observation[i, TURNED] == 1
        actions[i] = _choose(mask[i], face_up, turned, sight, book, desk)


class Expert:
    """Takes, lays, discards, declines and insists by the rules of this module."""

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        actions = np.empty(len(views), np.int64)
        cards = (views.hand, views.table, views.other_table, views.dead, views.face_up)
        _expert(
            views.mask, views.observation, cards, rulebook(views.rules),
            combos_by_size(views.rules), partner_table(views.rules), actions,
        )  # fmt: skip
        return actions
