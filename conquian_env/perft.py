"""Counts of action sequences, as chess programs count them to compare move generators."""

import numpy as np
from numpy.typing import NDArray

from conquian_env import engine
from conquian_env.actions import LAY
from conquian_env.cards import count
from conquian_env.errors import OptionError
from conquian_env.game import Game
from conquian_env.jit import jit
from conquian_env.melds import rulebook
from conquian_env.state import MAX_EVENTS


def perft(game: Game, depth: int) -> list[int]:
    """How many legal sequences of 1, 2, … ``depth`` actions can follow; ``game`` stays as it is.

    A sequence ends with its game: one that is over before is counted at no greater depth.

    Raises:
        OptionError: the depth is no whole number from 1 to 200.
    """
    if type(depth) is not int or not 1 <= depth <= MAX_EVENTS:
        raise OptionError(f"depth must be a whole number from 1 to {MAX_EVENTS}, not {depth!r}")
    rows, counts = np.repeat(game.to_state(), depth), np.zeros(depth, np.int64)
    _walk(rows, 0, rulebook(game.rules), counts)
    return [int(number) for number in counts]


@jit
def _walk(
    rows: NDArray[np.void], ply: int, books: NDArray[np.void], counts: NDArray[np.int64]
) -> None:
    """Count what can follow ``rows[ply]``; the rows after it are the scratch of deeper plies."""
    answers, lays, discards = engine.legal(rows[ply], books[0])
    low, high = answers | lays << LAY, discards
    counts[ply] += count(low) + count(high)
    if ply + 1 == len(counts):
        return
    while low | high:
        action, low, high = engine.pop_action(low, high)
        rows[ply + 1] = rows[ply]
        engine.apply(rows[ply + 1], action, books[0])
        _walk(rows, ply + 1, books, counts)
