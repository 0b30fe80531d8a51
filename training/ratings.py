"""Ratings of all agents of a tournament, from its games.

Strengths are those of Bradley and Terry (Rank analysis of incomplete block designs, 1952), a draw
being half a win, on the scale of Elo: 400 points ahead is ten to one. Each pairing is given one
game more that is won and one that is lost, so that an agent that won everything has a rating. The
fit is that of the library ``choix`` (Maystre and Grossglauser, Fast and accurate inference of
Plackett-Luce models, 2015).

A deal is the same cards in every pairing, so the games of one deal are not independent. Intervals
resample deals, each with all its games in all pairings (a cluster bootstrap), by weights (Rubin,
The Bayesian bootstrap, 1981): each deal weighs Exp(1), and so does each game that was added, which
keeps an interval open where all games ended alike.

One number for each agent says little where agents beat each other in a circle. So there are also
the payoffs of each against each, and the mixture of agents that loses to none.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import choix
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.sparse.csgraph import breadth_first_order, connected_components

from conquian_env.errors import OptionError
from training.match import Estimate, MatchResult

Floats = NDArray[np.float64]

ELO = 400 / math.log(10)  # points for each unit of log odds
RESAMPLES = 1000
DRAWN = 5_000_000  # weights at a time, 40 MB; no result depends on it, but for the last bits
STEPS = 10_000  # of a fit, which takes some twenty unless few games link many
ENDS = (2.5, 97.5)  # of an interval, in percent of the resamples
TINY = 1e-6  # a share of a mixture that is none


@dataclass(frozen=True)
class Pairing:
    """The games of two agents.

    Attributes:
        deals: int [deals], their numbers; a number is the same cards in every pairing.
        payoff: float [deals, 2], to ``first``, of the two games of each deal.
    """

    first: str
    second: str
    deals: NDArray[np.integer]
    payoff: NDArray[np.floating]

    @classmethod
    def of(cls, match: MatchResult) -> "Pairing":
        """A match, whose deals are numbered from 0."""
        return cls(match.first, match.second, np.arange(len(match.payoff)), match.payoff)


@dataclass(frozen=True)
class Rating:
    """What is said of one agent.

    Attributes:
        elo: points more than the anchor.
        low, high: 95 % interval of these.
        lead: points more than the next agent, none for the last one.
        share: how often the mixture plays the agent, none without a mixture.
        value: mean payoff against the mixture.
    """

    agent: str
    elo: float
    low: float
    high: float
    lead: Estimate | None
    share: float | None
    value: float | None

    def __str__(self) -> str:
        return f"{self.elo:+.0f} [{self.low:+.0f}, {self.high:+.0f}]"

    @property
    def apart(self) -> bool:
        """Whether the agent is told apart from the next one: the lead's interval is above 0."""
        return self.lead is not None and self.lead.low > 0


@dataclass(frozen=True)
class Ratings:
    """All agents, the best first.

    Attributes:
        anchor: the agent whose rating is 0.
        payoff: float64 [agents, agents], mean payoff of row against column in the order of the
            ranking; NaN where they did not meet, 0 against itself.
        low, high: float64 [agents, agents], 95 % intervals of these, with the games that were
            added.
        cycle: agents of which each beats the next, and the last the first, all intervals above 0;
            empty if there is none.
    """

    anchor: str
    ranking: tuple[Rating, ...]
    payoff: Floats
    low: Floats
    high: Floats
    cycle: tuple[str, ...]

    @property
    def agents(self) -> tuple[str, ...]:
        """Names, the best first."""
        return tuple(rating.agent for rating in self.ranking)

    def against(self, agent: str, other: str) -> Estimate:
        """Mean payoff of ``agent`` against ``other``.

        Raises:
            OptionError: one of them is unknown, or they did not meet.
        """
        for name in (agent, other):
            if name not in self.agents:
                raise OptionError(f"{name!r} is none of the agents")
        cell = self.agents.index(agent), self.agents.index(other)
        if np.isnan(self.payoff[cell]):
            raise OptionError(f"{agent!r} and {other!r} did not meet")
        return Estimate(*(float(table[cell]) for table in (self.payoff, self.low, self.high)))

    @property
    def notes(self) -> tuple[str, ...]:
        """What to say beside the ratings, if anything."""
        return (*self._circle(), *self._unmet())

    def _circle(self) -> Iterator[str]:
        if self.cycle:
            beaten = (*self.cycle[1:], self.cycle[0])
            links = (
                f"{agent} beats {other} by {self.against(agent, other)}"
                for agent, other in zip(self.cycle, beaten, strict=True)
            )
            yield f"no ranking is true to all results: {', '.join(links)}"

    def _unmet(self) -> Iterator[str]:
        unmet = np.argwhere(np.triu(np.isnan(self.payoff)))
        if len(unmet):
            agent, other = (self.agents[place] for place in unmet[0])
            yield f"no mixture of agents: {agent} and {other} did not meet"


@dataclass(frozen=True)
class _Tally:
    """All games, counted by deal.

    Agents come by name, pairings by the names of both, deals by number: the order in which they
    were given changes nothing.

    Attributes:
        pairs: int64 [2, pairings], agents, the first of each pairing having the earlier name.
        counts: float64 [deals, 3, pairings], by deal: the score of the first (a draw being a
            half), games, and the sum of payoffs to the first.
    """

    names: list[str]
    pairs: NDArray[np.int64]
    counts: Floats

    def table(self, values: Floats) -> Floats:
        """What each pairing's first makes of its second as [agents, agents], antisymmetric."""
        first, second = self.pairs
        table = np.full((len(self.names),) * 2, np.nan)
        np.fill_diagonal(table, 0.0)
        table[first, second], table[second, first] = values, -values
        return table

    def elo(self, counts: Floats, start: Floats | None = None) -> Floats:
        """Ratings, float64 [agents], from counts [3, pairings]; ``start`` is a guess of them."""
        first, second = self.pairs
        wins = np.zeros((len(self.names),) * 2)
        wins[first, second], wins[second, first] = counts[0], counts[1] - counts[0]
        guess = None if start is None else start / ELO
        try:
            return ELO * choix.ilsr_pairwise_dense(wins, initial_params=guess, max_iter=STEPS)
        except RuntimeError:
            raise OptionError("too few games link many others: the ratings do not settle") from None


def rate(
    agents: Sequence[str],
    pairings: Sequence[Pairing],
    anchor: str,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Ratings:
    """Rate agents that games link; the order of agents, pairings and deals changes nothing.

    Ratings count games won, drawn and lost, whatever the stakes; payoffs count the stakes.

    Args:
        agents: names.
        pairings: one for each two agents that met; they may have played different deals.
        anchor: the agent whose rating is 0, by which intervals are of the difference to it.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        OptionError: an argument is out of range, an agent is unknown, or no games link some agents.
    """
    if resamples < 2:
        raise OptionError(f"resamples must be at least 2 for an interval, not {resamples}")
    _check_agents(agents, anchor)
    _check_pairings(agents, pairings)
    tally = _tally(agents, pairings)
    _check_linked(tally)
    drawn = _resampled(tally.counts, resamples, seed)
    elo, elos = _fitted(tally, drawn, anchor)
    order = np.argsort(-elo, kind="stable")
    names = [tally.names[place] for place in order]
    payoff, low, high = (table[np.ix_(order, order)] for table in _payoffs(tally, drawn))
    ranking = _ranking(names, elo[order], elos[:, order], payoff)
    return Ratings(anchor, ranking, payoff, low, high, tuple(names[i] for i in _cycle(low)))


def _check_agents(agents: Sequence[str], anchor: str) -> None:
    if len(agents) < 2:
        raise OptionError("ratings need at least two agents")
    for agent in agents:
        if list(agents).count(agent) > 1:
            raise OptionError(f"agent {agent!r} comes twice")
    if anchor not in agents:
        raise OptionError(f"anchor {anchor!r} is none of the agents")


def _check_pairings(agents: Sequence[str], pairings: Sequence[Pairing]) -> None:
    met = set()
    for pairing in pairings:
        both = frozenset((pairing.first, pairing.second))
        for agent in sorted(both - set(agents)):
            raise OptionError(f"{agent!r} has games but is none of the agents")
        if len(both) == 1:
            raise OptionError(f"{pairing.first!r} is paired with itself")
        if both in met:
            raise OptionError(f"{pairing.first!r} and {pairing.second!r} are paired twice")
        met.add(both)
        _check_games(pairing)
    if not pairings:
        raise OptionError("there are no games")


def _check_games(pairing: Pairing) -> None:
    name = f"{pairing.first} against {pairing.second}"
    deals, payoff = np.asarray(pairing.deals), np.asarray(pairing.payoff)
    if deals.ndim != 1 or not np.issubdtype(deals.dtype, np.integer):
        raise OptionError(f"{name}: deals must be a row of whole numbers")
    if payoff.shape != (len(deals), 2):
        raise OptionError(f"{name}: {len(deals)} deals need payoffs of shape {(len(deals), 2)}")
    if len(deals) < 2:
        raise OptionError(f"{name}: an interval needs at least two deals, not {len(deals)}")
    if len(np.unique(deals)) < len(deals):
        raise OptionError(f"{name}: a deal comes twice")
    if not np.isfinite(payoff).all():
        raise OptionError(f"{name}: a payoff is not a finite number")


def _check_linked(tally: _Tally) -> None:
    met = ~np.isnan(tally.table(np.zeros(tally.pairs.shape[1])))
    count, member = connected_components(met, directed=False)
    if count > 1:
        groups: list[list[str]] = [[] for _ in range(count)]
        for name, group in zip(tally.names, member, strict=True):
            groups[group].append(name)
        raise OptionError(f"no chain of games links {' with '.join(map(str, groups))}")


def _tally(agents: Sequence[str], pairings: Sequence[Pairing]) -> _Tally:
    names = sorted(agents)
    deals = np.unique(np.concatenate([pairing.deals.astype(np.int64) for pairing in pairings]))
    counts = np.zeros((len(deals), 3, len(pairings)))
    by_name = sorted(pairings, key=lambda pairing: sorted((pairing.first, pairing.second)))
    for column, pairing in enumerate(by_name):
        sign = 1 if pairing.first < pairing.second else -1
        payoff = sign * np.asarray(pairing.payoff, np.float64)
        score = (1 + np.sign(payoff)) / 2
        rows = np.searchsorted(deals, pairing.deals)
        counts[rows, :, column] = np.stack(
            [score.sum(axis=1), np.full(len(rows), 2.0), payoff.sum(axis=1)], axis=1
        )
    both = [sorted((pairing.first, pairing.second)) for pairing in by_name]
    pairs = np.array([[names.index(name) for name in pair] for pair in both]).T
    return _Tally(names, pairs, counts)


def _enlarged(counts: Floats, weights: Floats) -> Floats:
    """Counts [..., 3, pairings] with a game won and one lost, of weights [..., 2, pairings]."""
    won, lost = weights[..., 0, :], weights[..., 1, :]
    return counts + np.stack([won, won + lost, won - lost], axis=-2)


def _resampled(counts: Floats, resamples: int, seed: int) -> Floats:
    """Enlarged counts of resampled deals, float64 [resamples, 3, pairings]."""
    rng = np.random.default_rng(seed)
    deals, kinds, pairings = counts.shape
    added = rng.exponential(size=(resamples, 2, pairings))
    flat, step = counts.reshape(deals, -1), max(DRAWN // deals, 1)
    chunks = [
        rng.exponential(size=(min(step, resamples - start), deals)) @ flat
        for start in range(0, resamples, step)
    ]
    return _enlarged(np.concatenate(chunks).reshape(resamples, kinds, pairings), added)


def _fitted(tally: _Tally, drawn: Floats, anchor: str) -> tuple[Floats, Floats]:
    """Ratings, float64 [agents], and those of the resamples, [resamples, agents]."""
    total = tally.counts.sum(axis=0)
    elo = tally.elo(_enlarged(total, np.ones((2, total.shape[1]))))
    elos = np.array([tally.elo(counts, elo) for counts in drawn])
    base = tally.names.index(anchor)
    return elo - elo[base], elos - elos[:, [base]]


def _payoffs(tally: _Tally, drawn: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean payoffs with the ends of their intervals, float64 [agents, agents] each."""
    total = tally.counts.sum(axis=0)
    ends = np.percentile(drawn[:, 2] / drawn[:, 1], ENDS, axis=0)
    # What is low for one of the two is high for the other, and the mean, without the games that
    # were added, may be beyond either.
    tables = [tally.table(values) for values in (total[2] / total[1], *ends)]
    return tables[0], np.min(tables, axis=0), np.max(tables, axis=0)


def _interval(value: float, resampled: Floats) -> Estimate:
    low, high = np.percentile(resampled, ENDS)
    return Estimate(float(value), float(low), float(high))


def _ranking(names: list[str], elo: Floats, elos: Floats, payoff: Floats) -> tuple[Rating, ...]:
    """A rating for each agent; all arrays come in their order."""
    low, high = np.percentile(elos, ENDS, axis=0).tolist()
    leads: list[Estimate | None] = [
        _interval(elo[place] - elo[place + 1], elos[:, place] - elos[:, place + 1])
        for place in range(len(names) - 1)
    ]
    shares: list[float | None] = [None] * len(names)
    values = shares
    if not np.isnan(payoff).any():
        mixture = nash_mixture(payoff)
        shares, values = mixture.tolist(), (payoff @ mixture).tolist()
    columns = names, elo.tolist(), low, high, [*leads, None], shares, values
    return tuple(Rating(*row) for row in zip(*columns, strict=True))


def nash_mixture(payoff: Floats) -> Floats:
    """How often to send each agent so that no agent wins against the mixture: float64 [agents].

    Of several such mixtures it is the one of maximum entropy, which shares alike among agents that
    are alike (Balduzzi et al., Re-evaluating evaluation, 2018).

    Args:
        payoff: float64 [agents, agents] of row against column, antisymmetric.

    Raises:
        OptionError: it is not.
    """
    if not np.array_equal(payoff, -payoff.T):
        raise OptionError("payoffs of a mixture must be known and antisymmetric")
    game = payoff / (abs(payoff).max() or 1.0)
    corners = np.array([_largest_share(game, agent) for agent in range(len(game))])
    played = corners.diagonal() > TINY
    mixture = corners[played].mean(axis=0)
    if np.ptp(corners, axis=0).max() > TINY:
        mixture[played] = _most_even(game[:, played], mixture[played])
    mixture = np.where(played, np.maximum(mixture, 0.0), 0.0)
    normal: Floats = mixture / mixture.sum()
    return normal


def _largest_share(game: Floats, agent: int) -> Floats:
    """The mixture, among all that no agent wins against, that plays ``agent`` most.

    A maximin mixture wins the value of the game against every agent; by symmetry that is 0.
    """
    n = len(game)
    found = linprog(-np.eye(n)[agent], game, np.zeros(n), np.ones((1, n)), [1.0], (0, 1))
    mixture: Floats = found.x
    return mixture


def _most_even(game: Floats, start: Floats) -> Floats:
    """The mixture of the columns of ``game`` that has most entropy and that no row wins against."""
    n = game.shape[1]
    found = minimize(
        lambda mixture: mixture @ np.log(mixture),
        start / start.sum(),
        jac=lambda mixture: np.log(mixture) + 1,
        method="SLSQP",
        bounds=[(TINY / n, 1)] * n,
        constraints=[
            {"type": "eq", "fun": lambda mixture: mixture.sum() - 1, "jac": lambda _: np.ones(n)},
            {"type": "ineq", "fun": lambda mixture: -game @ mixture, "jac": lambda _: -game},
        ],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    mixture: Floats = found.x
    return mixture


def _cycle(low: Floats) -> list[int]:
    """Of all circles of wins the one whose least certain win is most certain, or nothing.

    Wins are added by how far their interval is above 0 until one closes a circle.
    """
    wins = np.argwhere(low > 0)
    beats = np.zeros(low.shape, bool)
    for winner, loser in sorted(wins.tolist(), key=lambda win: -low[win[0], win[1]]):
        beats[winner, loser] = True
        path = _path(beats, loser, winner)
        if path:
            start = path.index(min(path))
            return path[start:] + path[:start]
    return []


def _path(beats: NDArray[np.bool_], start: int, end: int) -> list[int]:
    """The shortest chain of wins from one agent to another, or nothing."""
    reached, before = breadth_first_order(beats, start)
    if end not in reached:
        return []
    path = [end]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return path[::-1]
