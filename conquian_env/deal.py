"""Dealing: the order of the pack as a pure function of (seed, deal number, re-deal).

Random words come from Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as
easy as 1, 2, 3", SC 2011): a keyed counter, so any deal can be made alone, and only additions,
rotations and exclusive ors of 32-bit words, which int64 holds exactly with the JIT on or off.
"""

import numpy as np
from numpy.typing import NDArray

from conquian_env.errors import SeedError, shown
from conquian_env.jit import jit

WORD = 0xFFFFFFFF
PARITY = 0x1BD11BDA
BLOCKS_PER_DEAL = 64  # of two words; a shuffle needs 20, the last ones are keys of re-deals
MAX_DEAL = (1 << 58) - 1


@jit
def threefry(key0: int, key1: int, counter0: int, counter1: int) -> tuple[int, int]:
    """Two random 32-bit words from a 64-bit key and a 64-bit counter, all as 32-bit words.

    Twenty rounds, and after every four the key is added; written out, they run twice as fast.
    """
    key2 = PARITY ^ key0 ^ key1
    x0, x1 = (counter0 + key0) & WORD, (counter1 + key1) & WORD
    x0, x1 = _four_rounds(x0, x1, 13, 15, 26, 6)
    x0, x1 = (x0 + key1) & WORD, (x1 + key2 + 1) & WORD
    x0, x1 = _four_rounds(x0, x1, 17, 29, 16, 24)
    x0, x1 = (x0 + key2) & WORD, (x1 + key0 + 2) & WORD
    x0, x1 = _four_rounds(x0, x1, 13, 15, 26, 6)
    x0, x1 = (x0 + key0) & WORD, (x1 + key1 + 3) & WORD
    x0, x1 = _four_rounds(x0, x1, 17, 29, 16, 24)
    x0, x1 = (x0 + key1) & WORD, (x1 + key2 + 4) & WORD
    x0, x1 = _four_rounds(x0, x1, 13, 15, 26, 6)
    return (x0 + key2) & WORD, (x1 + key0 + 5) & WORD


@jit
def _four_rounds(
    x0: int, x1: int, turn0: int, turn1: int, turn2: int, turn3: int
) -> tuple[int, int]:
    for turn in (turn0, turn1, turn2, turn3):
        x0 = (x0 + x1) & WORD
        x1 = (((x1 << turn) | (x1 >> (32 - turn))) & WORD) ^ x0
    return x0, x1


@jit
def shuffle(deck: NDArray[np.int8], seed: int, deal: int, redeal: int) -> None:
    """Write a permutation of 0..n-1 into ``deck`` (int8 [n]), by Fisher and Yates.

    A bounded draw is ``word * bound >> 32``, whose bias of at most 40 / 2**32 nobody can measure.
    """
    size = len(deck)
    for place in range(size):
        deck[place] = place
    key0, key1 = seed & WORD, (seed >> 32) & WORD
    counter = deal * BLOCKS_PER_DEAL
    if redeal > 0:  # seven shuffles do not fit into a deal's blocks: one of them is a key
        block = counter + BLOCKS_PER_DEAL - redeal
        key0, key1 = threefry(key0, key1, block & WORD, (block >> 32) & WORD)
        counter = 0
    spare = -1
    for last in range(size - 1, 0, -1):
        if spare < 0:
            word, spare = threefry(key0, key1, counter & WORD, (counter >> 32) & WORD)
            counter += 1
        else:
            word, spare = spare, -1
        other = (word * (last + 1)) >> 32
        deck[last], deck[other] = deck[other], deck[last]


def seed_bits(seed: int) -> int:
    """An unsigned 64-bit seed as the int64 that a state row holds.

    Raises:
        SeedError: the seed is no integer from 0 to 2**64 - 1.
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise SeedError(f"seed must be a whole number, not {shown(seed)}")
    if not 0 <= seed < 1 << 64:
        raise SeedError(f"seed {seed} is outside 0 to 2**64 - 1")
    return int(np.array(int(seed), np.uint64).view(np.int64))


def unsigned(bits: int) -> int:
    """The inverse of ``seed_bits``."""
    return int(bits) & ((1 << 64) - 1)


def check_deal(deal: int) -> int:
    """``deal`` itself, if it is a deal number.

    Raises:
        SeedError: the deal is no integer from 0 to 2**58 - 1.
    """
    if isinstance(deal, bool) or not isinstance(deal, (int, np.integer)):
        raise SeedError(f"deal must be a whole number, not {deal!r}")
    if not 0 <= deal <= MAX_DEAL:
        raise SeedError(f"deal {deal} is outside 0 to 2**58 - 1")
    return int(deal)
