"""What a network is given: the observation by suits, and the ways to a final table by card.

Each suit is a row: the card pieces of the observation, then, where ``ways`` is asked for,

| piece | of each card |
| --- | --- |
| now 0, 1, 2, 3 | ways with so many cards missing that hold it |
| taking 0, 1, 2, 3 | the same after the face-up card was taken, 0 where it may not be |
| left 0, 1, 2, 3 | if it is in the hand, the ways now that a discard of it would leave |
| laid 0, 1, 2, 3 | the same, those that hold it and are left by the best discard after laying it |
| links | its live combinations of three, as ``greedy`` counts them |
| absorbed | whether the other table could take it in alone |

ten numbers each, one a rank. What belongs to no card comes last: the other numbers of the
observation, and how many ways there are, now, taking, and left by the best discard of this turn or
of the one that taking begins. The best discard leaves most ways, each weighed by the chance that
its missing cards come. Ways and links are many or none, so they are given as logarithms. A symmetry
of the rules moves the rows or the ranks in them and changes nothing else.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.heuristic import count_links, partner_table
from agents.ways import MOST_MISSING, WayDesk, chance_to_come, combos_by_size, find_ways, new_desk
from conquian_env import RuleSet
from conquian_env.actions import TAKE
from conquian_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, bit, lowest
from conquian_env.jit import jit
from conquian_env.melds import is_legal_table, rulebook
from conquian_env.observation import CARD_PIECES, CARDS_END, LAYOUT, OBSERVATION_SIZE

NUM_NUMBERS = OBSERVATION_SIZE - CARDS_END
WAY_KINDS = MOST_MISSING + 1
NOW, TAKING, LEFT, LAID, LINKS = range(0, 5 * WAY_KINDS, WAY_KINDS)
ABSORBED = LINKS + 1
WAY_PIECES = LINKS + 2
BEST = 2 * WAY_KINDS  # after the ways now and taking
WAY_NUMBERS = 3 * WAY_KINDS
ALL = NUM_CARDS  # a row for all ways, after those for the ways that hold each card
LOG_STEPS = 16.0  # steps to a doubling
MOST_COUNTED = 4096
LOGS = np.round(LOG_STEPS * np.log2(1 + np.arange(MOST_COUNTED))).astype(np.uint8)
STOCK_LEFT = LAYOUT["stock_left"].start
# Chances are multiplied by this, so that different ways do not add up to the same: of two discards
# with equal hopes the lower is taken, and that must not tell one suit from another.
UNEVEN = 0.999
OWN_HAND, OWN_TABLE, OTHER_TABLE, FACE_UP, UNSEEN = (
    LAYOUT[name].start for name in ("own_hand", "own_table", "other_table", "face_up", "unseen")
)


def number_size(ways: bool) -> int:
    """Numbers that belong to no card."""
    return NUM_NUMBERS + (WAY_NUMBERS if ways else 0)


def row_size(ways: bool) -> int:
    """Numbers in the row of a suit."""
    return NUM_RANKS * (CARD_PIECES + (WAY_PIECES if ways else 0))


def input_size(ways: bool) -> int:
    """Numbers in all: four rows, and what belongs to no card."""
    return NUM_SUITS * row_size(ways) + number_size(ways)


class _Tools(NamedTuple):
    """What ways and links are counted with."""

    desk: WayDesk
    partners: NDArray[np.int64]
    counts: NDArray[np.int64]  # int64 [WAY_PIECES, 40]
    totals: NDArray[np.int64]  # int64 [12], of all ways
    hopes: NDArray[np.float64]  # float64 [41, 40], of the ways that hold a card, by discard
    best: NDArray[np.int64]  # int64 [41], the discard with the most, as a mask


@jit
def _mask(observation: NDArray[np.uint8], start: int) -> int:
    mask = 0
    for card_id in range(NUM_CARDS):
        if observation[start + card_id]:
            mask |= bit(card_id)
    return mask


@jit
def _count_ways(kind: int, own: int, table: int, unseen: int, target: int, tools: _Tools) -> int:
    """Add the ways, by the cards they hold, to the pieces from ``kind`` on; how many there are."""
    found = find_ways(own, table, unseen, target, tools.desk)
    for k in range(found):
        way, missing = tools.desk.ways[k]
        tools.totals[kind + missing] += 1
        while way:
            tools.counts[kind + missing, lowest(way)] += 1
            way &= way - 1
    return found


@jit
def _choose_discards(found: int, hand: int, chance: float, tools: _Tools) -> None:
    """Fill ``tools.best`` for the hand cards, and for all ways; 0 where no discard leaves any."""
    tools.hopes[:] = 0.0
    for k in range(found):
        way, missing = tools.desk.ways[k]
        hope, spare = chance**missing, hand & ~way
        while spare:
            discard = lowest(spare)
            spare &= spare - 1
            tools.hopes[ALL, discard] += hope
            inside = hand & way
            while inside:
                tools.hopes[lowest(inside), discard] += hope
                inside &= inside - 1
    for card_id in range(ALL + 1):
        if card_id == ALL or hand & bit(card_id):
            tools.best[card_id] = _greatest(hand, tools.hopes[card_id])


@jit
def _greatest(hand: int, hopes: NDArray[np.float64]) -> int:
    """The hand card with the greatest hope, as a mask; 0 if all are nothing."""
    best, most = 0, 0.0
    while hand:
        card_id = lowest(hand)
        hand &= hand - 1
        if hopes[card_id] > most:
            best, most = bit(card_id), hopes[card_id]
    return best


@jit
def _count_left(found: int, hand: int, tools: _Tools) -> None:
    """Count the ways that the best discards leave: of all, and of those that hold each card."""
    for k in range(found):
        way, missing = tools.desk.ways[k]
        if tools.best[ALL] & ~way:
            tools.totals[BEST + missing] += 1
        inside = hand & way
        while inside:
            card_id = lowest(inside)
            inside &= inside - 1
            if tools.best[card_id] & ~way:
                tools.counts[LAID + missing, card_id] += 1


@jit
def _count(observation: NDArray[np.uint8], may_take: bool, book: np.void, tools: _Tools) -> None:
    """Fill ``tools.counts`` and ``tools.totals``."""
    tools.counts[:] = tools.totals[:] = 0
    hand, table = _mask(observation, OWN_HAND), _mask(observation, OWN_TABLE)
    other_table, face_up = _mask(observation, OTHER_TABLE), _mask(observation, FACE_UP)
    unseen, own, target = _mask(observation, UNSEEN), hand | table, int(book["target"])
    found = _count_ways(NOW, own, table, unseen, target, tools)
    if may_take:
        found = _count_ways(TAKING, own | face_up, table | face_up, unseen, target, tools)
    if may_take or face_up == 0:
        chance = chance_to_come(int(observation[STOCK_LEFT]), unseen)
        _choose_discards(found, hand, UNEVEN * chance, tools)
        _count_left(found, hand, tools)
    for card_id in range(NUM_CARDS):
        if hand & bit(card_id):
            for missing in range(WAY_KINDS):
                needed = tools.counts[NOW + missing, card_id]
                tools.counts[LEFT + missing, card_id] = tools.totals[NOW + missing] - needed
    live = (hand | unseen | face_up) & int(book["pack"])
    while live:
        card_id = lowest(live)
        live &= live - 1
        tools.counts[LINKS, card_id] = count_links(tools.partners[card_id], own, unseen)
        if other_table and is_legal_table(other_table | bit(card_id), book):
            tools.counts[ABSORBED, card_id] = 1


@jit
def _arrange(
    observation: NDArray[np.uint8], ways: bool, tools: _Tools, out: NDArray[np.uint8]
) -> None:
    """Write the rows of the suits, and what belongs to no card."""
    at = 0
    for suit in range(NUM_SUITS):
        for piece in range(CARD_PIECES):
            start = piece * NUM_CARDS + suit * NUM_RANKS
            out[at : at + NUM_RANKS] = observation[start : start + NUM_RANKS]
            at += NUM_RANKS
        for piece in range(WAY_PIECES if ways else 0):
            for rank in range(NUM_RANKS):
                counted = tools.counts[piece, suit * NUM_RANKS + rank]
                out[at] = LOGS[min(counted, MOST_COUNTED - 1)]
                at += 1
    out[at : at + NUM_NUMBERS] = observation[CARDS_END:]
    for number in range(WAY_NUMBERS if ways else 0):
        out[at + NUM_NUMBERS + number] = LOGS[min(tools.totals[number], MOST_COUNTED - 1)]


@jit
def _write(
    observations: NDArray[np.uint8],
    may_take: NDArray[np.bool_],
    books: NDArray[np.void],
    combos: NDArray[np.int64],
    partners: NDArray[np.int64],
    ways: bool,
    out: NDArray[np.uint8],
) -> None:
    counts, totals = np.zeros((WAY_PIECES, NUM_CARDS), np.int64), np.zeros(WAY_NUMBERS, np.int64)
    hopes, best = np.zeros((ALL + 1, NUM_CARDS)), np.zeros(ALL + 1, np.int64)
    tools = _Tools(new_desk(combos), partners, counts, totals, hopes, best)
    for i in range(len(observations)):
        if ways:
            _count(observations[i], may_take[i], books[0], tools)
        _arrange(observations[i], ways, tools, out[i])


def network_inputs(
    observation: NDArray[np.uint8],
    mask: NDArray[np.bool_],
    rules: RuleSet,
    ways: bool,
    out: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """What a network is given for n decisions.

    Args:
        observation: uint8 [n, 416].
        mask: bool [n, 83], which tells whether the face-up card may be taken.
        rules: what is played.
        ways: whether ways, links and absorbed cards are counted.
        out: uint8 [n, ``input_size(ways)``] to write to.

    Returns:
        ``out``, or a new array.
    """
    if out is None:
        out = np.empty((len(observation), input_size(ways)), np.uint8)
    _write(
        observation, mask[:, TAKE], rulebook(rules), combos_by_size(rules), partner_table(rules),
        ways, out,
    )  # fmt: skip
    return out
