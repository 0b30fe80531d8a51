"""A training run as a frozen value, read from TOML."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from agents.network import NetworkConfig
from agents.symmetry import reversible
from conquian_env import RuleSet
from training.toml import (
    LARGEST,
    STRICT,
    ConfigError,
    Count,
    Positive,
    Rules,
    checked,
    load_toml,
    rules_of,
)

Weight = Annotated[float, Field(ge=0, le=LARGEST)]
Share = Annotated[float, Field(ge=0, le=1)]
MOST = 1 << 26  # decisions in a rollout of all games, about a hundred gigabytes


@dataclass(frozen=True, config=STRICT)
class PPOConfig:
    """The learner. Step size and entropy bonus fall in a line to their ``final`` values.

    Attributes:
        learning_rate: Adam's step size at the beginning.
        final_learning_rate: and at the end.
        entropy: weight of the entropy bonus at the beginning.
        final_entropy: and at the end.
        kl: weight of KL(new policy, old policy), which with the entropy bonus is the regulariser
            of magnetic mirror descent (arXiv 2206.05825).
        epochs: passes over each rollout.
        minibatch: decisions a gradient step; those of opponents are left out of it.
        clip: PPO's range for the probability ratio, 1 ± this.
        value_weight: weight of the value's squared error.
        max_grad_norm: longer gradients are shortened to this.
        gae_lambda: λ of the advantages; γ is 1, the objective is win, draw or loss.
        ema: how much of the averaged weights stays at each update, less in the first ones; 0 for
            no average.
        critic: whether values come from a second network that sees all cards; the policy's own
            value then only helps it to learn.
        other_hand_weight: weight of the loss of the head that says what the other seat holds.
        reverse_ranks: play half of the games as the network sees them with the rank line
            reversed, an exact symmetry where the 7 is next to the jack.
        bf16: compute networks in bfloat16.
    """

    learning_rate: Positive = 2e-3
    final_learning_rate: Weight = 1e-4
    entropy: Weight = 0.03
    final_entropy: Weight = 0.01
    kl: Weight = 0.0
    epochs: Count = 2
    minibatch: Count = 4096
    clip: Positive = 0.2
    value_weight: Weight = 0.5
    max_grad_norm: Positive = 0.5
    gae_lambda: Share = 1.0
    ema: Annotated[float, Field(ge=0, lt=1)] = 0.95
    critic: bool = False
    other_hand_weight: Weight = 0.1
    reverse_ranks: bool = False
    bf16: bool = True


@dataclass(frozen=True, config=STRICT)
class PoolConfig:
    """Against whom some deals are played; in the others the policy plays itself.

    Attributes:
        share: how much of the deals one seat of which is played by an opponent from the pool.
        anchors: specs of agents that are always in the pool.
        folder: with checkpoints (``*.pt``) that are always in it, too; empty for none.
        past: how many past selves are in it, averaged policies.
        every: updates between two of them.
    """

    share: Share = 0.0
    anchors: tuple[str, ...] = ()
    folder: str = ""
    past: Annotated[int, Field(ge=0, le=1000)] = 0
    every: Count = 20


@dataclass(frozen=True, config=STRICT)
class EvaluationConfig:
    """Matches on the way, on the same mirrored deals every time.

    Attributes:
        anchors: specs of the agents to play.
        pairs: deals.
        every: updates between evaluations.
        exact: work out the NashConv, too; small decks only.
    """

    anchors: tuple[str, ...] = ("greedy", "expert")
    pairs: Annotated[int, Field(ge=2, le=10_000_000)] = 1000
    every: Count = 50
    exact: bool = False


@dataclass(frozen=True, config=STRICT)
class Config:
    """One run of ``training.train``.

    Attributes:
        decisions: real decisions to play, both seats together.
        rules: the name of a preset, or a table of rule fields.
        seed: of deals, weights and all else that is drawn.
        start: a checkpoint to begin with instead of new weights; empty for none.
        num_games: games side by side.
        rollout: decisions of each game between updates.
        checkpoint_every: updates between checkpoints.
        threads: that play and learn, each with an equal part of the games; one a core.
        device: of the networks; with ``torchrun`` and ``cuda`` each process has a GPU of its own.
        network, ppo, pool, evaluation: tables of their own.
    """

    decisions: Count
    rules: Rules = "classic"
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    start: str = ""
    num_games: Annotated[int, Field(ge=1, le=1 << 20)] = 1024
    rollout: Annotated[int, Field(ge=1, le=1 << 16)] = 64
    checkpoint_every: Count = 10
    threads: Annotated[int, Field(ge=1, le=1024)] = 2
    device: Literal["cpu", "cuda"] = "cpu"
    network: NetworkConfig = NetworkConfig()
    ppo: PPOConfig = PPOConfig()
    pool: PoolConfig = PoolConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    def __post_init__(self) -> None:
        """Refuse rollouts that no memory holds, and a mirror that is none."""
        if self.num_games * self.rollout > MOST:
            raise ConfigError(
                f"num_games * rollout: {self.num_games} * {self.rollout} decisions between two "
                f"updates are more than {MOST}"
            )
        if self.ppo.reverse_ranks and not reversible(self.rule_set):
            raise ConfigError(f"ppo.reverse_ranks is no symmetry of {self.rule_set}")

    @property
    def rule_set(self) -> RuleSet:
        """The rules to learn."""
        return rules_of(self.rules)


def load_config(path: Path) -> Config:
    """Read a run from a TOML file.

    Raises:
        ConfigError: the file or a value in it cannot be used; names the key.
    """
    return checked(load_toml(path), Config, str(path))
