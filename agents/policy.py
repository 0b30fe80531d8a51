"""A trained network as an agent: ``ppo:path``, and ``ppo:baseline`` that ships with the project."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from agents.agent import AgentError, draw
from agents.checkpoint import load
from agents.inputs import network_inputs
from agents.network import Network
from agents.symmetry import ACTION_PLACES, OBSERVATION_PLACES, reversible
from agents.turns import narrow
from conquian_env import RuleSet, Views

BASELINE = Path(__file__).with_name("baseline.pt")  # docs/baseline.md is its model card
DECIMALS = 4  # of a probability: actions that are alike differ in bits that the processor decides


class NetworkAgent:
    """A network that is in memory; alone among agents its last bits depend on the batch size.

    Where the rank line can be read backwards, the probabilities are means over both readings: with
    the suits, which the network has built in, they are the same in all symmetries of the rules.

    Args:
        network: as it is now; later changes of its weights change the agent.
        rules: what it plays.
        sample: draw from the policy's probabilities, or play the best action.
        name: what errors call it.
    """

    def __init__(
        self, network: Network, rules: RuleSet, sample: bool = False, name: str = "network"
    ) -> None:
        self.network, self.rules, self.sample, self.name = network, rules, sample, name

    def probabilities(self, views: Views) -> NDArray[np.float32]:
        """What ``act`` plays, float32 [n, 83]: the network's own, or 1 for its best action."""
        if views.rules != self.rules:
            raise AgentError(f"{self.name}: trained on {self.rules}, asked to play {views.rules}")
        choices = narrow(views.observation, views.mask, self.rules)
        probabilities = self._policy(views.observation, views.mask, choices)
        if reversible(self.rules):
            arrays = views.observation[:, OBSERVATION_PLACES], views.mask[:, ACTION_PLACES]
            mirrored = self._policy(*arrays, choices[:, ACTION_PLACES])
            probabilities = (probabilities + mirrored[:, ACTION_PLACES]) * np.float32(0.5)
        if self.sample:
            return probabilities
        best = np.where(choices, probabilities.round(DECIMALS), -1.0).argmax(axis=1)
        played = np.zeros_like(probabilities)
        played[np.arange(len(played)), best] = 1.0
        return played

    @torch.no_grad()
    def _policy(
        self,
        observation: NDArray[np.uint8],
        mask: NDArray[np.bool_],
        choices: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        """What the network says, float32 [n, 83]."""
        inputs = network_inputs(observation, mask, self.rules, self.network.config.ways)
        device = next(self.network.parameters()).device
        arrays = (torch.from_numpy(array).to(device) for array in (inputs, choices))
        output: NDArray[np.float32] = self.network(*arrays).log_probabilities.exp().cpu().numpy()
        return output

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        return draw(self.probabilities(views), views.mask, views.seeds)


class Policy(NetworkAgent):
    """The policy of a checkpoint.

    Args:
        path: the checkpoint file, or ``baseline``.
        sample: ``true`` draws from the policy's probabilities, ``false`` plays the best action.

    Raises:
        CheckpointError: the file cannot be used.
    """

    def __init__(self, path: str, sample: str = "false") -> None:
        if sample not in ("true", "false"):
            raise AgentError(f"sample must be true or false, not {sample!r}")
        self.path = str(BASELINE if path == "baseline" else path)
        checkpoint = load(self.path)
        super().__init__(checkpoint.network, checkpoint.rules, sample == "true", path)
