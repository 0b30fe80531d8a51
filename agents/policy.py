"""A trained network as an agent: ``ppo:path``."""

import numpy as np
import torch
from numpy.typing import NDArray

from agents.agent import AgentError, draw
from agents.checkpoint import CheckpointError, load
from conquian_env import Views

CHUNK = 8192


class Policy:
    """The policy of a checkpoint.

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
        """float32 [n, 83]."""
        if views.rules != self.rules:
            raise CheckpointError(
                f"{self.path}: trained on {self.rules}, asked to play {views.rules}"
            )
        parts = []
        with torch.no_grad():
            for start in range(0, len(views), CHUNK):
                some = slice(start, start + CHUNK)
                observation = torch.from_numpy(views.observation[some])
                logits, _ = self.network(observation, torch.from_numpy(views.mask[some]))
                parts.append(logits.exp().numpy())
        return np.concatenate(parts)

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        probabilities = self.probabilities(views)
        if self.sample:
            return draw(probabilities, views.mask, views.seeds)
        best: NDArray[np.int64] = np.where(views.mask, probabilities, -1.0).argmax(axis=1)
        return best
