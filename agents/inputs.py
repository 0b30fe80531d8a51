"""What a network is given: the observation by suits, and the ways to a final table by card.

Each suit is a row: the card pieces of the observation, then, where ``ways`` is asked for,

| piece | of each card |
| --- | --- |
| now 0, 1, 2, 3 | ways with so many cards missing that hold it |
| taking 0, 1, 2, 3 | the same after the face-up card was taken, 0 where it may not be |
| laid, left | hope that the best turn leaves that lays it, or that discards it |
| near laid, near left | how near that is to the best turn of all |
| links | its live combinations of three, as ``greedy`` counts them |
| absorbed | whether the other table could take it in alone |

ten numbers each, one a rank. What belongs to no card comes last: the other numbers of the
observation, how many ways there are, now and taking, and the hope that the best turn leaves. Turns
(see ``turns``) are planned where cards may be laid, and where the face-up card may be taken. Ways,
hopes and links are many or none, so they are given as logarithms. A symmetry of the rules moves the
rows or the ranks in them and changes nothing else.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.heuristic import count_links, partner_table
from agents.turns import LAID, LEFT, Plan, new_plan, plan_turns
from agents.ways import (
    MOST_MISSING,
    ONE,
    WayDesk,
    combos_by_size,
    find_ways,
    new_desk,
    weigh_ways,
)
from conquian_env import RuleSet
from conquian_env.actions import TAKE
from conquian_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, bit, lowest
from conquian_env.jit import jit
from conquian_env.melds import is_legal_table, rulebook
from conquian_env.observation import CARD_PIECES, CARDS_END, LAYOUT, OBSERVATION_SIZE, cards_at

NUM_NUMBERS = OBSERVATION_SIZE - CARDS_END
WAY_KINDS = MOST_MISSING + 1
NOW, TAKING, HOPES = range(0, 3 * WAY_KINDS, WAY_KINDS)
NEAR, LINKS, ABSORBED, WAY_PIECES = (HOPES + k for k in (2, 4, 5, 6))
BEST = 2 * WAY_KINDS  # after the ways now and taking
WAY_NUMBERS = BEST + 1
LOG_STEPS = 16.0  # to a doubling
MOST_COUNTED = 4096
LOGS = np.round(LOG_STEPS * np.log2(1 + np.arange(MOST_COUNTED))).astype(np.uint8)
LEAST_HOPE = ONE // 64
NEAREST, NEAR_STEPS = 64, 256  # to the best hope of all; to a halving of it
STOCK_LEFT = LAYOUT["stock_left"].start
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
    plan: Plan
    partners: NDArray[np.int64]
    worth: NDArray[np.int64]  # int64 [4], of ways by missing cards
    pieces: NDArray[np.int64]  # int64 [WAY_PIECES, 40]
    numbers: NDArray[np.int64]  # int64 [WAY_NUMBERS]


@jit
def _log_count(number: int) -> int:
    log: int = LOGS[min(number, MOST_COUNTED - 1)]
    return log


@jit
def _log_hope(hope: int) -> int:
    return min(255, round(LOG_STEPS * float(np.log2(1 + hope / LEAST_HOPE))))


@jit
def _count_ways(kind: int, own: int, table: int, unseen: int, target: int, tools: _Tools) -> int:
    """Add the ways, by the cards they hold, to the pieces from ``kind`` on; how many there are."""
    desk, pieces, numbers = tools.desk, tools.pieces, tools.numbers
    found, cards = find_ways(own, table, unseen, target, desk), 0
    for k in range(found):
        way, piece = desk.ways[k, 0], kind + desk.ways[k, 1]
        cards |= way
        numbers[piece] += 1
        while way:
            pieces[piece, lowest(way)] += 1
            way &= way - 1
    for piece in range(kind, kind + WAY_KINDS):
        held = cards if numbers[piece] else 0
        numbers[piece] = _log_count(numbers[piece])
        while held:
            pieces[piece, lowest(held)] = _log_count(pieces[piece, lowest(held)])
            held &= held - 1
    return found


@jit
def _write_turns(tools: _Tools) -> None:
    """Write what the planned turns leave."""
    pieces, plan, best = tools.pieces, tools.plan, tools.plan.hopes.max()
    tools.numbers[BEST] = _log_hope(best)
    for card_id in range(NUM_CARDS):
        for kind in (LAID, LEFT):
            hope = plan.hopes[kind, card_id]
            if hope:
                far = round(NEAR_STEPS * np.log2(best / hope))
                pieces[HOPES + kind, card_id] = _log_hope(hope)
                pieces[NEAR + kind, card_id] = max(0, NEAREST - far)


@jit
def _is_absorbed(card_id: int, table: int, partners: NDArray[np.int64], book: np.void) -> bool:
    """Whether a table could take a card in alone; two of its cards must make three with it."""
    for pair in partners[card_id]:
        if pair & ~table == 0:
            return pair > 0 and is_legal_table(table | bit(card_id), book)
    return False


@jit
def _count(observation: NDArray[np.uint8], may_take: bool, book: np.void, tools: _Tools) -> None:
    """Fill ``tools.pieces`` and ``tools.numbers``."""
    tools.pieces[:] = tools.numbers[:] = 0
    hand, table = cards_at(observation, OWN_HAND), cards_at(observation, OWN_TABLE)
    other_table, face_up = cards_at(observation, OTHER_TABLE), cards_at(observation, FACE_UP)
    unseen, own, target = cards_at(observation, UNSEEN), hand | table, int(book["target"])
    found = _count_ways(NOW, own, table, unseen, target, tools)
    if may_take:
        table |= face_up
        found = _count_ways(TAKING, own | face_up, table, unseen, target, tools)
    if may_take or face_up == 0:
        weigh_ways(int(observation[STOCK_LEFT]), unseen, tools.worth)
        ways = tools.desk.ways[:found]
        plan_turns(ways, tools.worth, hand, table, book, tools.plan)
        _write_turns(tools)
    live = (hand | unseen | face_up) & int(book["pack"])
    while live:
        card_id = lowest(live)
        live &= live - 1
        links = count_links(tools.partners[card_id], own, unseen)
        tools.pieces[LINKS, card_id] = _log_count(links)
        if _is_absorbed(card_id, other_table, tools.partners, book):
            tools.pieces[ABSORBED, card_id] = 1


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
                out[at] = tools.pieces[piece, suit * NUM_RANKS + rank]
                at += 1
    out[at : at + NUM_NUMBERS] = observation[CARDS_END:]
    for number in range(WAY_NUMBERS if ways else 0):
        out[at + NUM_NUMBERS + number] = tools.numbers[number]


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
    tools = _Tools(
        new_desk(combos), new_plan(), partners, np.zeros(WAY_KINDS, np.int64),
        np.zeros((WAY_PIECES, NUM_CARDS), np.int64), np.zeros(WAY_NUMBERS, np.int64),
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
