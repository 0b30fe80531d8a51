"""What a network is given: the observation by suits, and the ways to a final table by card.

Each suit is a row: the card pieces of the observation, then, where ``ways`` is asked for,

| piece | of each card |
| --- | --- |
| now 0, 1, 2, 3 | ways with so many cards missing that hold it |
| taking 0, 1, 2, 3 | the same after the face-up card was taken, 0 where it may not be |
| left 0, 1, 2, 3 | ways left by the best turn that discards it |
| laid 0, 1, 2, 3 | ways left by the best turn that lays it |
| links | its live combinations of three, as ``greedy`` counts them |
| absorbed | whether the other table could take it in alone |

ten numbers each, one a rank. What belongs to no card comes last: the other numbers of the
observation, and how many ways there are, now, taking, and left by the best turn of all. A turn
lays cards until the table is legal and discards one, now or after taking; it leaves the ways that
hold the table and not the discard, and is the better the more they are, each weighed by the chance
that its missing cards come. Ways and links are many or none, so they are given as logarithms. A
symmetry of the rules moves the rows or the ranks in them and changes nothing else.
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
from conquian_env.melds import is_legal_table, reach, rulebook
from conquian_env.observation import CARD_PIECES, CARDS_END, LAYOUT, OBSERVATION_SIZE

NUM_NUMBERS = OBSERVATION_SIZE - CARDS_END
WAY_KINDS = MOST_MISSING + 1
NOW, TAKING, LEFT, LAID, LINKS = range(0, 5 * WAY_KINDS, WAY_KINDS)
ABSORBED = LINKS + 1
WAY_PIECES = LINKS + 2
BEST = 2 * WAY_KINDS  # after the ways now and taking
WAY_NUMBERS = 3 * WAY_KINDS
DISCARDED, WHOLE = NUM_CARDS, 2 * NUM_CARDS  # places of turns, after those that lay a card
LOG_STEPS = 16.0  # steps to a doubling
MOST_COUNTED = 4096
LOGS = np.round(LOG_STEPS * np.log2(1 + np.arange(MOST_COUNTED))).astype(np.uint8)
STOCK_LEFT = LAYOUT["stock_left"].start
# Chances are multiplied by this, so that different ways do not add up to the same: of two turns
# with equal hopes the first is taken, and that must not tell one suit from another.
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
    hopes: NDArray[np.float64]  # float64 [40], what a discard leaves
    chances: NDArray[np.float64]  # float64 [4], that so many missing cards come
    best: NDArray[np.float64]  # float64 [81], of the best turn that lays, or discards, a card
    turns: NDArray[np.int64]  # int64 [81, 2], that turn


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
def _weigh_discards(
    ways: NDArray[np.int64],
    hand: int,
    table: int,
    chances: NDArray[np.float64],
    hopes: NDArray[np.float64],
) -> None:
    """Fill ``hopes`` with what each discard leaves of the ways that hold ``table``."""
    hopes[:] = 0.0
    for k in range(len(ways)):
        way = ways[k, 0]
        spare = hand & ~way if table & ~way == 0 else 0
        while spare:
            hopes[lowest(spare)] += chances[ways[k, 1]]
            spare &= spare - 1


@jit
def _keep(
    hope: float, table: int, discard: int, place: int, best: NDArray[np.float64],
    turns: NDArray[np.int64],
) -> None:  # fmt: skip
    """Keep a turn in its place if it has more hope than the one that is there."""
    if hope > best[place]:
        best[place], turns[place, 0], turns[place, 1] = hope, table, bit(discard)


@jit
def _find_turns(
    ways: NDArray[np.int64], hand: int, table: int, chance: float, book: np.void, tools: _Tools
) -> None:
    """Fill ``tools.turns`` with the best: what is on the table after them, and the discard."""
    hopes, best, turns, chances = tools.hopes, tools.best, tools.turns, tools.chances
    best[:] = 0.0
    for missing in range(WAY_KINDS):
        chances[missing] = chance**missing
    lays, laid = reach(table, table | hand, book) & hand, 0
    while True:  # over every subset of lays
        after = table | laid
        rest = hand & ~laid if is_legal_table(after, book) else 0
        if rest:
            _weigh_discards(ways, hand, after, chances, hopes)
        while rest:
            discard, cards = lowest(rest), laid
            rest &= rest - 1
            _keep(hopes[discard], after, discard, WHOLE, best, turns)
            _keep(hopes[discard], after, discard, DISCARDED + discard, best, turns)
            while cards:
                _keep(hopes[discard], after, discard, lowest(cards), best, turns)
                cards &= cards - 1
        laid = (laid - lays) & lays
        if laid == 0:
            break


@jit
def _count_left(
    ways: NDArray[np.int64], table: int, discard: int, counts: NDArray[np.int64]
) -> None:
    """Add to ``counts`` (int64 [4]) the ways that a turn leaves."""
    for k in range(len(ways)):
        way = ways[k, 0]
        if table & ~way == 0 and discard & ~way:
            counts[ways[k, 1]] += 1


@jit
def _count_turns(ways: NDArray[np.int64], tools: _Tools) -> None:
    """Count what the best turns leave: of all, and of those that lay, or discard, a card."""
    counts, totals, turns = tools.counts, tools.totals, tools.turns
    for place in range(WHOLE + 1):
        if tools.best[place] > 0:
            table, discard = turns[place]
            if place == WHOLE:
                _count_left(ways, table, discard, totals[BEST:])
            elif place < DISCARDED:
                _count_left(ways, table, discard, counts[LAID:LINKS, place])
            else:
                _count_left(ways, table, discard, counts[LEFT:LAID, place - DISCARDED])


@jit
def _count(observation: NDArray[np.uint8], may_take: bool, book: np.void, tools: _Tools) -> None:
    """Fill ``tools.counts`` and ``tools.totals``."""
    tools.counts[:] = tools.totals[:] = 0
    hand, table = _mask(observation, OWN_HAND), _mask(observation, OWN_TABLE)
    other_table, face_up = _mask(observation, OTHER_TABLE), _mask(observation, FACE_UP)
    unseen, own, target = _mask(observation, UNSEEN), hand | table, int(book["target"])
    found = _count_ways(NOW, own, table, unseen, target, tools)
    if may_take:
        table |= face_up
        found = _count_ways(TAKING, own | face_up, table, unseen, target, tools)
    if found and (may_take or face_up == 0):
        chance = UNEVEN * chance_to_come(int(observation[STOCK_LEFT]), unseen)
        ways = tools.desk.ways[:found]
        _find_turns(ways, hand, table, chance, book, tools)
        _count_turns(ways, tools)
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
    best, turns = np.zeros(WHOLE + 1), np.zeros((WHOLE + 1, 2), np.int64)
    tools = _Tools(
        new_desk(combos), partners, counts, totals, np.zeros(NUM_CARDS), np.zeros(WAY_KINDS),
        best, turns,
    )  # fmt: skip
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
