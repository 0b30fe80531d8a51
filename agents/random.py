"""Uniform random play."""

import numpy as np
from numpy.typing import NDArray

from agents.agent import draw
from conquian_env import Views


class Random:
    """Every legal action is equally likely."""

    def probabilities(self, views: Views) -> NDArray[np.float32]:
        """float32 [n, 83]."""
        legal = views.mask.astype(np.float32)
        equal: NDArray[np.float32] = legal / legal.sum(axis=1, keepdims=True)
        return equal

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        return draw(self.probabilities(views), views.mask, views.seeds)
