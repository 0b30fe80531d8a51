"""A trained network as an agent: ``ppo:path``."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.agent import AgentError, draw
from agents.checkpoint import CheckpointError, load
from conquian_env import Views


class Policy:
    """The policy of a checkpoint; alone among agents its last bits depend on the batch size.

    Args:
        path: the checkpoint file.
        sample: ``true`` draws from the policy's probabilities, ``false`` plays the best action.

    Raises:
        CheckpointError: the file cannot be used.
    """

    def __init__(self, path: str, sample: str = "false") -> None:
        if sample not in ("true", "false"):
            raise AgentError(f"sample must be true or false, not {sample!r}")
        self.path, self.sample = path, sample == "true"
        checkpoint = load(path)
        self.rules, self.network = checkpoint.rules, checkpoint.network.eval()

    def probabilities(self, views: Views) -> NDArray[np.float32]:
        """What ``act`` plays, float32 [n, 83]: the network's own, or 1 for its best action."""
        if views.rules != self.rules:
            raise CheckpointError(
                f"{self.path}: trained on {self.rules}, asked to play {views.rules}"
            )
        observation, mask = torch.from_numpy(views.observation), torch.from_numpy(views.mask)
        with torch.no_grad():
            log_probabilities: Tensor = self.network(observation, mask)[0]
        probabilities: NDArray[np.float32] = log_probabilities.exp().numpy()
        if self.sample:
            return probabilities
        best = np.where(views.mask, probabilities, -1.0).argmax(axis=1)
        played = np.zeros_like(probabilities)
        played[np.arange(len(played)), best] = 1.0
        return played

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        return draw(self.probabilities(views), views.mask, views.seeds)
