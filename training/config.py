"""A training run as a frozen value, read from TOML."""

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from conquian_env import RuleSet
from conquian_env.errors import ConquianError
from conquian_env.rules import rule_set
from training.symmetry import reversible

_STRICT = ConfigDict(extra="forbid", strict=True)
Count = Annotated[int, Field(ge=1)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ConfigError(ConquianError, ValueError):
    """A configuration that cannot be used; names the file and the key."""


@dataclass(frozen=True, config=_STRICT)
class NetworkConfig:
    """The size of the network (see ``agents.network.SuitNetwork``)."""

    width: Annotated[int, Field(ge=1, le=4096)] = 192
    layers: Annotated[int, Field(ge=1, le=64)] = 3


@dataclass(frozen=True, config=_STRICT)
class PPOConfig:
    """The learner. Step size and entropy bonus fall in a line to their ``final`` values.

    Attributes:
        epochs: passes over each rollout.
        minibatch: decisions a gradient step.
        clip: PPO's range for the probability ratio.
        gae_lambda: λ of the advantages; γ is 1, the objective is win, draw or loss.
        reverse_ranks: play half of the games as the network sees them with the rank line
            reversed, an exact symmetry where the 7 is next to the jack.
        bf16: compute the network in bfloat16.
    """

    learning_rate: Positive = 6e-4
    final_learning_rate: Weight = 1e-4
    entropy: Weight = 0.1
    final_entropy: Weight = 0.03
    epochs: Count = 2
    minibatch: Count = 4096
    clip: Positive = 0.2
    value_weight: Weight = 0.5
    max_grad_norm: Positive = 0.5
    gae_lambda: Annotated[float, Field(ge=0, le=1)] = 0.95
    reverse_ranks: bool = False
    bf16: bool = True


@dataclass(frozen=True, config=_STRICT)
class Config:
    """One run of ``training.train``.

    Attributes:
        rules: the name of a preset, or a table of rule fields.
        decisions: real decisions to learn from, both seats together.
        num_games: games side by side.
        rollout: decisions of each game between updates.
        checkpoint_every: updates between checkpoints.
    """

    decisions: Count
    rules: str | dict[str, Any] = "classic"
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    num_games: Annotated[int, Field(ge=1, le=1 << 20)] = 1024
    rollout: Annotated[int, Field(ge=1, le=1 << 16)] = 64
    checkpoint_every: Count = 10
    network: NetworkConfig = NetworkConfig()
    ppo: PPOConfig = PPOConfig()

    @property
    def rule_set(self) -> RuleSet:
        """The rules to learn."""
        return (
            RuleSet.from_dict(self.rules) if isinstance(self.rules, dict) else rule_set(self.rules)
        )


def load_config(path: Path) -> Config:
    """Read a run from a TOML file.

    Raises:
        ConfigError: the file is missing or no TOML, a key is unknown, or a value out of range.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # not UTF-8, or not TOML
        raise ConfigError(f"{path}: {error}") from None
    try:
        # Through JSON, because only there a strict check reads nested tables as dataclasses.
        config = TypeAdapter(Config).validate_json(json.dumps(values, default=str))
        rules = config.rule_set
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        what = "unknown key" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        raise ConfigError(f"{path}: {key}: {what}") from None
    except ConquianError as error:
        raise ConfigError(f"{path}: rules: {error}") from None
    if config.ppo.reverse_ranks and not reversible(rules):
        raise ConfigError(f"{path}: ppo.reverse_ranks is no symmetry of {rules}")
    return config
