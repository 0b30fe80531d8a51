"""Ways to a final table, what ``expert`` counts and what a network is told.

A way is a legal table that would win (rule 5.1): it holds all that the own table holds now and is
made of own cards but for at most three that may still come, being neither dead nor melded. Each of
its combinations has two own cards or more: others are hard to begin.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import int64
from numpy.typing import NDArray

from conquian_env import RuleSet
from conquian_env.cards import count
from conquian_env.jit import fix_signature, jit
from conquian_env.melds import LONGEST_RUN, combinations

MOST_MISSING = 3
MOST_WAYS = 1024  # no more are counted
SMALLEST = 3  # cards in a combination


class WayDesk(NamedTuple):
    """The combinations of a rule set by size (int64 [c]), and room to work in."""

    combos: NDArray[np.int64]
    melds: NDArray[np.int64]  # int64 [c], those of them that are within reach
    ends: NDArray[np.int64]  # int64 [9], how many of ``melds`` have so many cards or fewer
    ways: NDArray[np.int64]  # int64 [MOST_WAYS, 2], a mask and how many cards are missing


@lru_cache(maxsize=64)
def combos_by_size(rules: RuleSet) -> NDArray[np.int64]:
    """Masks, int64 [c], the smallest first."""
    array = int64[::1]
    fix_signature(_extend, int64(*[int64] * 5, array, array, int64[:, ::1], int64))
    return np.array(sorted(combinations(rules), key=int.bit_count), np.int64)


@jit
def chance_to_come(stock_left: int, unseen: int) -> float:
    """Of a card: each that is left in the stock may be it, and the other seat's next discard."""
    return (stock_left + 1) / (count(unseen) + 1)


@jit
def new_desk(combos: NDArray[np.int64]) -> WayDesk:
    """A desk with nothing on it; each thread needs its own."""
    melds, ends = np.zeros(len(combos), np.int64), np.zeros(LONGEST_RUN + 1, np.int64)
    return WayDesk(combos, melds, ends, np.zeros((MOST_WAYS, 2), np.int64))


@jit
def find_ways(own: int, table: int, unseen: int, target: int, desk: WayDesk) -> int:
    """Fill ``desk.ways``; how many there are. ``own`` is hand and table."""
    n = 0
    desk.ends[:] = 0
    for combo in desk.combos:
        size, held = count(combo), count(combo & own)
        if held >= 2 and size - held <= MOST_MISSING and combo & ~(own | unseen) == 0:
            desk.melds[n] = combo
            n += 1
            desk.ends[size] = n
    for size in range(SMALLEST, LONGEST_RUN + 1):
        desk.ends[size] = max(desk.ends[size], desk.ends[size - 1])
    return _extend(table, 0, 0, own, target, desk.melds, desk.ends, desk.ways, 0)


@jit
def _extend(
    table: int,
    way: int,
    start: int,
    own: int,
    target: int,
    melds: NDArray[np.int64],
    ends: NDArray[np.int64],
    ways: NDArray[np.int64],
    found: int,
) -> int:
    """Go on with a part of a way: cover the table first, then add ``melds`` from ``start`` on."""
    room, bare = target - count(way), table & ~way
    low, high = 0 if bare else start, ends[LONGEST_RUN]
    if room < 2 * SMALLEST:  # one more combination, of this size
        low, high = max(low, ends[room - 1]), ends[room]
    first = bare & -bare
    for i in range(low, high):
        meld = melds[i]
        if first & ~meld or meld & way or count((way | meld) & ~own) > MOST_MISSING:
            continue
        left = room - count(meld)
        if left == 0 and bare & ~meld == 0:
            found = _note(way | meld, own, ways, found)
        elif left >= SMALLEST:
            after = 0 if bare else i + 1
            found = _extend(table, way | meld, after, own, target, melds, ends, ways, found)
    return found


@jit
def _note(way: int, own: int, ways: NDArray[np.int64], found: int) -> int:
    """Write down a way unless it is there, cut into other combinations."""
    for i in range(found):
        if ways[i, 0] == way:
            return found
    if found < len(ways):
        ways[found, 0], ways[found, 1] = way, count(way & ~own)
        found += 1
    return found
