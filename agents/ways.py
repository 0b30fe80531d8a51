"""Ways to a final table, what ``expert`` counts and what a network is told.

A way is a legal table that would win (rule 5.1): it holds all that the own table holds now and is
made of own cards but for at most three that may still come, being neither dead nor melded. Each of
its combinations has two own cards or more: others are hard to begin.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from conquian_env import RuleSet
from conquian_env.cards import NUM_CARDS, count
from conquian_env.jit import jit
from conquian_env.melds import LONGEST_RUN, combinations

MOST_MISSING = 3
MOST_WAYS = 1024  # no more are counted
ONE = 1 << 20  # a worth of 1
SMALLEST = 3  # cards in a combination
MOST_MELDS = NUM_CARDS // SMALLEST  # on a table
LEAST_OWN = 2  # cards of a meld in a way
# What a way is worth by the number of cards it misses, but for the chance that they come.
WORTH = (4.0, 2.0, 0.45, 0.15)


class WayDesk(NamedTuple):
    """The combinations of a rule set by size (int64 [c]), and room to work in."""

    combos: NDArray[np.int64]
    melds: NDArray[np.int64]  # int64 [c, 2], those within reach, and how many cards they miss
    ends: NDArray[np.int64]  # int64 [9], how many of ``melds`` have so many cards or fewer
    parts: NDArray[np.int64]  # int64 [MOST_MELDS, 4], of a way: mask, cards it misses, melds to try
    ways: NDArray[np.int64]  # int64 [MOST_WAYS, 2], a mask and how many cards are missing


@lru_cache(maxsize=64)
def combos_by_size(rules: RuleSet) -> NDArray[np.int64]:
    """Masks, int64 [c], the smallest first."""
    return np.array(sorted(combinations(rules), key=int.bit_count), np.int64)


@jit
def chance_to_come(stock_left: int, unseen: int) -> float:
    """Of a card: each that is left in the stock may be it, and the other seat's next discard."""
    return (stock_left + 1) / (count(unseen) + 1)


@jit
def weigh_ways(stock_left: int, unseen: int, worth: NDArray[np.int64]) -> None:
    """Fill ``worth`` (int64 [4]) with what ways are worth by the cards they miss, times 2**20.

    In whole numbers, so that sums do not depend on their order.
    """
    chance = chance_to_come(stock_left, unseen)
    for missing in range(MOST_MISSING + 1):
        worth[missing] = int(WORTH[missing] * chance**missing * ONE)


@jit
def new_desk(combos: NDArray[np.int64]) -> WayDesk:
    """A desk with nothing on it; each thread needs its own."""
    melds, ends = np.zeros((len(combos), 2), np.int64), np.zeros(LONGEST_RUN + 1, np.int64)
    parts, ways = np.zeros((MOST_MELDS, 4), np.int64), np.zeros((MOST_WAYS, 2), np.int64)
    return WayDesk(combos, melds, ends, parts, ways)


@jit
def _find_melds(own: int, unseen: int, desk: WayDesk) -> None:
    """Fill ``desk.melds`` and ``desk.ends``."""
    n = 0
    desk.ends[:] = 0
    for combo in desk.combos:
        missing = combo & ~own
        if missing & ~unseen:
            continue
        size, lack = count(combo), count(missing)
        if lack <= MOST_MISSING and size - lack >= LEAST_OWN:
            desk.melds[n, 0], desk.melds[n, 1] = combo, lack
            n += 1
            desk.ends[size] = n
    for size in range(SMALLEST, LONGEST_RUN + 1):
        desk.ends[size] = max(desk.ends[size], desk.ends[size - 1])


@jit
def _begin(
    part: NDArray[np.int64], way: int, lack: int, start: int, room: int, ends: NDArray[np.int64]
) -> None:
    """Write down a part of a way that lacks ``room`` cards: melds from ``start`` on may follow."""
    end = ends[LONGEST_RUN]
    if room < 2 * SMALLEST:  # one more, of this size
        start, end = max(start, ends[room - 1]), ends[room]
    part[0], part[1], part[2], part[3] = way, lack, start, end


@jit
def find_ways(own: int, table: int, unseen: int, target: int, desk: WayDesk) -> int:
    """Fill ``desk.ways``; how many there are. ``own`` is hand and table.

    Depth first: cover the table, from its lowest card up, then add melds in their order.
    """
    _find_melds(own, unseen, desk)
    melds, parts, found, depth = desk.melds, desk.parts, 0, 0
    _begin(parts[0], 0, 0, 0, target, desk.ends)
    while depth >= 0:
        way, lack = parts[depth, 0], parts[depth, 1]
        bare = table & ~way
        first = bare & -bare
        for i in range(parts[depth, 2], parts[depth, 3]):
            meld, more = melds[i, 0], melds[i, 1]
            if first & ~meld or meld & way or lack + more > MOST_MISSING:
                continue
            room = target - count(way | meld)
            if room == 0 and bare & ~meld == 0:
                found = _note(way | meld, lack + more, desk.ways, found)
            elif room >= SMALLEST:
                parts[depth, 2] = i + 1
                depth += 1
                start = 0 if bare else i + 1
                _begin(parts[depth], way | meld, lack + more, start, room, desk.ends)
                break
        else:
            depth -= 1
    return found


@jit
def _note(way: int, lack: int, ways: NDArray[np.int64], found: int) -> int:
    """Write down a way unless it is there, cut into other combinations."""
    for i in range(found):
        if ways[i, 0] == way:
            return found
    if found < len(ways):
        ways[found, 0], ways[found, 1] = way, lack
        found += 1
    return found
