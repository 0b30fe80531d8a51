"""Playing: a batch of games is stepped with the current policy, and every decision is kept."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.network import SuitNetwork
from conquian_env import Batch
from conquian_env.actions import NUM_ACTIONS
from conquian_env.observation import OBSERVATION_SIZE
from training.advantages import advantages
from training.config import PPOConfig
from training.symmetry import ACTION_PLACES, OBSERVATION_PLACES


@dataclass(frozen=True)
class Rollout:
    """T decisions in each of N games, and what the deals that ended in them returned.

    Attributes:
        observation: uint8 [T * N, 416]; mask: bool [T * N, 83]; action: int64 [T * N].
        log_probability, advantage, target, value: float32 [T * N]; the target is the return.
        returns: float32, to seat 0, one for each deal that ended.
        decisions_per_deal: real decisions of both seats.
    """

    observation: Tensor
    mask: Tensor
    action: Tensor
    log_probability: Tensor
    advantage: Tensor
    target: Tensor
    value: Tensor
    returns: NDArray[np.float32]
    decisions_per_deal: float


class Collector:
    """Holds the games between rollouts, and the arrays that each rollout fills again.

    Args:
        batch: games with ``skip_forced`` and ``autoreset``.
        length: T, decisions of each game in a rollout.
        config: gae_lambda, reverse_ranks and bf16 are read.
        generator: draws the actions.
    """

    def __init__(
        self, batch: Batch, length: int, config: PPOConfig, generator: torch.Generator
    ) -> None:
        shape = (length, batch.num_games)
        self.batch, self.config, self.generator = batch, config, generator
        self.reversed = slice(0, batch.num_games // 2 if config.reverse_ranks else 0)
        self.observation = np.empty((*shape, OBSERVATION_SIZE), np.uint8)
        self.mask = np.empty((*shape, NUM_ACTIONS), np.bool_)
        self.action = np.empty(shape, np.int64)
        self.log_probability = np.empty(shape, np.float32)
        self.value = np.empty(shape, np.float32)
        self.actor = np.empty(shape, np.int8)
        self.reward = np.empty((*shape, 2), np.float32)
        self.done = np.empty(shape, np.bool_)

    @torch.no_grad()
    def collect(self, network: SuitNetwork) -> Rollout:
        """Play T decisions in every game with actions drawn from the policy."""
        batch = self.batch
        for t in range(len(self.action)):
            self._look(self.observation[t], self.mask[t])
            self.actor[t] = batch.actor
            log_probabilities, value = self._evaluate(network, self.observation[t], self.mask[t])
            action = self._sample(log_probabilities)
            self.action[t] = action.numpy()
            self.log_probability[t] = log_probabilities.gather(1, action[:, None])[:, 0].numpy()
            self.value[t] = value.numpy()
            batch.step(self._as_played(self.action[t]))
            self.reward[t] = batch.reward / batch.rules.highest_stake  # values are from -1 to 1
            self.done[t] = batch.done
        advantage, target = advantages(
            self.actor, self.reward, self.done, self.value, self._last_value(network),
            self.config.gae_lambda,
        )  # fmt: skip
        return self._rollout(advantage, target)

    def _look(self, observation: NDArray[np.uint8], mask: NDArray[np.bool_]) -> None:
        """Copy what the batch shows; some games are seen, and learnt from, in the mirror."""
        batch, some = self.batch, self.reversed
        observation[:], mask[:] = batch.observation, batch.mask
        observation[some] = observation[some, OBSERVATION_PLACES]
        mask[some] = mask[some, ACTION_PLACES]

    def _as_played(self, action: NDArray[np.int64]) -> NDArray[np.int64]:
        played = action.copy()
        played[self.reversed] = ACTION_PLACES[played[self.reversed]]
        return played

    def _sample(self, log_probabilities: Tensor) -> Tensor:
        """One action a row by the Gumbel trick, int64 [n]; an illegal one is never drawn."""
        noise = torch.empty_like(log_probabilities).exponential_(generator=self.generator).log_()
        return (log_probabilities - noise).argmax(1)

    def _evaluate(
        self, network: SuitNetwork, observation: NDArray[np.uint8], mask: NDArray[np.bool_]
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.bf16):
            result: tuple[Tensor, Tensor] = network(
                torch.from_numpy(observation), torch.from_numpy(mask)
            )
        return result

    def _last_value(self, network: SuitNetwork) -> NDArray[np.float32]:
        """By seat, float32 [N, 2]: the actor's, and its negative for the seat that waits.

        The waiting seat has not seen its next decision, so what the other thinks stands in.
        """
        batch = self.batch
        observation, mask = np.empty_like(self.observation[0]), np.empty_like(self.mask[0])
        self._look(observation, mask)
        _, value = self._evaluate(network, observation, mask)
        mine = np.arange(2) == batch.actor[:, None]
        return np.where(mine, value.numpy()[:, None], -value.numpy()[:, None])

    def _rollout(self, advantage: NDArray[np.float32], target: NDArray[np.float32]) -> Rollout:
        ended = self.done
        return Rollout(
            observation=torch.from_numpy(self.observation).flatten(0, 1),
            mask=torch.from_numpy(self.mask).flatten(0, 1),
            action=torch.from_numpy(self.action).flatten(),
            log_probability=torch.from_numpy(self.log_probability).flatten(),
            advantage=torch.from_numpy(advantage).flatten(),
            target=torch.from_numpy(target).flatten(),
            value=torch.from_numpy(self.value).flatten(),
            returns=self.reward[ended, 0],
            decisions_per_deal=ended.size / max(int(ended.sum()), 1),
        )
