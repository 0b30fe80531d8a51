"""A match on mirrored deals: each deal is played twice, with the seats swapped."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.agent import Agent, AgentError
from agents.process import FaultError, ProcessAgent
from conquian_env import Batch, Game, GameRecord, RuleSet, Views
from conquian_env.actions import NUM_ACTIONS
from conquian_env.errors import IllegalActionError, OptionError
from conquian_env.observation import LAYOUT
from conquian_env.seeds import deal_seeds, decision_seeds
from conquian_env.view import legal_choices
from training.likelihood import farthest

CHUNK = 8192  # deals played side by side; no result depends on it, but for a network's last bits
GROUP = 32  # decisions that an agent in a process of its own is asked for at a time
MOST_PAIRS = 10**7  # all results are kept in memory
MOST_FAULTS = 3  # in one game of each deal of a part; after them the agent loses all others
GIVEN_UP = "given up"  # the kind of forfeit of all others
STAKE = LAYOUT["stake"].start
NOTHING = -1  # what is done in a game that is over


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval, see ``training.likelihood``."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"

    @property
    def short(self) -> str:
        """The mean and half the width of the interval."""
        return f"{self.mean:+.3f} ±{(self.high - self.low) / 2:.3f}"


@dataclass(frozen=True)
class Forfeit:
    """A game that an agent could not go on with; the other seat has won it.

    Attributes:
        deal, game: which it was; game 0 is the one with the first agent in seat 0.
        agent: who failed.
        kind: how, an ``agents.process.Fault``, or ``GIVEN_UP``.
        message: what is known of it.
    """

    deal: int
    game: int
    agent: str
    kind: str
    message: str


@dataclass(frozen=True)
class MatchResult:
    """What ``first`` made of each deal against ``second``.

    Attributes:
        payoff: float32 [pairs, 2], to ``first`` in seat 0 and in seat 1 of each deal.
        plies: int16 [pairs, 2], how long the games were, forced actions included.
        forfeits: games that an agent could not go on with.
        records: of some of the games.
    """

    first: str
    second: str
    payoff: NDArray[np.float32]
    plies: NDArray[np.int16]
    forfeits: tuple[Forfeit, ...] = ()
    records: tuple[GameRecord, ...] = ()

    @property
    def pair_scores(self) -> NDArray[np.float32]:
        """The mean payoff of each deal's two games, float32 [pairs]."""
        means: NDArray[np.float32] = self.payoff.mean(axis=1)
        return means

    @property
    def score(self) -> Estimate:
        """Mean payoff of ``first`` over all games."""
        return estimate(self.pair_scores, self.most)

    @property
    def most(self) -> float:
        """The highest payoff that a game had, and at least 1."""
        return float(np.abs(self.payoff).max(initial=1.0))

    @property
    def counts(self) -> tuple[int, int, int]:
        """Games won, drawn and lost by ``first``."""
        won, drawn, lost = (int((np.sign(self.payoff) == sign).sum()) for sign in (1, 0, -1))
        return won, drawn, lost

    @property
    def seat_0_wins(self) -> int:
        """Games won by seat 0, whoever sat there."""
        return int((self.payoff[:, 0] > 0).sum() + (self.payoff[:, 1] < 0).sum())


def estimate(pair_scores: NDArray[np.float32], most: float = 1.0) -> Estimate:
    """Mean and interval of the scores of deal pairs, which are independent.

    The two games of a pair are not, so single games would give a wrong width.

    Args:
        pair_scores: float32 [pairs], at least two.
        most: the highest that could come; -most is the lowest.
    """
    values, counts = np.unique(pair_scores.astype(np.float64), return_counts=True)
    return estimate_counted(np.append(values, [-most, most]), np.append(counts, [0, 0]))


def estimate_counted(values: NDArray[np.float64], counts: NDArray[np.int64]) -> Estimate:
    """``estimate`` of scores [k], both ends among them, that came so often ([k], 0 for some)."""
    mean = float(values @ counts) / int(counts.sum())
    low, high = (float(farthest(sign * values, counts) @ values) for sign in (-1, 1))
    return Estimate(mean, min(low, mean), max(mean, high))


def play_match(
    first: tuple[str, Agent], second: tuple[str, Agent], rules: RuleSet, pairs: int, seed: int
) -> MatchResult:
    """Play ``pairs`` deals twice each; deals and the agents' own randomness come from ``seed``.

    The two games of a deal are never shown to an agent in one call, where it could compare hands.

    Args:
        first: name and agent.
        second: name and agent.
        rules: what is played.
        pairs: deals, at least two for an interval.
        seed: 0 to 2**64 - 1.

    Raises:
        AgentError: an agent cannot play these rules, or gave something else than a legal action
            for each decision.
        OptionError: there are fewer than two pairs, or more than ``MOST_PAIRS``.
    """
    check_pairs(pairs)
    parts = [
        play_deals(first, second, rules, np.arange(start, min(start + CHUNK, pairs)), seed)
        for start in range(0, pairs, CHUNK)
    ]
    return join(parts)


def play_deals(
    first: tuple[str, Agent],
    second: tuple[str, Agent],
    rules: RuleSet,
    deals: NDArray[np.int64],
    seed: int,
    records: int = 0,
) -> MatchResult:
    """The part of a match that these deals are (int64 [n]); the same whatever else is played.

    ``records`` says of how many of them, the first ones, the games are recorded; the other
    arguments are as in ``play_match``.

    Raises:
        AgentError: as ``play_match``; a ``FaultError`` makes a ``Forfeit``.
    """
    for name, agent in (first, second):
        check_plays(name, agent, rules)
    games = [_Games(first, second, rules, deals, game, seed) for game in range(2)]
    for one in games:
        for _, agent in (first, second):
            if isinstance(agent, ProcessAgent):
                agent.forget()  # what it saw of the deals from the other seat
        one.play()
    return MatchResult(
        first[0],
        second[0],
        np.stack([one.payoff for one in games], 1),
        np.stack([one.plies for one in games], 1),
        tuple(forfeit for one in games for forfeit in one.forfeits),
        tuple(record for row in range(records) for record in (one.record(row) for one in games)),
    )


def join(parts: Sequence[MatchResult]) -> MatchResult:
    """Parts of one match, in the order of their deals, as one."""
    return MatchResult(
        parts[0].first,
        parts[0].second,
        np.concatenate([part.payoff for part in parts]),
        np.concatenate([part.plies for part in parts]),
        tuple(forfeit for part in parts for forfeit in part.forfeits),
        tuple(record for part in parts for record in part.records),
    )


def check_pairs(pairs: int) -> None:
    """Refuse a number of deals that gives no interval, or that is beyond the memory."""
    if type(pairs) is not int or not 2 <= pairs <= MOST_PAIRS:
        raise OptionError(
            f"pairs must be at least 2 for an interval, and at most {MOST_PAIRS}, not {pairs}"
        )


def check_plays(name: str, agent: Agent, rules: RuleSet) -> None:
    """Refuse an agent that plays other rules only."""
    own = getattr(agent, "rules", rules)
    if own != rules:
        raise AgentError(f"agent {name} plays {own}, not {rules}")


class _Games:
    """One game of each of some deals, with ``first`` in seat ``game``.

    Attributes:
        payoff: float32 [n], to ``first``.
        plies: int16 [n].
        forfeits: of games that an agent could not go on with. They are played on by nobody, to
            leave the others as they are.
    """

    def __init__(
        self,
        first: tuple[str, Agent],
        second: tuple[str, Agent],
        rules: RuleSet,
        deals: NDArray[np.int64],
        game: int,
        seed: int,
    ) -> None:
        self.deals, self.game, self.seed = deals, game, seed
        self.agents = (first, second) if game == 0 else (second, first)  # by seat
        seeds = deal_seeds(seed, deals)
        self.batch = Batch(len(deals), rules, seeds, skip_forced=True, autoreset=False)
        self.payoff = self.batch.reward[:, game].copy()
        self.plies = self.batch.ply.copy()
        self.lost = np.zeros(len(deals), np.bool_)  # forfeited
        self.forfeits: list[Forfeit] = []
        self.played: list[NDArray[np.int64]] = []

    def play(self) -> None:
        """All games to their end."""
        batch, actions = self.batch, np.zeros(len(self.deals), np.int64)
        while not (batch.done | self.lost).all():
            actions[:] = batch.mask.argmax(axis=1)  # of those that are over, or forfeited
            for seat in range(2):
                rows = np.flatnonzero((batch.actor == seat) & ~batch.done & ~self.lost)
                if len(rows):
                    actions[rows] = self._ask(seat, rows)
            self.played.append(np.where(batch.done | self.lost, NOTHING, actions))
            batch.step(actions)
            self.payoff += np.where(self.lost, 0, batch.reward[:, self.game])
            self.plies = np.where(self.lost, self.plies, batch.ply)

    def record(self, row: int) -> GameRecord:
        """Of the game of a deal, as far as it was played."""
        start = Game(self.batch.rules, int(deal_seeds(self.seed, self.deals[row : row + 1])[0]))
        actions = [int(step[row]) for step in self.played if step[row] != NOTHING]
        return GameRecord.of(start, actions, (self.agents[0][0], self.agents[1][0]), True)

    def _ask(self, seat: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the agent in a seat does in some games; it forfeits those in which it fails."""
        name, agent = self.agents[seat]
        if isinstance(agent, ProcessAgent) and len(rows) > GROUP:
            return self._ask_halves(seat, rows)
        if sum(forfeit.agent == name for forfeit in self.forfeits) >= MOST_FAULTS:
            return self._forfeit(seat, rows, GIVEN_UP, "it had failed too often")
        games, plies = 2 * self.deals[rows] + self.game, self.batch.ply[rows]
        own_seeds = decision_seeds(self.seed, games, self.batch.actor[rows], plies)
        views = self.batch.views(rows, own_seeds)
        try:
            return ask(name, agent, views)
        except FaultError as error:
            if len(rows) > 1:  # which of them was it?
                return self._ask_halves(seat, rows)
            return self._forfeit(seat, rows, str(error.fault), error.text)

    def _ask_halves(self, seat: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate([self._ask(seat, half) for half in np.array_split(rows, 2)])

    def _forfeit(
        self, seat: int, rows: NDArray[np.int64], kind: str, message: str
    ) -> NDArray[np.int64]:
        """Give some games to the other seat; what to do in them until they are over."""
        stake = self.batch.observation[rows, STAKE].astype(np.float32)
        self.payoff[rows] = -stake if seat == self.game else stake
        self.lost[rows] = True
        name = self.agents[seat][0]
        for deal in self.deals[rows].tolist():
            self.forfeits.append(Forfeit(deal, self.game, name, kind, message))
        actions: NDArray[np.int64] = self.batch.mask[rows].argmax(axis=1)
        return actions


def ask(name: str, agent: Agent, views: Views) -> NDArray[np.int64]:
    """What an agent does, int64 [n], checked.

    Raises:
        AgentError: it failed, or gave something else than a legal action for each decision.
    """
    mask = views.mask.copy()  # the agent's own may be written to
    try:
        chosen = agent.act(views)
    except AgentError:
        raise
    except Exception as error:
        raise AgentError(f"agent {name} failed: {error!r}") from error
    try:
        return legal_choices(f"agent {name}", chosen, mask)
    except IllegalActionError as error:
        raise AgentError(str(error)) from None


def ask_probabilities(name: str, agent: Agent, views: Views) -> NDArray[np.float64]:
    """How likely an agent plays each action, float64 [n, 83], checked; without any, its ``act``.

    Raises:
        AgentError: it failed, or gave something else than probabilities of the legal actions.
    """
    given = getattr(agent, "probabilities", None)
    if given is None:
        chosen = np.zeros((len(views), NUM_ACTIONS))
        chosen[np.arange(len(views)), ask(name, agent, views)] = 1.0
        return chosen
    mask = views.mask.copy()  # the agent's own may be written to
    try:
        probabilities = np.asarray(given(views), np.float64)
    except Exception as error:
        raise AgentError(f"agent {name} failed: {error!r}") from error
    if probabilities.shape != mask.shape:
        raise AgentError(f"agent {name}: probabilities have shape {probabilities.shape}")
    legal = np.where(mask, probabilities, 0.0)
    total = legal.sum(axis=1, keepdims=True)
    if not ((legal >= 0).all() and (legal == probabilities).all() and abs(total - 1).max() < 1e-3):
        raise AgentError(f"agent {name}: these are no probabilities of the legal actions")
    scaled: NDArray[np.float64] = legal / total
    return scaled
