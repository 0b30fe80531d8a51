"""Seeds derived from seeds, one way: deals and agents draw from streams that never meet."""

import hashlib

import numpy as np
from numpy.typing import NDArray

from conquian_env.deal import WORD, seed_bits, threefry
from conquian_env.jit import jit


@jit
def _fill(
    key0: int,
    key1: int,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    words: NDArray[np.uint32],
) -> None:
    for i in range(len(words)):
        low, high = threefry(key0, key1, first[i] & WORD, second[i] & WORD)
        words[i, 0], words[i, 1] = low, high


def derive(
    purpose: str, seed: int, first: NDArray[np.int64], second: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """Seeds named by ``(purpose, seed, first, second)``, as a keyed one-way hash.

    The key is BLAKE2b of purpose and seed, so values of one purpose say nothing of another's to
    whoever cannot guess the seed (a seed of few possible values can be tried out). Entries do not
    depend on the length of the arrays or their order.

    Args:
        purpose: such as ``deals`` or ``agents``.
        seed: 0 to 2**64 - 1.
        first: int64 [n], 0 to 2**32 - 1.
        second: int64 [n], 0 to 2**32 - 1.

    Returns:
        uint64 [n].
    """
    seed_bits(seed)
    digest = hashlib.blake2b(f"{purpose} {seed}".encode(), digest_size=8).digest()
    key0, key1 = int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")
    words = np.empty((len(first), 2), np.uint32)
    _fill(key0, key1, first.astype(np.int64), second.astype(np.int64), words)
    return words.view(np.uint64)[:, 0]


def deal_seeds(seed: int, deals: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A seed for each of the deals of a match (int64 [n] in, uint64 [n] out)."""
    return derive("deals", seed, deals, np.zeros_like(deals))


def decision_seeds(
    seed: int, games: NDArray[np.int64], seats: NDArray[np.int8], plies: NDArray[np.int16]
) -> NDArray[np.uint64]:
    """A seed for each decision of a match, by game, seat and ply (all [n]; uint64 [n] out)."""
    return derive("agents", seed, games, 2 * plies.astype(np.int64) + seats)
