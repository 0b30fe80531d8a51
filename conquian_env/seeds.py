"""Seeds derived from seeds, one way: deals and agents draw from streams that never meet."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conquian_env.deal import WORD, seed_bits, threefry
from conquian_env.jit import jit

LEARNERS = 1 << 40  # match seeds from here on are for learning, and no tournament takes them


@jit
def _fill(
    keys: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    words: NDArray[np.uint32],
) -> None:
    for i in range(len(words)):
        low, high = threefry(keys[i, 0], keys[i, 1], first[i] & WORD, second[i] & WORD)
        words[i, 0], words[i, 1] = low, high


def key(purpose: str, seed: int) -> NDArray[np.int64]:
    """The key of a seed (0 to 2**64 - 1) for one purpose: two 32-bit words, int64 [2].

    It is their BLAKE2b, so what is drawn for one purpose says nothing of another's to whoever
    cannot guess the seed (a seed of few possible values can be tried out).
    """
    seed_bits(seed)
    digest = hashlib.blake2b(f"{purpose} {seed}".encode(), digest_size=8).digest()
    return np.frombuffer(digest, "<u4").astype(np.int64)


def draw(
    keys: NDArray[np.int64], first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]]
) -> NDArray[np.uint64]:
    """Seeds named by key and two numbers, as a keyed one-way hash.

    Entries do not depend on the length of the arrays or their order.

    Args:
        keys: int64 [n, 2].
        first: [n], of which the lower 32 bits count.
        second: [n], the same.

    Returns:
        uint64 [n].
    """
    words = np.empty((len(first), 2), np.uint32)
    _fill(keys, first.astype(np.int64), second.astype(np.int64), words)
    return words.view(np.uint64)[:, 0]


def derive(
    purpose: str, seed: int, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """``draw`` with the key of one purpose and seed for all."""
    return draw(np.tile(key(purpose, seed), (len(first), 1)), first, second)


def deal_seeds(seed: int, deals: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A seed for each of the deals of a match (int64 [n] in, uint64 [n] out)."""
    return derive("deals", seed, deals, np.zeros_like(deals))


def decision_seeds(
    seed: int, games: NDArray[np.int64], seats: NDArray[np.int8], plies: NDArray[np.int16]
) -> NDArray[np.uint64]:
    """A seed for each decision of a match, by game, seat and ply (all [n]; uint64 [n] out)."""
    return derive("agents", seed, games, 2 * plies.astype(np.int64) + seats)
