"""A match on mirrored deals: each deal is played twice, with the seats swapped."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.agent import Agent, AgentError
from conquian_env import Batch, RuleSet, Views
from conquian_env.actions import NUM_ACTIONS, PASS
from conquian_env.errors import IllegalActionError, OptionError
from conquian_env.seeds import deal_seeds, decision_seeds
from conquian_env.view import legal_choices

CHUNK = 8192  # deals played side by side; no result depends on it, but for a network's last bits
RESAMPLES = 10_000


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95 % interval."""

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
class MatchResult:
    """What ``first`` made of each deal against ``second``.

    Attributes:
        payoff: float32 [pairs, 2], to ``first`` in seat 0 and in seat 1 of each deal.
    """

    first: str
    second: str
    payoff: NDArray[np.float32]

    @property
    def pair_scores(self) -> NDArray[np.float32]:
        """The mean payoff of each deal's two games, float32 [pairs]."""
        means: NDArray[np.float32] = self.payoff.mean(axis=1)
        return means

    @property
    def score(self) -> Estimate:
        """Mean payoff of ``first`` over all games."""
        return estimate(self.pair_scores)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Games won, drawn and lost by ``first``."""
        won, drawn, lost = (int((np.sign(self.payoff) == sign).sum()) for sign in (1, 0, -1))
        return won, drawn, lost


def estimate(pair_scores: NDArray[np.float32]) -> Estimate:
    """Mean and percentile bootstrap interval over deal pairs, which are independent.

    The two games of a pair are not, so single games would give a wrong width (Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13). Scores take few values, so a
    resample of n pairs is drawn as how often each value comes.

    Args:
        pair_scores: float32 [pairs], at least two.
    """
    n = len(pair_scores)
    values, counts = np.unique(pair_scores.astype(np.float64), return_counts=True)
    resamples = np.random.default_rng(0).multinomial(n, counts / n, RESAMPLES)
    low, high = np.percentile(resamples @ values / n, [2.5, 97.5])
    return Estimate(float(values @ counts) / n, float(low), float(high))


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
        OptionError: there are fewer than two pairs.
    """
    check_pairs(pairs)
    for name, agent in (first, second):
        check_plays(name, agent, rules)
    payoff = np.empty((pairs, 2), np.float32)
    for seat in range(2):
        for start in range(0, pairs, CHUNK):
            deals = np.arange(start, min(start + CHUNK, pairs))
            payoff[deals, seat] = _play(first, second, rules, deals, seat, seed)
    return MatchResult(first[0], second[0], payoff)


def check_pairs(pairs: int) -> None:
    """Refuse a number of deals that gives no interval."""
    if type(pairs) is not int or pairs < 2:
        raise OptionError(f"pairs must be at least 2 for an interval, not {pairs}")


def check_plays(name: str, agent: Agent, rules: RuleSet) -> None:
    """Refuse an agent that plays other rules only."""
    own = getattr(agent, "rules", rules)
    if own != rules:
        raise AgentError(f"agent {name} plays {own}, not {rules}")


def _play(
    first: tuple[str, Agent],
    second: tuple[str, Agent],
    rules: RuleSet,
    deals: NDArray[np.int64],
    seat: int,
    seed: int,
) -> NDArray[np.float32]:
    """Payoff of ``first``, who has ``seat``, by deal: float32 [deals]."""
    games = 2 * deals + seat
    batch = Batch(len(deals), rules, deal_seeds(seed, deals), skip_forced=True, autoreset=False)
    payoff = batch.reward[:, seat].copy()
    actions = np.zeros(len(deals), np.int64)
    while not batch.done.all():
        actions[:] = PASS  # all that a finished game has
        turns = ((first, batch.actor == seat), (second, batch.actor != seat))
        for (name, agent), owned in turns:
            rows = np.flatnonzero(owned & ~batch.done)
            if len(rows):
                own_seeds = decision_seeds(seed, games[rows], batch.actor[rows], batch.ply[rows])
                actions[rows] = ask(name, agent, batch.views(rows, own_seeds))
        batch.step(actions)
        payoff += batch.reward[:, seat]
    return payoff


def ask(name: str, agent: Agent, views: Views) -> NDArray[np.int64]:
    """What an agent does, int64 [n], checked.

    Raises:
        AgentError: it failed, or gave something else than a legal action for each decision.
    """
    mask = views.mask.copy()  # the agent's own may be written to
    try:
        chosen = agent.act(views)
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
