"""A run of the learner: all that it carries from one update to the next, and its file."""

import copy
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from agents import make_agent
from agents.checkpoint import CheckpointError, read, write
from agents.network import Critic, Network, make_network
from agents.policy import NetworkAgent
from conquian_env.errors import ConquianError
from conquian_env.state import STATE
from training.config import Config, ConfigError
from training.exact import agent_strategy, nash_conv
from training.match import check_plays, play_match
from training.opponents import Pool
from training.ppo import Learner, update
from training.ranks import Ranks
from training.rollout import Collector, Rollout
from training.sequence_form import SequenceForm, sequence_form

FORMAT = "conquian-run-1"
KINDS: dict[str, type] = {
    "config": str, "updates": int, "network": dict, "average": dict, "critic": dict,
    "optimizer": dict, "states": Tensor, "opponent": Tensor, "opponent_seat": Tensor,
    "past": list, "added": int, "best": float,
}  # fmt: skip
EVALUATION_SEED = 1


class DivergedError(ConquianError):
    """Learning has broken down."""


class Run:
    """Networks, optimiser, games and opponents, at the beginning or between two updates.

    Attributes:
        network, critic: what learns; the critic may be None.
        average: the policy averaged over updates, what is evaluated and kept.
        updates: made so far.
        best: the highest mean score in an evaluation so far.
    """

    def __init__(self, config: Config, ranks: Ranks) -> None:
        self.config, self.ranks, self.rules = config, ranks, config.rule_set
        parts = config.threads * ranks.size
        if config.num_games % parts:
            raise ConfigError(
                f"num_games: {config.num_games} games are not {parts} equal parts, one a thread"
            )
        device = _device(config, ranks)
        with torch.random.fork_rng(devices=[]):  # the caller's global generator stays as it was
            torch.manual_seed(config.seed)
            self.network: Network = make_network(config.network)
            self.critic = Critic(config.network) if config.ppo.critic else None
        self.average: Network = copy.deepcopy(self.network)
        networks = [self.network] + ([self.critic] if self.critic else [])
        learnt = [weights for one in networks for weights in one.to(device).parameters()]
        self.optimizer = torch.optim.Adam(learnt, lr=config.ppo.learning_rate, eps=1e-5)
        self.workers = ThreadPoolExecutor(config.threads, "learner", torch.set_num_threads, (1,))
        self.learner = Learner(self.network, self.critic, self.optimizer, self.workers, ranks)
        self.pool = Pool(config.pool, self.rules, config.seed)
        self.anchors = [(spec, make_agent(spec)) for spec in config.evaluation.anchors]
        for anchor in self.anchors:  # refused now, not at the first evaluation
            check_plays(*anchor, self.rules)
        games = np.split(np.arange(config.num_games), parts)
        mine = slice(ranks.rank * config.threads, (ranks.rank + 1) * config.threads)
        self.collectors = [Collector(config, some, self.pool, device) for some in games[mine]]
        self.form: SequenceForm | None = None
        self.updates, self.best = 0, -math.inf

    @property
    def decisions(self) -> int:
        """Real decisions played."""
        return self.updates * self.config.rollout * self.config.num_games

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
        size, done = config.rollout * config.num_games, self.decisions / config.decisions
        rate = _line(ppo.learning_rate, ppo.final_learning_rate, done)
        entropy_weight = _line(ppo.entropy, ppo.final_entropy, done)
        self.optimizer.param_groups[0]["lr"] = rate

        collect = partial(Collector.collect, network=self.network, critic=self.critic)
        rollouts = list(self.workers.map(collect, self.collectors))
        began = time.perf_counter()
        rng = np.random.default_rng([config.seed, self.updates])
        losses = asdict(update(learner, rollouts, size, ppo, entropy_weight, rng))
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
        settings, scores = self.config.evaluation, {}
        for second in self.anchors:
            for name, network in (("", self.average), ("_last", self.network)):
                first = ("policy", NetworkAgent(network, self.rules))
                result = play_match(first, second, self.rules, settings.pairs, EVALUATION_SEED)
                scores[f"eval/vs_{second[0]}{name}"] = result.score.mean
        if settings.exact:
            self.form = self.form or sequence_form(self.rules)
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
            "past": [(past.name, past.agent.network.state_dict()) for past in self.pool.past],
            "added": self.pool.added,
            "best": self.best,
        }
        for name in ("states", "opponent", "opponent_seat"):
            mine = torch.cat([_tensor(collector, name) for collector in self.collectors])
            content[name] = torch.cat(self.ranks.gather(mine))
        if self.ranks.rank == 0:
            write(path, FORMAT, content)

    def load(self, path: Path) -> None:
        """Go on where the run in ``path`` was, with the same configuration.

        Raises:
            CheckpointError: the file cannot be used.
            ConfigError: it is of another configuration.
        """
        content = read(path, FORMAT, KINDS)
        try:
            theirs, ours = dict(json.loads(content["config"])), self.recipe
        except (ValueError, TypeError):
            raise CheckpointError(f"{path}: config is no configuration") from None
        for key in ours:
            if theirs.get(key) != ours[key]:
                raise ConfigError(f"{path}: {key} was {theirs.get(key)}, and is {ours[key]}")
        try:
            self.network.load_state_dict(content["network"])
            self.average.load_state_dict(content["average"])
            if self.critic:
                self.critic.load_state_dict(content["critic"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.pool.restore(content["past"], content["added"], self.average)
            for collector in self.collectors:
                rows = torch.from_numpy(collector.games)
                states = content["states"][rows].numpy().view(STATE)[:, 0]
                collector.restore(
                    states,
                    content["opponent"][rows].numpy(),
                    content["opponent_seat"][rows].numpy(),
                    content["updates"] * self.config.rollout,
                )
        except (RuntimeError, ValueError, TypeError, LookupError, ConquianError) as error:
            raise CheckpointError(f"{path}: {' '.join(str(error).split())}") from None
        self.updates, self.best = content["updates"], content["best"]


def _tensor(collector: Collector, name: str) -> Tensor:
    if name == "states":
        states = collector.batch.states()
        return torch.from_numpy(states.view(np.uint8).reshape(len(states), -1))
    array: Tensor = torch.from_numpy(getattr(collector, name))
    return array


def _line(first: float, last: float, done: float) -> float:
    return first + (last - first) * done


def _device(config: Config, ranks: Ranks) -> torch.device:
    if config.device == "cuda" or (config.device == "auto" and torch.cuda.is_available()):
        if not torch.cuda.is_available():
            raise ConfigError("device: torch finds no CUDA device")
        return torch.device("cuda", ranks.rank % torch.cuda.device_count())
    return torch.device("cpu")


def _played(rollouts: list[Rollout]) -> dict[str, float]:
    """What the rollouts of this process were like."""
    returns = np.concatenate([rollout.returns for rollout in rollouts])
    metrics = {
        f"perf/{name}": float(np.mean([rollout.seconds[name] for rollout in rollouts]))
        for name in rollouts[0].seconds
    }
    if len(returns):
        metrics |= {
            "charts/episodic_return": float(returns.mean()),
            "charts/draws": float((returns == 0).mean()),
            "charts/episodic_length": float(
                np.mean([rollout.decisions_per_deal for rollout in rollouts])
            ),
        }
    return metrics
