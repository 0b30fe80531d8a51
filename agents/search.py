"""Agents that search: they deal what they cannot see anew, and look what comes of each action.

They see views, never a state: the worlds come from ``conquian_env.worlds.redeal``.
"""

import numpy as np
from numpy.typing import NDArray

from agents.agent import Agent
from agents.registry import make_agent
from conquian_env import Batch, View, Views
from conquian_env.worlds import decline_weights, redeal

CANDIDATES = 4  # worlds dealt for each that is kept, so that likely ones can be


def likely_worlds(view: View, n: int, doubt: float, rng: np.random.Generator) -> Batch:
    """``n`` worlds, drawn by what the other seat declined (see ``decline_weights``)."""
    if doubt == 1.0:
        return redeal(view, rng, n)
    worlds = redeal(view, rng, CANDIDATES * n)
    weights = decline_weights(view, worlds, doubt)
    kept = rng.choice(len(weights), n, p=weights / weights.sum())
    return Batch.from_states(view.rules, worlds.states()[kept])


class Rollout:
    """Plays each action in many worlds to the end by a simpler policy, and picks the best.

    Args:
        worlds: in which each action is tried.
        policy: the agent that plays both seats on, by its spec.
        doubt: how likely a seat is believed to decline a card that it could take, 0 < … ≤ 1.
    """

    def __init__(self, worlds: str = "100", policy: str = "greedy", doubt: str = "0.3") -> None:
        self.worlds, self.doubt = int(worlds), float(doubt)
        self.policy = make_agent(policy)

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        actions: NDArray[np.int64] = views.mask.argmax(axis=1)
        for i in np.flatnonzero(views.mask.sum(axis=1) > 1).tolist():
            actions[i] = self._decide(views.view(i), np.random.default_rng(views.seeds[i]))
        return actions

    def _decide(self, view: View, rng: np.random.Generator) -> int:
        legal = np.array(view.legal_actions)
        worlds = likely_worlds(view, self.worlds, self.doubt, rng)
        games = Batch.from_states(view.rules, np.repeat(worlds.states(), len(legal)))
        won = play_out(games, np.tile(legal, self.worlds), self.policy, rng)
        score = won.reshape(self.worlds, len(legal)).mean(axis=0)
        return int(legal[np.argmax(score if view.seat == 0 else -score)])


def play_out(
    games: Batch, first: NDArray[np.int64], policy: Agent, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Play games to the end, from a first action on; what seat 0 won, float32 [n]."""
    won, rows = np.zeros(games.num_games, np.float32), np.arange(games.num_games)
    actions = first
    while True:
        games.step(actions, rows)
        won[rows] += games.reward[rows, 0]
        rows = rows[~games.done[rows]]
        if not len(rows):
            return won
        seeds = rng.integers(0, 1 << 64, len(rows), np.uint64)
        actions = policy.act(games.views(rows, seeds))
