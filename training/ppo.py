"""The update: proximal policy optimisation with a masked policy (arXiv 1707.06347)."""

import math
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from agents.network import Critic, Network
from conquian_env.cards import NUM_CARDS
from training.config import PPOConfig
from training.ranks import Ranks
from training.rollout import Rollout


@dataclass(frozen=True)
class Losses:
    """Means over the decisions of one update; the names are CleanRL's.

    Attributes:
        policy_loss: the clipped surrogate, negated.
        value_loss: mean squared error of the value against the return.
        entropy: of the policy over the legal actions, in nats.
        old_approx_kl, approx_kl: estimates of KL(old policy, new policy), the first with more
            variance.
        clipfrac: share of decisions whose probability ratio was clipped.
        critic_loss: of the critic that sees all cards, 0 without one.
        other_hand_loss: cross entropy of what the other seat holds, in nats a card; 0 without it.
        explained_variance: 1 - Var(return - value) / Var(return), before the update.
    """

    policy_loss: float
    value_loss: float
    entropy: float
    old_approx_kl: float
    approx_kl: float
    clipfrac: float
    critic_loss: float
    other_hand_loss: float
    explained_variance: float


# How many decisions, and the sums of all losses but the last, in their order.
NUM_SUMS = len(Losses.__annotations__)
ROWS = 128  # in multiples of which gradients are worked out
LEAST = -60.0  # log-probabilities below are nothing, and their exponentials slow


@dataclass(frozen=True)
class Learner:
    """What learns, and who works on it.

    Attributes:
        network, critic: what learns; there need not be a critic.
        optimizer: of the weights of both.
        workers: a thread for each rollout.
        ranks: other processes with rollouts of their own.
    """

    network: Network
    critic: Critic | None
    optimizer: torch.optim.Optimizer
    workers: Executor
    ranks: Ranks

    @cached_property
    def weights(self) -> list[Tensor]:
        """What the optimiser moves."""
        return [one for group in self.optimizer.param_groups for one in group["params"]]


def update(
    learner: Learner,
    rollouts: list[Rollout],
    shape: tuple[int, int],
    config: PPOConfig,
    entropy_weight: float,
    rng: np.random.Generator,
) -> Losses:
    """Improve the learner on rollouts, in place.

    Args:
        learner: what is improved.
        rollouts: of this process, one a worker.
        shape: T and N, decisions of each game and games in the rollouts of all processes.
        config: the learner's.
        entropy_weight: of the entropy bonus now.
        rng: shuffles the minibatches, the same in every process.
    """
    weights, ranks = learner.weights, learner.ranks
    mean, spread, explained_variance = _moments(rollouts, ranks)
    rollouts = [replace(one, advantage=(one.advantage - mean) / spread) for one in rollouts]
    places = [_places(rollout, math.prod(shape)) for rollout in rollouts]

    def work(rollout: Rollout, rows: Tensor) -> Tensor:
        return gradients(learner, rollout, rows, config, entropy_weight)

    history = [torch.zeros(NUM_SUMS)]
    for chosen in _minibatches(shape, config, rng):
        rows = [_pad(here[here >= 0]) for here in (p[chosen] for p in places)]
        parts = torch.stack(list(learner.workers.map(work, rollouts, rows)))
        total = ranks.sum(parts.sum(0))
        sums, gradient = torch.split(total, [NUM_SUMS, len(total) - NUM_SUMS])
        if sums[0] == 0:  # none of these decisions was the policy's own
            continue
        history.append(sums.cpu())
        _set_gradients(weights, gradient / sums[0])
        nn.utils.clip_grad_norm_(weights, config.max_grad_norm)
        learner.optimizer.step()
    count, *totals = torch.stack(history).sum(0).tolist()
    means = [one / max(count, 1) for one in totals]
    values = zip(Losses.__annotations__, [*means, explained_variance], strict=True)
    return Losses(**dict(values))


def gradients(
    learner: Learner, rollout: Rollout, rows: Tensor, config: PPOConfig, entropy_weight: float
) -> Tensor:
    """How many decisions, the parts of their losses, and the gradients, all summed and flat.

    A row of -1 is left out.
    """
    loss, sums = _losses(learner, rollout, rows, config, entropy_weight)
    parts = torch.autograd.grad(loss, learner.weights)
    return torch.cat([sums, *(part.flatten() for part in parts)])


def _losses(
    learner: Learner, rollout: Rollout, rows: Tensor, config: PPOConfig, entropy_weight: float
) -> tuple[Tensor, Tensor]:
    """The loss over some decisions, summed, and how many they are with the sums of its parts."""
    dtype = torch.bfloat16 if config.bf16 else torch.float32
    rows = rows.to(rollout.inputs.device)
    counted, rows = (rows >= 0).float(), rows.clamp_min(0)
    inputs, mask, action, old, advantage, target = (
        array.index_select(0, rows)  # ten times as fast as array[rows]
        for array in (rollout.inputs, rollout.mask, rollout.action, rollout.log_probability,
                      rollout.advantage, rollout.target)
    )  # fmt: skip
    output = learner.network(inputs, mask, dtype)
    log_probabilities = output.log_probabilities
    log_ratio = log_probabilities.gather(1, action[:, None])[:, 0] - old
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -counted @ torch.min(ratio * advantage, clipped * advantage)
    kl = counted @ ((ratio - 1) - log_ratio)
    value_loss = counted @ (output.value - target).square()
    entropy = -counted @ (log_probabilities.clamp_min(LEAST).exp() * log_probabilities).sum(1)
    loss = policy_loss + config.value_weight * value_loss - entropy_weight * entropy
    if config.kl:
        loss = loss + config.kl * (counted @ (ratio * log_ratio - (ratio - 1)))  # KL(new, old)

    critic_loss = other_hand_loss = loss.new_zeros(())
    if rollout.hidden is not None:
        hidden = rollout.hidden.index_select(0, rows)
        if learner.critic is not None:
            critic_loss = counted @ (learner.critic(inputs, hidden, dtype) - target).square()
        if output.other_hand is not None:
            other_hand_loss = counted @ nn.functional.binary_cross_entropy_with_logits(
                output.other_hand, hidden[:, :NUM_CARDS].float(), reduction="none"
            ).mean(1)  # fmt: skip
        loss = loss + config.value_weight * critic_loss
        loss = loss + config.other_hand_weight * other_hand_loss
    clip_count = counted @ (ratio != clipped).float()
    sums = [counted.sum(), policy_loss, value_loss, entropy, -counted @ log_ratio, kl, clip_count,
            critic_loss, other_hand_loss]  # fmt: skip
    return loss, torch.stack(sums).detach()


def _set_gradients(weights: list[Tensor], gradient: Tensor) -> None:
    parts = torch.split(gradient, [one.numel() for one in weights])
    for one, part in zip(weights, parts, strict=True):
        one.grad = part.view_as(one)


def _moments(rollouts: list[Rollout], ranks: Ranks) -> tuple[float, float, float]:
    """Mean and deviation of the advantages that are learnt from, and the explained variance."""
    sums = torch.zeros(5, dtype=torch.float64)
    for rollout in rollouts:
        advantage = rollout.advantage[rollout.learned].double()
        target = rollout.target[rollout.learned].double()
        parts = [advantage.sum(), advantage.square().sum(), target.sum(), target.square().sum()]
        sums += torch.stack([target.new_tensor(len(target)), *parts]).cpu()
    count, *totals = ranks.sum(sums).tolist()
    mean, square, target_mean, target_square = (total / max(count, 1) for total in totals)
    variance, target_variance = square - mean**2, target_square - target_mean**2
    explained = 1 - variance / target_variance if target_variance > 0 else math.nan
    return mean, math.sqrt(max(variance, 0.0)) + 1e-8, explained


def _places(rollout: Rollout, size: int) -> Tensor:
    """The row of each decision of the run that is learnt from here, -1 for the others."""
    places = torch.full((size,), -1)
    rows = torch.nonzero(rollout.learned.cpu())[:, 0]
    places[rollout.number[rows]] = rows
    return places


def _pad(rows: Tensor) -> Tensor:
    """Rows, and -1 up to a multiple: what is multiplied in a new shape costs as much again."""
    return nn.functional.pad(rows, (0, -len(rows) % ROWS), value=-1)


def _minibatches(
    shape: tuple[int, int], config: PPOConfig, rng: np.random.Generator
) -> Iterator[Tensor]:
    """Numbers of decisions, each once an epoch in a new order.

    Those of a multiple of the games have equal shares of every game, and so of every thread: none
    waits for another. In others which games have one decision more is drawn for each row.
    """
    numbers = np.arange(math.prod(shape)).reshape(shape)
    for _ in range(config.epochs):
        shuffled = rng.permuted(numbers, axis=0)
        if config.minibatch % shape[1]:
            shuffled = rng.permuted(shuffled, axis=1)
        yield from torch.split(torch.from_numpy(shuffled.ravel()), config.minibatch)
