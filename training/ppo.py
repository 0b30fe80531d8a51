"""The update: proximal policy optimisation with a masked policy (arXiv 1707.06347)."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from agents.network import SuitNetwork
from training.config import PPOConfig
from training.rollout import Rollout


@dataclass(frozen=True)
class Losses:
    """Means over the minibatches of one update; the names are CleanRL's.

    Attributes:
        policy_loss: the clipped surrogate, negated.
        value_loss: mean squared error of the value against the return.
        entropy: of the policy over the legal actions, in nats.
        old_approx_kl, approx_kl: estimates of KL(old policy, new policy), the first with more
            variance.
        clipfrac: share of decisions whose probability ratio was clipped.
        explained_variance: 1 - Var(return - value) / Var(return), before the update.
    """

    policy_loss: float
    value_loss: float
    entropy: float
    old_approx_kl: float
    approx_kl: float
    clipfrac: float
    explained_variance: float


def update(
    network: SuitNetwork,
    optimizer: torch.optim.Optimizer,
    rollout: Rollout,
    config: PPOConfig,
    entropy_weight: float,
    generator: torch.Generator,
) -> Losses:
    """Improve ``network`` on a rollout, in place; ``generator`` shuffles the minibatches."""
    advantage = rollout.advantage
    advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
    history: list[Tensor] = []
    for chosen in _minibatches(len(rollout.action), config, generator):
        with torch.autocast("cpu", torch.bfloat16, enabled=config.bf16):
            log_probabilities, value = network(rollout.observation[chosen], rollout.mask[chosen])
        log_ratio = _of(log_probabilities, rollout.action[chosen]) - rollout.log_probability[chosen]
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
        policy_loss = -torch.min(ratio * advantage[chosen], clipped * advantage[chosen]).mean()
        value_loss = (value - rollout.target[chosen]).square().mean()
        entropy = -(log_probabilities.exp() * log_probabilities).sum(1).mean()

        loss = policy_loss + config.value_weight * value_loss - entropy_weight * entropy
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), config.max_grad_norm)
        optimizer.step()

        clip_fraction = (ratio != clipped).float().mean()
        kl = ((ratio - 1) - log_ratio).mean()
        history.append(
            torch.stack([policy_loss, value_loss, entropy, -log_ratio.mean(), kl, clip_fraction])
        )
    return _losses(torch.stack(history).detach().mean(0).tolist(), _explained_variance(rollout))


def _losses(means: list[float], explained_variance: float) -> Losses:
    policy, value, entropy, old_kl, kl, clipped = means
    return Losses(policy, value, entropy, old_kl, kl, clipped, explained_variance)


def _minibatches(size: int, config: PPOConfig, generator: torch.Generator) -> Iterator[Tensor]:
    """Row numbers, each once an epoch in a new order."""
    for _ in range(config.epochs):
        yield from torch.split(torch.randperm(size, generator=generator), config.minibatch)


def _of(log_probabilities: Tensor, action: Tensor) -> Tensor:
    return log_probabilities.gather(1, action[:, None])[:, 0]


def _explained_variance(rollout: Rollout) -> float:
    spread = rollout.target.var(correction=0)
    if spread == 0:
        return float("nan")
    return float(1 - (rollout.target - rollout.value).var(correction=0) / spread)
