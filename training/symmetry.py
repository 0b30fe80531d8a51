"""The reversal of the rank line, an exact symmetry where the 7 is next to the jack.

With the suit permutations, which the network has built in, these are the 48 symmetries of classic.
"""

import torch
from torch import Tensor

from conquian_env.actions import LAY, NUM_ACTIONS
from conquian_env.cards import NUM_RANKS
from conquian_env.observation import LAYOUT, OBSERVATION_SIZE


def _reversed(size: int, start: int, end: int) -> Tensor:
    """Places 0..size-1, with each stretch of ten from ``start`` to ``end`` back to front."""
    places = torch.arange(size)
    places[start:end] = places[start:end].reshape(-1, NUM_RANKS).flip(1).flatten()
    return places


OBSERVATION_PLACES = _reversed(OBSERVATION_SIZE, 0, LAYOUT["phase"].start)
ACTION_PLACES = _reversed(NUM_ACTIONS, LAY, NUM_ACTIONS)


def reverse_ranks(
    observation: Tensor, mask: Tensor, action: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The same decisions with A 2 3 … K read as K Q J … A: [n, 416], [n, 83] and [n]."""
    return observation[:, OBSERVATION_PLACES], mask[:, ACTION_PLACES], ACTION_PLACES[action]
