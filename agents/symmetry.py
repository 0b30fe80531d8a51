"""The reversal of the rank line, an exact symmetry where the 7 is next to the jack.

With the suit permutations, which the network has built in, these are the 48 symmetries of classic.
"""

import numpy as np
from numpy.typing import NDArray

from conquian_env import RuleSet
from conquian_env.actions import LAY, NUM_ACTIONS
from conquian_env.cards import NUM_RANKS
from conquian_env.observation import CARDS_END, HIDDEN_SIZE, OBSERVATION_SIZE


def reversible(rules: RuleSet) -> bool:
    """Whether reading the rank line backwards leaves legality as it is."""
    line = rules.seven_jack_adjacent and rules.ranks == NUM_RANKS
    return line and rules.lay_order == "any"


def _reversed(size: int, start: int, end: int) -> NDArray[np.int64]:
    """Places 0..size-1, with each stretch of ten from ``start`` to ``end`` back to front."""
    places = np.arange(size)
    places[start:end] = places[start:end].reshape(-1, NUM_RANKS)[:, ::-1].ravel()
    return places


# Where each number of an observation, each of what is hidden, and each action stands when A 2 3 … K
# are read K Q J … A. All are their own inverse.
OBSERVATION_PLACES = _reversed(OBSERVATION_SIZE, 0, CARDS_END)
HIDDEN_PLACES = _reversed(HIDDEN_SIZE, 0, HIDDEN_SIZE)
ACTION_PLACES = _reversed(NUM_ACTIONS, LAY, NUM_ACTIONS)
