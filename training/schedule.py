"""Who meets whom in a tournament, and the parts in which the games are played."""

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

from conquian_env.errors import OptionError

MOST_PARTS = 100_000

Format = Literal["round-robin", "gauntlet", "ladder"]


class Part(NamedTuple):
    """Some deals of one pairing: agents by their number, deals from ``start`` up to ``stop``."""

    first: int
    second: int
    start: int
    stop: int


def pairings(kind: Format, agents: int, rungs: int = 1) -> list[tuple[int, int]]:
    """Pairs of agents, by number, in the order in which they meet.

    Args:
        kind: ``round-robin``, everybody meets everybody; ``gauntlet``, agent 0 meets all others;
            ``ladder``, each meets those up to ``rungs`` places above and below it.
        agents: how many there are, at least two.
        rungs: of the ladder.

    Raises:
        OptionError: there is no such kind, or too few agents or rungs.
    """
    if agents < 2 or rungs < 1:
        raise OptionError(f"a tournament needs two agents and one rung, not {agents} and {rungs}")
    if kind == "gauntlet":
        return [(0, other) for other in range(1, agents)]
    reach = {"round-robin": agents, "ladder": rungs}.get(kind)
    if reach is None:
        raise OptionError(f"format must be round-robin, gauntlet or ladder, not {kind!r}")
    return [(i, j) for i, j in itertools.combinations(range(agents), 2) if j - i <= reach]


def parts(meetings: Sequence[tuple[int, int]], pairs: int, size: int, begin: int = 0) -> list[Part]:
    """The deals of each pairing cut into parts of ``size``: all pairings' first parts come first.

    So a tournament that is broken off has played about as much of every pairing. The first deal is
    number ``begin``.

    Raises:
        OptionError: there are more than ``MOST_PARTS``.
    """
    number = -(-pairs // size) * len(meetings)
    if number > MOST_PARTS:
        raise OptionError(f"{number} parts are too many, at most {MOST_PARTS}: part must be larger")
    return [
        Part(first, second, start, min(start + size, begin + pairs))
        for start in range(begin, begin + pairs, size)
        for first, second in meetings
    ]
