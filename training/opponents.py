"""Whom the policy plays besides itself: fixed agents, and copies of what it was."""

import copy
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents import make_agent
from agents.agent import Agent, uniforms
from agents.checkpoint import CheckpointError, fitting
from agents.network import Network
from agents.policy import NetworkAgent
from conquian_env import Batch, RuleSet
from conquian_env.errors import shown
from conquian_env.seeds import derive
from training.config import PoolConfig
from training.match import ask, check_plays
from training.toml import ConfigError

NOBODY = -1  # the opponent in self-play, and its seat


class Pool:
    """The anchors, numbered from 0, and then the past selves, numbered as they came.

    A past self that is no longer drawn is kept while the next one is new: by then most deals that
    it began are over, and the others go on against the oldest that is left.

    Args:
        config: how many deals are played against the pool, and who is in it.
        rules: what is played.
        seed: draws the opponents.
    """

    def __init__(self, config: PoolConfig, rules: RuleSet, seed: int) -> None:
        self.config, self.rules, self.seed = config, rules, seed
        specs = [*config.anchors, *_specs_in(config.folder)]
        self.anchors = [(spec, make_agent(spec)) for spec in specs]
        for anchor in self.anchors:
            check_plays(*anchor, rules)
        if config.share > 0 and not specs and not config.past:
            raise ConfigError("pool.share: there is nobody in the pool")
        self.past: deque[NetworkAgent] = deque(maxlen=config.past + 1)
        self.added = 0

    def add(self, network: Network, name: str) -> None:
        """Put a copy of the policy into the pool, for the deals that begin from now on."""
        if self.config.past:
            copied = copy.deepcopy(network)
            self.past.append(NetworkAgent(copied, self.rules, sample=True, name=name))
            self.added += 1

    def state(self) -> dict[str, Any]:
        """Who is in it, for a file."""
        past = [(agent.name, agent.network.state_dict()) for agent in self.past]
        return {"anchors": [name for name, _ in self.anchors], "past": past, "added": self.added}

    def restore(self, state: dict[str, Any], like: Network) -> None:
        """Put in the past selves of a saved pool, made as ``like`` is.

        Raises:
            ConfigError: it had other anchors.
            CheckpointError: its past selves are none of this configuration.
        """
        anchors = [name for name, _ in self.anchors]
        if state["anchors"] != anchors:
            raise ConfigError(f"pool: the anchors were {state['anchors']}, and are {anchors}")
        for name, weights in state["past"]:
            like.load_state_dict(fitting("pool", weights, like.state_dict()))
            self.add(like, str(name))
        added = state["added"]
        if type(added) is not int or min(added, self.past.maxlen or 0) != len(self.past):
            raise CheckpointError(f"pool: {shown(added)} were added, and {len(self.past)} are left")
        self.added = added

    def check(self, opponent: NDArray[np.int64], seat: NDArray[np.int8]) -> None:
        """Refuse opponents (both [n]) that ``draw`` cannot have drawn so far.

        Raises:
            CheckpointError: there is no such opponent, or no such seat.
        """
        numbers = (opponent >= NOBODY) & (opponent < len(self.anchors) + self.added)
        seats = np.where(opponent == NOBODY, seat == NOBODY, (seat == 0) | (seat == 1))
        if not (numbers & seats).all():
            raise CheckpointError("opponent, opponent_seat: the pool has none such")

    def __getitem__(self, number: int) -> tuple[str, Agent]:
        """The name and the agent of a number."""
        first = len(self.anchors) + self.added - len(self.past)  # the number of the oldest
        if number < len(self.anchors):
            return self.anchors[number]
        past = self.past[max(number - first, 0)]
        return past.name, past

    @property
    def current(self) -> NDArray[np.int64]:
        """The numbers of the members that new deals are played against."""
        size = len(self.anchors) + self.added
        past = range(size - min(self.config.past, len(self.past)), size)
        return np.array([*range(len(self.anchors)), *past], np.int64)

    def draw(
        self, games: NDArray[np.int64], deals: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Opponents and their seats in the next deals (all [n]); NOBODY in self-play."""
        current = self.current
        places = uniforms(derive("opponents", self.seed, games, deals))
        against = (places < self.config.share) & (len(current) > 0)
        choice = (places[against] / self.config.share * 2 * len(current)).astype(np.int64)
        opponent = np.full(len(games), NOBODY)
        seat = np.full(len(games), NOBODY, np.int8)
        opponent[against], seat[against] = current[choice // 2], choice % 2
        return opponent, seat

    def play(
        self,
        batch: Batch,
        opponent: NDArray[np.int64],
        theirs: NDArray[np.bool_],
        seeds: NDArray[np.uint64],
        actions: NDArray[np.int64],
    ) -> None:
        """Write to ``actions`` what opponents do in the games that are ``theirs`` (all [n])."""
        for number in np.unique(opponent[theirs]).tolist():
            rows = np.flatnonzero(theirs & (opponent == number))
            actions[rows] = ask(*self[number], batch.views(rows, seeds[rows]))


def _specs_in(folder: str) -> list[str]:
    """Of the policies in a folder, but not of what a run goes on from."""
    paths = sorted(Path(folder).glob("*.pt")) if folder else []
    if folder and not paths:
        raise ConfigError(f"pool.folder: there are no checkpoints in {folder}")
    return [f"ppo:{path},sample=true" for path in paths if path.name != "state.pt"]
