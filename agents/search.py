"""Agents that search: they deal what they cannot see anew, and look what comes of each action.

They see views, never a state: the worlds come from ``conquian_env.worlds.redeal``. Budgets are
counts, never seconds, so that a seed gives the same move on any machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from agents.agent import Agent, AgentError
from agents.registry import make_agent
from conquian_env import Batch, Phase, RuleSet, View, Views
from conquian_env.actions import NUM_ACTIONS
from conquian_env.errors import OptionError
from conquian_env.observation import LAYOUT
from conquian_env.solver import UNKNOWN, Solver
from conquian_env.worlds import decline_weights, redeal

LEAST_DOUBT = 0.001  # with less, every world may seem impossible
TIE = 1e-6  # what is less than this is no difference
CANDIDATES = 4  # worlds dealt for each that is kept, so that likely ones can be


class Rollout:
    """Plays each action in many worlds to the end by a simpler policy, and picks the best.

    One step of policy improvement (Tesauro and Galperin, 1996): no move is chosen by looking at a
    hidden card, so there is no strategy fusion, and what the policy does badly stays.

    Args:
        worlds: in which each action is tried.
        policy: the agent that plays both seats on, by its spec.
        bias: what the policy's own move is worth more; the others must be better by so much. It
            also decides ties, as between taking and passing what the policy would insist on.
        doubt: how likely a seat is believed to decline a card that it could take, 0.001 to 1; with
            1 all worlds are equally likely.
    """

    def __init__(
        self,
        worlds: str | int = 100,
        policy: str = "expert",
        bias: str | float = 0.05,
        doubt: str | float = 0.3,
    ) -> None:
        self.worlds, self.doubt = whole("worlds", worlds), number("doubt", doubt, LEAST_DOUBT, 1.0)
        self.policy, self.bias = make_agent(policy), number("bias", bias)

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        return decide_each(views, self._decide, self.policy.act(views))

    def _decide(self, view: View, rng: np.random.Generator, preferred: int) -> int:
        legal = np.array(view.legal_actions)
        worlds = likely_worlds(view, self.worlds, self.doubt, rng)
        rows = np.repeat(worlds.states(), len(legal))
        games = Batch.from_states(view.rules, rows, skip_forced=True)
        games.step(np.tile(legal, self.worlds))
        won = games.reward[:, 0].copy()  # what the first action won at once
        won += play_out(games, self.policy, rng)
        mean = won.reshape(self.worlds, len(legal)).mean(axis=0)
        return best(view, mean, preferred, self.bias)


class PIMC:
    """Perfect-information Monte Carlo: solves many worlds, and picks the best on the average.

    It plays as if it would see the cards later (strategy fusion, Frank and Basin, 1998), so it
    is too hopeful; ``bias`` is a bonus for the move of a player who is not.

    Args:
        worlds: to solve at each decision.
        bias: what the base's move is worth more; at 0 it decides ties.
        base: the other player, by its spec.
        doubt: as for ``Rollout``.
        limit: positions to look at in a world; what they leave open counts as drawn.
    """

    def __init__(
        self,
        worlds: str | int = 10,
        bias: str | float = 0.1,
        base: str = "greedy",
        doubt: str | float = 0.3,
        limit: str | int = 300000,
    ) -> None:
        self.worlds, self.doubt = whole("worlds", worlds), number("doubt", doubt, LEAST_DOUBT, 1.0)
        self.bias, self.limit = number("bias", bias), whole("limit", limit)
        self.base = make_agent(base)

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        try:
            solver = Solver(views.rules, self.limit)  # of this call alone: others may run beside it
        except OptionError as error:
            raise AgentError(f"pimc: {error}") from None
        return decide_each(views, partial(self._decide, solver), self.base.act(views))

    def _decide(self, solver: Solver, view: View, rng: np.random.Generator, preferred: int) -> int:
        if view.phase == Phase.GIVE:  # gifts are chosen unseen: nothing to solve
            return preferred
        worlds = likely_worlds(view, self.worlds, self.doubt, rng)
        values, _ = solver.action_values(worlds.states())
        mean = np.where(values == UNKNOWN, 0, values)[:, list(view.legal_actions)].mean(axis=0)
        return best(view, mean, preferred, self.bias)


@dataclass
class Node:
    """What simulations know of one public course of events; all arrays are float64 [83].

    ``visits`` and ``won`` (by the seat to act) count simulations by action.
    """

    visits: NDArray[np.float64] = field(default_factory=lambda: np.zeros(NUM_ACTIONS))
    won: NDArray[np.float64] = field(default_factory=lambda: np.zeros(NUM_ACTIONS))
    children: dict[tuple[int, ...], "Node"] = field(default_factory=dict)

    def choose(self, mask: NDArray[np.bool_], preferred: int, explore: float) -> int:
        """An action by its mean and a bonus for few visits; it is counted as visited.

        The policy's move has half of the bonus (PUCT, Rosin, 2011), an untried one the node's mean.
        """
        total = self.visits.sum()
        mean = np.full(NUM_ACTIONS, self.won.sum() / max(total, 1.0))
        np.divide(self.won, self.visits, out=mean, where=self.visits > 0)
        prior = mask / (2.0 * mask.sum())
        prior[preferred] += 0.5
        bound = mean + explore * prior * np.sqrt(total + 1.0) / (1.0 + self.visits)
        action = int(np.where(mask, bound, -np.inf).argmax())
        self.visits[action] += 1.0
        return action


class ISMCTS:
    """Single-observer information-set tree search (Cowling, Powley and Whitehouse, 2012).

    All simulations share one tree over public events, each in a world of its own; where they leave
    the tree a policy plays on. They run in groups, whose members count each other's visits.

    Args:
        simulations: for each decision.
        policy: the agent that plays both seats on, by its spec.
        doubt: as for ``Rollout``.
        explore: weight of the confidence bound.
        group: simulations side by side.
    """

    def __init__(
        self,
        simulations: str | int = 1000,
        policy: str = "greedy",
        doubt: str | float = 0.3,
        explore: str | float = 1,
        group: str | int = 100,
    ) -> None:
        self.simulations, self.group = whole("simulations", simulations), whole("group", group)
        self.doubt, self.explore = (
            number("doubt", doubt, LEAST_DOUBT, 1.0),
            number("explore", explore),
        )
        self.policy = make_agent(policy)

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        return decide_each(views, self._decide)

    def _decide(self, view: View, rng: np.random.Generator) -> int:
        root = Node()
        for start in range(0, self.simulations, self.group):
            count = min(self.group, self.simulations - start)
            worlds = likely_worlds(view, count, self.doubt, rng)
            self._simulate(root, worlds.states(), view.rules, rng)
        return int(root.visits.argmax())

    def _simulate(
        self, root: Node, rows: NDArray[np.void], rules: RuleSet, rng: np.random.Generator
    ) -> None:
        """Play each row down the tree, one node beyond it, and on by the policy."""
        games = Batch.from_states(rules, rows, skip_forced=True)
        paths: list[list[tuple[Node, int, int]]] = [[] for _ in rows]
        won, nodes = np.zeros(len(rows)), dict.fromkeys(range(len(rows)), root)
        while nodes:
            index = np.array(list(nodes))
            seeds = rng.integers(0, 1 << 64, len(index), np.uint64)
            preferred = self.policy.act(games.views(index, seeds)).tolist()
            chosen = {
                i: node.choose(games.mask[i], preferred[k], self.explore)
                for k, (i, node) in enumerate(nodes.items())
            }
            for i, action in chosen.items():
                paths[i].append((nodes[i], action, int(games.actor[i])))
            games.step(list(chosen.values()), index)
            won[index] += games.reward[index, 0]
            public = np.column_stack(
                [games.actor[index], *(games.observation[index, place] for place in PUBLIC)]
            )
            nodes = {
                i: node.children.setdefault((chosen[i], *event), Node())
                for (i, node), event in zip(nodes.items(), public.tolist(), strict=True)
                if node.visits[chosen[i]] > 1 and not games.done[i]
            }
        won += play_out(games, self.policy, rng)
        for path, result in zip(paths, won, strict=True):
            for node, action, seat in path:
                node.won[action] += result if seat == 0 else -result


# The numbers of an observation that both seats see: which card is on offer, how it came, and
# what there is to decide.
PUBLIC = [
    place
    for name in ("face_up", "phase", "source", "stock_left")
    for place in range(LAYOUT[name].start, LAYOUT[name].stop)
]


def decide_each(
    views: Views, decide: Callable[..., int], *arguments: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Ask for every decision that is one; forced moves are made at once. int64 [n]."""
    actions: NDArray[np.int64] = views.mask.argmax(axis=1)
    for i in np.flatnonzero(views.mask.sum(axis=1) > 1).tolist():
        rng = np.random.default_rng(views.seeds[i])
        actions[i] = decide(views.view(i), rng, *(argument[i] for argument in arguments))
    return actions


def best(view: View, mean: NDArray[np.floating], preferred: int, bias: float) -> int:
    """The legal action with the best mean for the seat, ``preferred`` having a bonus."""
    score = mean if view.seat == 0 else -mean
    legal = list(view.legal_actions)
    score[legal.index(preferred)] += bias + TIE
    return legal[int(score.argmax())]


def likely_worlds(view: View, n: int, doubt: float, rng: np.random.Generator) -> Batch:
    """``n`` worlds, drawn by what the other seat declined (see ``decline_weights``)."""
    if doubt == 1.0:
        return redeal(view, rng, n)
    worlds = redeal(view, rng, CANDIDATES * n)
    weights = decline_weights(view, worlds, doubt)
    kept = rng.choice(len(weights), n, p=weights / weights.sum())
    return Batch.from_states(view.rules, worlds.states()[kept])


def play_out(games: Batch, policy: Agent, rng: np.random.Generator) -> NDArray[np.float64]:
    """Play games to their end; what seat 0 wins from here on, float64 [n]."""
    won, rows = np.zeros(games.num_games), np.flatnonzero(~games.done)
    while len(rows):
        seeds = rng.integers(0, 1 << 64, len(rows), np.uint64)
        games.step(policy.act(games.views(rows, seeds)), rows)
        won[rows] += games.reward[rows, 0]
        rows = rows[~games.done[rows]]
    return won


def whole(name: str, value: str | int) -> int:
    """A whole number from 1, as an agent's spec writes it."""
    text = str(value)
    if not text.isdecimal() or not 1 <= int(text) < 1 << 40:
        raise AgentError(f"{name} must be a whole number from 1, not {text!r:.60}")
    return int(text)


def number(name: str, value: str | float, least: float = 0.0, most: float = 1e9) -> float:
    """A number between bounds, as an agent's spec writes it."""
    try:
        found = float(value)
    except ValueError:
        found = float("nan")
    if not least <= found <= most:
        raise AgentError(f"{name} must be a number from {least:g} to {most:g}, not {value!r:.60}")
    return found
