"""How strong a match shows an agent to be: Elo, normalised Elo, and when to stop.

The unit is the pair: one deal played twice with the seats swapped. Pairs are independent, the two
games of a pair are not. Where a game pays +1, 0 or -1, a pair comes to one of five totals, and five
counts say all that a match tells (the *pentanomial* of chess engine testing).

All follows from one question: how likely can a distribution over the totals make these counts, if
its mean, or its t-value (mean over standard deviation, of a pair's total), is given? Intervals are
those of ``training.likelihood``. The sequential test is the generalised SPRT of M. Van den Bergh (A
Practical Introduction to the GSPRT; Comments on Normalized Elo), as fishtest uses it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from conquian_env.errors import OptionError, shown
from training.likelihood import farthest
from training.match import Estimate, estimate_counted

Floats = NDArray[np.float64]
Verdict = Literal["H0 accepted", "H1 accepted", "go on"]

PENTANOMIAL = (-2, -1, 0, 1, 2)  # a pair's totals where a game pays +1, 0 or -1
NELO = 800 / math.log(10) / math.sqrt(2)  # of one t-value of pairs
UNSEEN = 1e-3  # counted for a total that never came, as fishtest does
MOST_NELO = 100.0  # within it the fixed point below was always found, whatever the counts
MOST_TOTAL = 10**6  # beyond it UNSEEN is lost to rounding
ROUNDS, STEPS = 1000, 100  # more than were ever needed


@dataclass(frozen=True)
class Tally:
    """How often the pairs of a match came to each total.

    Attributes:
        counts: [k], none negative, not all 0.
        values: [k], ascending, the totals that can come, to the first agent; as what it wins the
            other could win, each is the opposite of another, or 0.

    Raises:
        OptionError: the counts are anything else.
    """

    counts: Sequence[int]
    values: Sequence[int] = PENTANOMIAL

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.values) or min(self.counts) < 0 or not sum(self.counts):
            raise OptionError(
                f"counts must be {len(self.values)}, none negative and not all 0, not "
                f"{shown(self.counts)}"
            )

    @classmethod
    def of(cls, payoff: ArrayLike) -> Self:
        """The tally of a match.

        The totals that can come are those that did, 0, twice the highest payoff, and their
        opposites.

        Args:
            payoff: [pairs, 2] of each deal's games, as ``MatchResult.payoff``.

        Raises:
            OptionError: it has another shape, no pair, or something else than whole numbers.
        """
        games = np.asarray(payoff, np.float64)
        if games.ndim != 2 or games.shape[1] != 2 or not len(games):
            raise OptionError(f"payoff must have shape [pairs, 2], not {list(games.shape)}")
        if not (np.abs(games) <= MOST_TOTAL / 2).all() or (games % 1).any():
            raise OptionError(f"payoff must be whole numbers within ±{MOST_TOTAL // 2}")
        totals = games.sum(axis=1).astype(int)
        return cls._counted(Counter(totals.tolist()), 2 * int(np.abs(games).max()))

    @classmethod
    def _counted(cls, totals: "Counter[int]", most: int) -> Self:
        """From how often each total came, and the highest that could."""
        values: Sequence[int] = PENTANOMIAL
        if most > 2:
            values = sorted({-most, 0, most, *totals, *(-total for total in totals)})
        return cls(tuple(totals[value] for value in values), tuple(values))

    def __add__(self, other: "Tally") -> "Tally":
        """The tally of both matches as one."""
        totals: Counter[int] = Counter()
        for part in (self, other):
            totals.update(dict(zip(part.values, part.counts, strict=True)))
        return self._counted(+totals, max(self.values[-1], other.values[-1]))

    @property
    def pairs(self) -> int:
        """How many there are."""
        return sum(self.counts)

    @property
    def score(self) -> Estimate:
        """Mean payoff of a game, the same as ``MatchResult.score``."""
        return estimate_counted(np.array(self.values) / 2, np.array(self.counts))

    @property
    def points(self) -> Estimate:
        """What chess calls the score of a game, in [0, 1]: a win is 1, a draw 1/2.

        Raises:
            OptionError: games pay more than +1 or less than -1.
        """
        if self.values[-1] > 2:
            raise OptionError(
                f"points and Elo are of games that pay +1, 0 or -1; a pair can come to "
                f"{self.values[-1]} here; nelo takes any payoffs"
            )
        low, high = (float(p @ self.values) for p in self._ends(np.array(self.values)))
        return _ordered(*(0.5 + total / 4 for total in (low, self._mean, high)))

    @property
    def elo(self) -> Estimate:
        """Logistic Elo, 400 log10 of the odds, of the points and their interval; ±inf at the ends.

        Raises:
            OptionError: games pay more than +1 or less than -1.
        """
        points = self.points
        return Estimate(*map(elo_of, (points.mean, points.low, points.high)))

    @property
    def nelo(self) -> Estimate:
        """Normalised Elo: the t-value, in units that make it Elo near 0 where no game is drawn.

        It takes any payoffs, and tells how many games show the difference. ±inf where all pairs
        came to one total other than 0. The interval is that of what moves the t-value to first
        order.
        """
        values = np.array(self.values)
        middle, direction = _t_value(self._shares, values), values
        if spread := float(_moments(self._shares, values)[1]):
            apart = (values - self._mean) / spread
            direction = apart - middle / 2 * apart**2
        low, high = (_t_value(p, values) for p in self._ends(direction))
        return _ordered(*(NELO * t for t in (low, middle, high)))

    @property
    def los(self) -> float:
        """Likelihood of superiority in [0, 1]: 1 - p of the one-sided test that the mean is 0.

        By the signed root of the likelihood ratio, which has an answer for one pair, too.
        """
        loss = _loss(_seen([self.counts]), np.array(self.values), 0.0)
        root = math.sqrt(2 * max(0.0, float(loss[0])))
        return NormalDist().cdf(math.copysign(root, self._mean) if self._mean else 0.0)

    def __str__(self) -> str:
        ends = (f"{end:+z.1f}" for end in (self.nelo.low, self.nelo.high))
        nelo = f"{self.nelo.mean:+z.1f} [{', '.join(ends)}]"
        return f"{self.pairs} pairs, score {self.score}, nElo {nelo}, LOS {100 * self.los:.1f} %"

    @property
    def _shares(self) -> Floats:
        return np.array(self.counts) / self.pairs

    @property
    def _mean(self) -> float:
        return float(np.dot(self.counts, self.values)) / self.pairs

    def _ends(self, direction: Floats) -> tuple[Floats, Floats]:
        counts = np.array(self.counts)
        return farthest(-direction, counts), farthest(direction, counts)


@dataclass(frozen=True)
class Sprt:
    """A sequential test of H0, the normalised Elo is ``nelo0``, against H1, it is ``nelo1``.

    Wald's bounds: H1 is accepted with probability at most about ``alpha`` if H0 holds, H0 with at
    most about ``beta`` if H1 does. What the ratio overshoots them by is left out, which errs on the
    safe side.

    Raises:
        OptionError: ``nelo0`` is not below ``nelo1``, one is beyond ±100, or ``alpha`` and ``beta``
            are no probabilities that add up to less than 1.
    """

    nelo0: float
    nelo1: float
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        if not -MOST_NELO <= self.nelo0 < self.nelo1 <= MOST_NELO:
            raise OptionError(
                f"nelo0 must be below nelo1, both within ±{MOST_NELO:g}, not {self.nelo0} and "
                f"{self.nelo1}"
            )
        if not (self.alpha > 0 and self.beta > 0 and self.alpha + self.beta < 1):
            raise OptionError(
                f"alpha and beta must be above 0 and add up to less than 1, not {self.alpha} and "
                f"{self.beta}"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """The log likelihood ratios at which H0 and H1 are accepted."""
        return math.log(self.beta / (1 - self.alpha)), math.log((1 - self.beta) / self.alpha)

    def llr(self, tally: Tally) -> float:
        """The log likelihood ratio of H1 to H0, each at its likeliest."""
        return float(self.llrs([tally.counts], tally.values)[0])

    def llrs(self, counts: ArrayLike, values: Sequence[int] = PENTANOMIAL) -> Floats:
        """The log likelihood ratios of many tallies of the same values, float64 [n].

        Args:
            counts: [n, k], unchecked.
            values: [k], as in ``Tally``.
        """
        seen, totals = _seen(counts), np.array(values)
        return _loss(seen, totals, self.nelo0 / NELO) - _loss(seen, totals, self.nelo1 / NELO)

    def verdict(self, ratio: float) -> Verdict:
        """Which hypothesis a log likelihood ratio accepts, if one."""
        low, high = self.bounds
        return "H0 accepted" if ratio <= low else "H1 accepted" if ratio >= high else "go on"


def elo_of(points: float) -> float:
    """Logistic Elo of points in [0, 1], ±inf at the ends."""
    if points in (0, 1):
        return math.copysign(math.inf, points - 0.5)
    return 400 * math.log10(points / (1 - points))


def _ordered(low: float, middle: float, high: float) -> Estimate:
    return Estimate(middle, min(low, middle), max(middle, high))


def _moments(p: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of distributions [k] or [k, n] over values of that shape."""
    mean = (p * values).sum(axis=0)
    return mean, np.sqrt((p * (values - mean) ** 2).sum(axis=0))


def _t_value(p: Floats, values: Floats) -> float:
    """Mean over standard deviation of one distribution [k]; without any spread ±inf, or 0."""
    mean, spread = (float(moment) for moment in _moments(p, values))
    if spread:
        return mean / spread
    return math.copysign(math.inf, mean) if mean else 0.0


def _seen(counts: ArrayLike) -> Floats:
    """Counts [n, k] with a little for each total that never came, float64 [k, n]."""
    given = np.asarray(counts, np.float64).T
    return np.where(given == 0, UNSEEN, given).copy(order="C")


def _loss(counts: Floats, values: Floats, t_value: float) -> Floats:
    """Log likelihood that the best distribution with this t-value falls short of the best of all.

    By Lagrange that distribution is ``shares / (1 + x pull)``, where ``pull`` is how the mean less
    t times the standard deviation moves with each share. The pull depends on the distribution, so
    both are found in turn (Van den Bergh, Comments on Normalized Elo, section 4.1), from equal
    shares: from those of the counts it may not start where they hardly vary.

    Args:
        counts: [k, n], all above 0.
        values: [k].
        t_value: at most some 0.4.

    Returns:
        [n], 0 or more.
    """
    shares = counts / counts.sum(axis=0)
    p, totals = np.full_like(shares, 1 / len(values)), values[:, None]
    for _ in range(ROUNDS):
        mean, spread = _moments(p, totals)
        pull = totals - t_value * spread / 2 * (1 + ((totals - mean) / spread) ** 2)
        weight = _weight(shares, pull)
        before, p = p, shares / weight
        if np.abs(p - before).max() < 1e-7:  # the loss is flat here: its error is the square
            return np.asarray((counts * np.log(weight)).sum(axis=0))
    raise OptionError(f"no distribution of t-value {t_value:g} was found for {shown(counts)}")


def _weight(shares: Floats, pull: Floats) -> Floats:
    """The ``1 + x pull``, [k, n], by which the mean of ``pull`` under ``shares / weight`` is 0.

    ``x`` lies between 0 and a pole, on the side that the mean under ``shares`` tells. A total that
    hardly came brings it so near the pole that its distance, not ``x``, has to be kept. The mean
    times the distance is convex in it, so Newton's steps from where x is 0 come down to the root.
    """
    pull = pull * np.where((shares * pull).sum(axis=0) < 0, -1, 1)
    lowest = pull.min(axis=0)
    at_pole, distance = 1 - pull / lowest, -1 / lowest
    for _ in range(STEPS):
        weight: Floats = at_pole - distance * pull
        drawn = shares / weight * pull
        mean = drawn.sum(axis=0)
        slope = distance * (drawn / weight * pull).sum(axis=0)
        before, distance = distance, distance * slope / (mean + slope)
        if (before - distance <= 1e-10 * distance).all():
            break
    return np.asarray(at_pole - distance * pull)
