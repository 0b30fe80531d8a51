"""Playing: a batch of games is stepped with the current policy, and every decision is kept."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.agent import pick, uniforms
from agents.inputs import input_size, network_inputs
from agents.network import Critic, Network
from agents.symmetry import ACTION_PLACES, HIDDEN_PLACES, OBSERVATION_PLACES
from agents.turns import narrow
from conquian_env import Batch
from conquian_env.actions import NUM_ACTIONS
from conquian_env.jit import jit
from conquian_env.observation import HIDDEN_SIZE
from conquian_env.position import check_states
from conquian_env.seeds import derive
from conquian_env.state import STATE
from training.advantages import advantages
from training.config import Config
from training.opponents import NOBODY, Pool

CRITIC_CHUNK = 8192


@dataclass(frozen=True)
class Rollout:
    """T decisions in each of N games, and what the deals that ended in them returned.

    Its tensors may be the collector's arrays, and then hold until it collects again. What an
    opponent played is not in ``action``, and nothing of such a row is learnt.

    Attributes:
        inputs: uint8 [T * N, inputs]; mask: bool [T * N, 83]; action: int64 [T * N].
        hidden: uint8 [T * N, 120], or None where nothing learns from it.
        log_probability, advantage, target, value: float32 [T * N]; the target is the return.
        number: int64 [T * N], of each decision among those of all the run's rollouts now.
        learned: bool [T * N], the decisions that were the policy's own.
        returns: float32, to seat 0, one for each deal of self-play that ended.
        pool_returns: float32, to the policy, one for each deal against the pool that ended.
        seconds: what the time went into.
    """

    inputs: Tensor
    mask: Tensor
    action: Tensor
    hidden: Tensor | None
    log_probability: Tensor
    advantage: Tensor
    target: Tensor
    value: Tensor
    number: Tensor
    learned: Tensor
    returns: NDArray[np.float32]
    pool_returns: NDArray[np.float32]
    seconds: dict[str, float]


@jit
def _draw(
    log_probabilities: NDArray[np.float32],
    masks: NDArray[np.bool_],
    places: NDArray[np.float64],
    actions: NDArray[np.int64],
    chosen: NDArray[np.float32],
) -> None:
    """An action a row by one uniform number each, and its log-probability."""
    probabilities = np.empty_like(log_probabilities[0])
    for i in range(len(actions)):
        for action in range(NUM_ACTIONS):
            if masks[i, action]:  # the exponentials of the others take ten times as long
                probabilities[action] = np.exp(log_probabilities[i, action])
        actions[i] = pick(probabilities, masks[i], places[i])
        chosen[i] = log_probabilities[i, actions[i]]


class Collector:
    """Some games of a run, held between rollouts, and the arrays that each rollout fills again.

    All randomness is a hash of the run's seed, the game and the step, so what a game becomes does
    not depend on which others are played beside it.

    Args:
        config: of the run.
        games: int64 [N], the numbers of the games.
        pool: opponents in some of the deals.
        device: where the networks are, and rollouts are put.
    """

    def __init__(
        self, config: Config, games: NDArray[np.int64], pool: Pool, device: torch.device
    ) -> None:
        n, shape = len(games), (config.rollout, len(games))
        self.config, self.games, self.pool, self.device = config, games, pool, device
        seeds = derive("training", config.seed, games, np.zeros_like(games))
        self.batch = Batch(n, config.rule_set, seeds, skip_forced=True)
        self.opponent, self.opponent_seat = pool.draw(games, self.batch.deal)
        self.steps = 0
        self.mirrored = np.flatnonzero((games % 2 == 1) & config.ppo.reverse_ranks)
        self.dtype = torch.bfloat16 if config.ppo.bf16 else torch.float32
        self.with_hidden = config.ppo.critic or config.network.other_hand
        self.inputs = np.empty((*shape, input_size(config.network.ways)), np.uint8)
        self.mask = np.empty((*shape, NUM_ACTIONS), np.bool_)
        self.hidden = np.empty((*shape, HIDDEN_SIZE if self.with_hidden else 0), np.uint8)
        self.action = np.empty(shape, np.int64)
        self.log_probability = np.empty(shape, np.float32)
        self.value = np.empty(shape, np.float32)
        self.actor = np.empty(shape, np.int8)
        self.reward = np.empty((*shape, 2), np.float32)
        self.done = np.empty(shape, np.bool_)
        self.against = np.empty(shape, np.int8)  # the opponent's seat, NOBODY in self-play
        every = config.num_games * np.arange(config.rollout)[:, None]
        self.number = torch.from_numpy((every + games).ravel())
        self.seconds: dict[str, float] = {}

    @torch.no_grad()
    def collect(self, network: Network, critic: Critic | None = None) -> Rollout:
        """Play T decisions in every game with actions drawn from the policy."""
        self.seconds = dict.fromkeys(("engine", "inputs", "forward", "opponents"), 0.0)
        for t in range(len(self.action)):
            with self._timed("inputs"):
                self._look(self.inputs[t], self.mask[t], self.hidden[t])
            with self._timed("forward"):
                output = network(
                    self._to_device(self.inputs[t]), self._to_device(self.mask[t]), self.dtype
                )
                self.value[t] = output.value.cpu().numpy()
                self._choose(output.log_probabilities.cpu().numpy(), t)
            self._play(t)
        with self._timed("forward"):
            last_value = self._last_value(network, critic)
            if critic is not None:
                self.value.ravel()[:] = self._criticise(critic)
        advantage, target = advantages(
            self.actor, self.reward, self.done, self.value, last_value, self.config.ppo.gae_lambda
        )
        return self._rollout(advantage, target)

    def state(self) -> dict[str, Tensor]:
        """Where every game is, and its opponent: tensors of N rows, for a file."""
        states = self.batch.states().view(np.uint8).reshape(len(self.games), -1)
        arrays = {"states": states, "opponent": self.opponent, "opponent_seat": self.opponent_seat}
        return {name: torch.from_numpy(array) for name, array in arrays.items()}

    def restore(self, state: dict[str, Tensor], steps: int) -> None:
        """Put every game where ``state`` has it, after so many steps.

        Raises:
            PositionError, CheckpointError: a game, or an opponent, cannot be.
        """
        arrays = {name: tensor.numpy() for name, tensor in state.items()}
        states = arrays["states"].view(STATE)[:, 0]
        check_states(states, self.batch.rules)
        self.pool.check(arrays["opponent"], arrays["opponent_seat"])
        self.batch.restore(states)
        self.opponent[:], self.opponent_seat[:] = arrays["opponent"], arrays["opponent_seat"]
        self.steps = steps

    def _to_device(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began

    def _look(
        self, inputs: NDArray[np.uint8], mask: NDArray[np.bool_], hidden: NDArray[np.uint8]
    ) -> None:
        """Copy what the batch shows; some games are seen, and learnt from, in the mirror."""
        batch, some = self.batch, self.mirrored
        observation, mask[:] = batch.observation.copy(), batch.mask
        observation[some] = observation[some][:, OBSERVATION_PLACES]
        mask[some] = mask[some][:, ACTION_PLACES]
        network_inputs(observation, mask, batch.rules, self.config.network.ways, inputs)
        mask[:] = narrow(observation, mask, batch.rules)
        if self.with_hidden:
            hidden[:] = batch.hidden()
            hidden[some] = hidden[some][:, HIDDEN_PLACES]

    def _choose(self, log_probabilities: NDArray[np.float32], t: int) -> None:
        """Draw actions from the policy."""
        places = uniforms(self._seeds("actions"))
        _draw(log_probabilities, self.mask[t], places, self.action[t], self.log_probability[t])

    def _seeds(self, purpose: str) -> NDArray[np.uint64]:
        return derive(purpose, self.config.seed, self.games, np.full_like(self.games, self.steps))

    def _play(self, t: int) -> None:
        """Step every game, with the opponents' actions where it is theirs to act."""
        batch, played = self.batch, self.action[t].copy()
        self.actor[t] = batch.actor
        played[self.mirrored] = ACTION_PLACES[played[self.mirrored]]
        with self._timed("opponents"):
            self.against[t], theirs = self.opponent_seat, batch.actor == self.opponent_seat
            if theirs.any():
                seeds = self._seeds("opponents' actions")
                self.pool.play(batch, self.opponent, theirs, seeds, played)
        with self._timed("engine"):
            batch.step(played)
            self.reward[t] = batch.reward / batch.rules.highest_stake  # values are from -1 to 1
            self.done[t] = batch.done
        self.steps += 1
        ended = np.flatnonzero(batch.done)
        self.opponent[ended], self.opponent_seat[ended] = self.pool.draw(
            self.games[ended], batch.deal[ended]
        )

    def _criticise(self, critic: Critic) -> NDArray[np.float32]:
        inputs, hidden = (
            torch.split(self._to_device(array).flatten(0, 1), CRITIC_CHUNK)
            for array in (self.inputs, self.hidden)
        )
        values = [critic(*both, self.dtype) for both in zip(inputs, hidden, strict=True)]
        array: NDArray[np.float32] = torch.cat(values).cpu().numpy()
        return array

    def _last_value(self, network: Network, critic: Critic | None) -> NDArray[np.float32]:
        """By seat, float32 [N, 2]: the actor's, and its negative for the seat that waits.

        The waiting seat has not seen its next decision, so what the other thinks stands in.
        """
        arrays = [np.empty_like(array[0]) for array in (self.inputs, self.mask, self.hidden)]
        self._look(*arrays)
        inputs, mask, hidden = map(self._to_device, arrays)
        if critic is None:
            value = network(inputs, mask, self.dtype).value
        else:
            value = critic(inputs, hidden, self.dtype)
        mine = np.arange(2) == self.batch.actor[:, None]
        values: NDArray[np.float32] = value.cpu().numpy()[:, None]
        return np.where(mine, values, -values)

    def _rollout(self, advantage: NDArray[np.float32], target: NDArray[np.float32]) -> Rollout:
        alone, seat = self.done & (self.against == NOBODY), 1 - self.against
        pool = self.done & (self.against != NOBODY)
        return Rollout(
            inputs=self._to_device(self.inputs).flatten(0, 1),
            mask=self._to_device(self.mask).flatten(0, 1),
            action=self._to_device(self.action).flatten(),
            hidden=self._to_device(self.hidden).flatten(0, 1) if self.with_hidden else None,
            log_probability=self._to_device(self.log_probability).flatten(),
            advantage=self._to_device(advantage).flatten(),
            target=self._to_device(target).flatten(),
            value=self._to_device(self.value).flatten(),
            number=self.number,
            learned=self._to_device(self.actor != self.against).flatten(),
            returns=self.reward[alone, 0],
            pool_returns=self.reward[pool, seat[pool]],
            seconds=self.seconds,
        )
