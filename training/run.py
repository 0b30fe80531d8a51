"""A run of the learner: all that it carries from one update to the next, and its file."""

import copy
import json
import math
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents import make_agent
from agents.checkpoint import CheckpointError, fitting, load, read, write
from agents.network import Critic, Network, make_network
from agents.policy import NetworkAgent
from conquian_env.errors import ConquianError, shown
from conquian_env.seeds import LEARNERS
from training.config import Config
from training.exact import agent_strategy, nash_conv
from training.match import check_plays, play_match
from training.opponents import Pool
from training.ppo import Learner, update
from training.ranks import Ranks
from training.rollout import Collector, Rollout
from training.sequence_form import sequence_form
from training.toml import ConfigError

FORMAT = "conquian-run-1"
GAMES = ("states", "opponent", "opponent_seat")
TYPES: dict[str, type] = {
    "config": str, "updates": int, "network": dict, "average": dict, "critic": dict,
    "optimizer": dict, "pool": dict, "best": float, **dict.fromkeys(GAMES, Tensor),
}  # fmt: skip
EVALUATION_SEED = LEARNERS + 1  # deals that no tournament is likely to be asked for


class DivergedError(ConquianError):
    """Learning has broken down."""


class Run:
    """Networks, optimiser, games and opponents, at the beginning or between two updates.

    Args:
        config: what to do.
        ranks: the processes that learn together.
        resumed: whether ``load`` comes next, so that no checkpoint to begin with is needed.

    Attributes:
        network, critic: what learns; the critic may be None.
        average: the policy with averaged weights, what is evaluated and kept.
        updates: made so far.
        best: the highest mean score in an evaluation so far.
        revision: of the sources, as git names it; empty where they are not under git.

    Raises:
        ConfigError, AgentError, CheckpointError, RuleSetError: what is asked for cannot be done.
    """

    def __init__(self, config: Config, ranks: Ranks, resumed: bool = False) -> None:
        self.config, self.ranks, self.rules = config, ranks, config.rule_set
        self.revision = _revision()
        device = _device(config.device)
        with torch.random.fork_rng(devices=[]):  # the caller's global generator stays as it was
            torch.manual_seed(config.seed)
            started = None if resumed else _start(config)
            self.network: Network = started or make_network(config.network)
            self.critic = Critic(config.network) if config.ppo.critic else None
        self.average: Network = copy.deepcopy(self.network)
        networks = [self.network] + ([self.critic] if self.critic else [])
        learnt = [weights for one in networks for weights in one.to(device).parameters()]
        self.optimizer = torch.optim.Adam(learnt, lr=config.ppo.learning_rate, eps=1e-5, fused=True)
        self.workers = ThreadPoolExecutor(config.threads, "learner", torch.set_num_threads, (1,))
        self.learner = Learner(self.network, self.critic, self.optimizer, self.workers, ranks)
        self.pool = Pool(config.pool, self.rules, config.seed)
        self.anchors = [(spec, make_agent(spec)) for spec in config.evaluation.anchors]
        for anchor in self.anchors:  # refused now, not at the first evaluation
            check_plays(*anchor, self.rules)
        exact = config.evaluation.exact and ranks.rank == 0
        self.form = sequence_form(self.rules) if exact else None
        parts = _parts(config, ranks)
        self.collectors = [Collector(config, games, self.pool, device) for games in parts]
        self.updates, self.best = 0, -math.inf

    @property
    def decisions_a_step(self) -> int:
        """Real decisions played in a step, by all processes."""
        return self.config.rollout * self.config.num_games

    @property
    def decisions(self) -> int:
        """Real decisions played so far."""
        return self.updates * self.decisions_a_step

    @property
    def recipe(self) -> dict[str, object]:
        """The configuration, as JSON has it."""
        recipe: dict[str, object] = json.loads(json.dumps(asdict(self.config)))
        return recipe

    def step(self) -> dict[str, float]:
        """One rollout and one update; returns metrics.

        Raises:
            DivergedError: a loss or a weight is not finite.
        """
        config, ppo, learner = self.config, self.config.ppo, self.learner
        done = self.decisions / config.decisions
        rate = _line(ppo.learning_rate, ppo.final_learning_rate, done)
        entropy_weight = _line(ppo.entropy, ppo.final_entropy, done)
        self.optimizer.param_groups[0]["lr"] = rate

        collect = partial(Collector.collect, network=self.network, critic=self.critic)
        rollouts = list(self.workers.map(collect, self.collectors))
        began, shape = time.perf_counter(), (config.rollout, config.num_games)
        rng = np.random.default_rng([config.seed, self.updates])
        losses = asdict(update(learner, rollouts, shape, ppo, entropy_weight, rng))
        seconds = time.perf_counter() - began

        finite = all(bool(weights.isfinite().all()) for weights in learner.weights)
        if not (finite and math.isfinite(losses["policy_loss"] + losses["value_loss"])):
            raise DivergedError(f"losses are not finite after {self.decisions} decisions")
        self.updates += 1
        self._average()
        if self.updates % config.pool.every == 0:
            self.pool.add(self.average, f"self after {self.decisions} decisions")
        return {
            "charts/learning_rate": rate,
            "charts/entropy_weight": entropy_weight,
            "perf/update": seconds,
            **_played(rollouts),
            **{f"losses/{name}": value for name, value in losses.items()},
        }

    @torch.no_grad()
    def _average(self) -> None:
        """Move the averaged policy towards the new one, faster at the beginning."""
        keep = min(self.config.ppo.ema, self.updates / (self.updates + 10))
        for mean, new in zip(self.average.parameters(), self.network.parameters(), strict=True):
            mean.lerp_(new.to(mean.device), 1 - keep)

    def evaluate(self) -> dict[str, float]:
        """Scores of the averaged and of the newest policy, and how far the first is from safe."""
        pairs, scores = self.config.evaluation.pairs, {}
        for second in self.anchors:
            for name, network in (("", self.average), ("_last", self.network)):
                first = ("policy", NetworkAgent(network, self.rules))
                result = play_match(first, second, self.rules, pairs, EVALUATION_SEED)
                scores[f"eval/vs_{second[0]}{name}"] = float(result.payoff.mean())
        if self.form:
            agent = NetworkAgent(self.average, self.rules, sample=True)
            scores["eval/nash_conv"] = nash_conv(self.form, agent_strategy(self.form, agent))
        return scores

    def save(self, path: Path) -> None:
        """Write all of it, from every process, to one file."""
        content = {
            "config": json.dumps(self.recipe),
            "updates": self.updates,
            "network": self.network.state_dict(),
            "average": self.average.state_dict(),
            "critic": self.critic.state_dict() if self.critic else {},
            "optimizer": self.optimizer.state_dict(),
            "pool": self.pool.state(),
            "best": self.best,
        }
        games = [collector.state() for collector in self.collectors]
        for name in GAMES:
            content[name] = self.ranks.gather(torch.cat([some[name] for some in games]))
        if self.ranks.rank == 0:
            write(path, FORMAT, content)

    def load(self, path: Path) -> None:
        """Go on where the run in ``path`` was, with the same configuration.

        Raises:
            CheckpointError: the file cannot be used.
            ConfigError: it is of another configuration.
        """
        content = read(path, FORMAT, TYPES)
        try:
            _check_same(json.loads(content["config"]), self.recipe)
            self._restore(content)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        except (ConquianError, RuntimeError, ValueError, TypeError, LookupError) as error:
            raise CheckpointError(f"{path}: {' '.join(str(error).split())}") from None

    def _restore(self, content: dict[str, Any]) -> None:
        """Put everything where a file has it; what would not fit is refused."""
        self.updates, self.best = content["updates"], content["best"]
        if not 0 <= self.updates <= -(-self.config.decisions // self.decisions_a_step):
            raise CheckpointError(f"updates is {shown(self.updates)}")
        if math.isnan(self.best):
            raise CheckpointError("best is no number")
        for name in ("network", "average", "critic"):
            network: torch.nn.Module = getattr(self, name) or torch.nn.Identity()  # no tensors
            network.load_state_dict(fitting(name, content[name], network.state_dict()))
        self._restore_optimizer(content["optimizer"].get("state"))
        self.pool.restore(content["pool"], copy.deepcopy(self.average))
        if self.pool.added > self.updates:
            raise CheckpointError(f"pool: {shown(self.pool.added)} were added")
        self._restore_games({name: content[name] for name in GAMES})

    def _restore_optimizer(self, state: object) -> None:
        """Adam has moments of all weights, or of none before its first step."""
        weights = self.learner.weights if state else []
        if not isinstance(state, dict) or state.keys() != set(range(len(weights))):
            raise CheckpointError("optimizer: these are not the weights of this configuration")
        step, names = torch.zeros(()), ("exp_avg", "exp_avg_sq")
        moments = {
            number: fitting("optimizer", state[number], {"step": step, **dict.fromkeys(names, one)})
            for number, one in enumerate(weights)
        }
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})

    def _restore_games(self, games: dict[str, Tensor]) -> None:
        """Those of this process; the file has all."""
        like = {
            name: some.new_empty((self.config.num_games, *some.shape[1:]))
            for name, some in self.collectors[0].state().items()
        }
        games = fitting("games", games, like)
        steps = self.updates * self.config.rollout
        for collector in self.collectors:
            rows = torch.from_numpy(collector.games)
            collector.restore({name: games[name][rows] for name in GAMES}, steps)


def _check_same(theirs: object, ours: object, key: str = "") -> None:
    """Refuse a configuration that is not the same, by the key."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in theirs | ours:
            _check_same(theirs.get(name), ours.get(name), f"{key}.{name}".removeprefix("."))
    elif not key:
        raise CheckpointError("config is no configuration")
    elif theirs != ours:
        raise ConfigError(f"{key} was {shown(theirs)}, and is {shown(ours)}")


def _start(config: Config) -> Network | None:
    """The network of the checkpoint to begin with, if there is one."""
    if not config.start:
        return None
    checkpoint = load(config.start)
    for name, theirs, ours in (
        ("rules", checkpoint.rules, config.rule_set),
        ("network", checkpoint.network.config, config.network),
    ):
        if theirs != ours:
            raise ConfigError(f"start: {name} of {config.start} is {theirs}, and not {ours}")
    return checkpoint.network


def _parts(config: Config, ranks: Ranks) -> list[NDArray[np.int64]]:
    """The numbers of the games of each thread of this process."""
    threads = config.threads
    if config.num_games % (threads * ranks.size):
        raise ConfigError(
            f"num_games: {config.num_games} games are no equal parts for {threads} threads "
            f"in each of {ranks.size} processes"
        )
    parts = np.split(np.arange(config.num_games), threads * ranks.size)
    return parts[ranks.rank * threads : (ranks.rank + 1) * threads]


def _revision() -> str:
    try:
        command = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _line(first: float, last: float, done: float) -> float:
    return first + (last - first) * done


def _device(name: str) -> torch.device:
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device: torch finds no CUDA device")
    return torch.device(name)


def _played(rollouts: list[Rollout]) -> dict[str, float]:
    """What the rollouts of this process were like."""
    metrics = {
        f"perf/{name}": float(np.mean([rollout.seconds[name] for rollout in rollouts]))
        for name in rollouts[0].seconds
    }
    own = np.concatenate([rollout.returns for rollout in rollouts])
    pool = np.concatenate([rollout.pool_returns for rollout in rollouts])
    if len(own):
        metrics["charts/episodic_return"] = float(own.mean())
        metrics["charts/draws"] = float((own == 0).mean())
    if len(pool):
        metrics["charts/pool_return"] = float(pool.mean())
    if len(own) + len(pool):
        decisions = sum(len(rollout.action) for rollout in rollouts)
        metrics["charts/episodic_length"] = decisions / (len(own) + len(pool))
    return metrics
