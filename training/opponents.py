"""Whom the policy plays besides itself: fixed agents, and copies of what it was."""

import copy
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from agents import make_agent
from agents.agent import Agent, uniforms
from agents.network import Network
from agents.policy import NetworkAgent
from conquian_env import Batch, RuleSet
from conquian_env.seeds import derive
from training.config import PoolConfig
from training.match import ask, check_plays

NOBODY = -1  # the opponent in self-play, and its seat


@dataclass(frozen=True)
class Member:
    """An opponent by its name."""

    name: str
    agent: Agent


@dataclass(frozen=True)
class PastSelf(Member):
    """What the policy was."""

    agent: NetworkAgent


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
        found = sorted(Path(config.folder).glob("*.pt")) if config.folder else []
        specs = [*config.anchors, *(f"ppo:{path},sample=true" for path in found)]
        self.anchors = [Member(spec, make_agent(spec)) for spec in specs]
        for anchor in self.anchors:
            check_plays(anchor.name, anchor.agent, rules)
        self.past: deque[PastSelf] = deque(maxlen=config.past + 1)
        self.added = 0

    def add(self, network: Network, name: str) -> None:
        """Put a copy of the policy into the pool, for the deals that begin from now on."""
        if self.config.past:
            agent = NetworkAgent(copy.deepcopy(network), self.rules, sample=True, name=name)
            self.past.append(PastSelf(name, agent))
            self.added += 1

    def restore(self, past: list[tuple[str, dict[str, Tensor]]], added: int, like: Network) -> None:
        """Put in the past selves of a saved run, made as ``like`` is."""
        for name, weights in past:
            network = copy.deepcopy(like)
            network.load_state_dict(weights)
            self.add(network, name)
        self.added = added

    def __getitem__(self, number: int) -> Member:
        """The member of a number."""
        first = len(self.anchors) + self.added - len(self.past)  # the number of the oldest
        if number < len(self.anchors):
            return self.anchors[number]
        return self.past[max(number - first, 0)]

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
            member, rows = self[number], np.flatnonzero(theirs & (opponent == number))
            actions[rows] = ask(member.name, member.agent, batch.views(rows, seeds[rows]))
