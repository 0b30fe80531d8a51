"""Score, Elo, normalised Elo and the sequential test of a match."""

import math
from itertools import product
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import binom

from conquian_env.errors import OptionError
from training import strength as module
from training.match import MatchResult
from training.strength import NELO, PENTANOMIAL, Sprt, Tally, elo_of

VALUES = np.array(PENTANOMIAL)
LIKELY = math.exp(-(1.959963984540054**2) / 2)  # what a 95 % interval's end has of the likelihood

# Counts and bounds, then what fishtest says of them; its tests are public.
FISHTEST = [
    ([13, 37, 50, 25, 3], (0, 4), {"llr": -0.54912, "elo": -43.6578, "nelo": -63.97}),
    ([379, 10170, 21828, 10640, 343], (0, 2), {"llr": 2.9455, "nelo": 3.05}),
    (
        [363, 3205, 5861, 3376, 414],
        (0, 3),
        {"llr": 2.909, "elo": 3.588, "nelo": 5.93, "los": 0.9972},
    ),
]
DIGITS = {"llr": 1e-3, "elo": 1e-3, "nelo": 5e-3, "los": 5e-5}


@pytest.mark.parametrize(("counts", "bounds", "known"), FISHTEST)
def test_the_figures_are_those_of_fishtest(counts, bounds, known):
    tally, sprt = Tally(counts), Sprt(*bounds)
    found = {
        "llr": sprt.llr(tally),
        "elo": tally.elo.mean,
        "nelo": tally.nelo.mean,
        "los": tally.los,
    }
    for name, figure in known.items():
        assert found[name] == pytest.approx(figure, abs=DIGITS[name]), name


def test_the_log_likelihood_ratio_has_fishtests_digits():
    assert Sprt(0, 4).llr(Tally([13, 37, 50, 25, 3])) == pytest.approx(-0.54912, abs=5e-6)


def test_verdicts():
    assert Sprt(0, 5).bounds == pytest.approx((-math.log(19), math.log(19)))
    assert Sprt(0, 5, alpha=0.1, beta=0.2).bounds == pytest.approx((math.log(2 / 9), math.log(8)))
    assert [
        Sprt(*bounds).verdict(Sprt(*bounds).llr(Tally(counts))) for counts, bounds, _ in FISHTEST
    ] == [
        "go on",
        "H1 accepted",
        "go on",
    ]
    losing = Tally([343, 10640, 21828, 10170, 379])
    for sprt in (Sprt(0, 2), Sprt(-2, 0)):
        assert sprt.verdict(sprt.llr(losing)) == "H0 accepted"


@pytest.mark.parametrize("pairs", [1, 7, 1000])
def test_pairs_that_all_ended_alike(pairs):
    """What end of the score leaves the counts e^-1.92 of the likelihood, by hand."""
    end = LIKELY ** (1 / pairs)
    won, lost = Tally([0, 0, 0, 0, pairs]), Tally([pairs, 0, 0, 0, 0])
    assert (won.points.low, won.points.mean, won.points.high) == pytest.approx((end, 1, 1))
    assert won.elo.mean == won.elo.high == won.nelo.mean == won.nelo.high == math.inf
    assert won.elo.low == pytest.approx(400 * math.log10(end / (1 - end)))
    assert lost.elo.mean == lost.elo.low == lost.nelo.mean == lost.nelo.low == -math.inf
    drawn = Tally([0, 0, pairs, 0, 0])
    assert (drawn.points.mean, drawn.elo.mean, drawn.nelo.mean) == (0.5, 0, 0)
    assert (drawn.points.low, drawn.points.high) == pytest.approx((end / 2, 1 - end / 2))
    assert drawn.los == 0.5
    half = Tally([0, 0, 0, pairs, 0])  # won and drawn each time: no spread, yet Elo is finite
    assert (half.elo.mean, half.nelo.mean) == (pytest.approx(190.85, abs=0.01), math.inf)
    # All won or the first half lost are as 2^-pairs to 1.
    sure = NormalDist().cdf(math.sqrt(2 * pairs * math.log(2)))
    assert (won.los, 1 - lost.los) == pytest.approx((sure, sure), abs=2e-3)


def test_won_and_lost_pairs_are_a_binomial():
    """The ends of 30 of 40, each of the likelihood that it must have."""
    tally = Tally([10, 0, 0, 0, 30])
    for end in (tally.points.low, tally.points.high):
        ratio = (end / 0.75) ** 30 * ((1 - end) / 0.25) ** 10
        assert ratio == pytest.approx(LIKELY)
    assert tally.points.low < tally.points.mean == 0.75 < tally.points.high
    by_hand = math.sqrt(2 * (30 * math.log(0.75 / 0.5) + 10 * math.log(0.25 / 0.5)))
    assert tally.los == pytest.approx(NormalDist().cdf(by_hand), abs=1e-4)


def test_large_matches_have_the_normal_approximations_intervals():
    """Standard errors by hand: of the mean, and of the t-value by the delta method."""
    counts = np.array([30000, 10000, 80000, 50000, 60000])
    tally, p, pairs = Tally(counts), counts / counts.sum(), counts.sum()
    mean = p @ VALUES
    spread = np.sqrt(p @ (VALUES - mean) ** 2)
    skew, kurtosis = (p @ ((VALUES - mean) / spread) ** power for power in (3, 4))
    t = mean / spread
    error = np.sqrt((1 - skew * t + (kurtosis - 1) / 4 * t**2) / pairs)
    for estimate, half in ((tally.points, spread / np.sqrt(pairs) / 4), (tally.nelo, NELO * error)):
        assert estimate.high - estimate.mean == pytest.approx(1.96 * half, rel=5e-3)
        assert estimate.mean - estimate.low == pytest.approx(1.96 * half, rel=5e-3)
    assert tally.nelo.mean == pytest.approx(NELO * t)


def small_tallies():
    """All tallies of one to four pairs."""
    return [counts for counts in product(range(5), repeat=5) if 1 <= sum(counts) <= 4]


def test_no_tally_is_without_an_answer():
    sprt, turned_sprt = Sprt(-3, 40), Sprt(-40, 3)
    for counts in small_tallies():
        tally, turned = Tally(counts), Tally(counts[::-1])
        for name in ("points", "elo", "nelo"):
            estimate, other = getattr(tally, name), getattr(turned, name)
            assert estimate.low <= estimate.mean <= estimate.high, counts
            if name == "points":
                assert 0 <= estimate.low < estimate.high <= 1
                assert estimate.low + other.high == pytest.approx(1)
            else:
                assert (other.high, other.mean, other.low) == pytest.approx(
                    (-estimate.low, -estimate.mean, -estimate.high), abs=1e-6
                )
        assert 0 < tally.los < 1
        assert tally.los + turned.los == pytest.approx(1)
        assert sprt.llr(tally) == pytest.approx(-turned_sprt.llr(turned), abs=1e-9)
        assert "nan" not in str(tally)


def test_intervals_and_the_likelihood_of_superiority_agree():
    """One end lies at equality where the test's p is 2.5 %."""
    rng = np.random.default_rng(2)
    crossed = 0
    for counts in rng.multinomial(40, [0.05, 0.15, 0.4, 0.25, 0.15], 200):
        tally = Tally(counts)
        if abs(tally.los - 0.975) > 1e-3:  # what an unseen total counts for
            assert (tally.points.low > 0.5) == (tally.los > 0.975)
            assert (tally.nelo.low > 0) == (tally.los > 0.975) or abs(tally.nelo.low) < 3
            crossed += tally.los > 0.975
    assert 40 < crossed < 160


def likeliest(counts, values, t_value):
    """The highest log likelihood of counts given the t-value, by a general optimiser."""

    def moments(logits):
        p = np.exp(logits - logits.max())
        p /= p.sum()
        mean = p @ values
        return p, mean, np.sqrt(p @ (values - mean) ** 2)

    shares = counts / counts.sum()
    found = minimize(
        lambda logits: -shares @ np.log(moments(logits)[0]),
        np.zeros(len(counts)),
        method="SLSQP",
        constraints={
            "type": "eq",
            "fun": lambda logits: moments(logits)[1] - t_value * moments(logits)[2],
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert found.success
    return -found.fun * counts.sum()


@pytest.mark.parametrize(
    ("counts", "values", "bounds"),
    [
        ([13, 37, 50, 25, 3], PENTANOMIAL, (0, 100)),
        ([4, 2, 31, 9, 20], PENTANOMIAL, (-90, -20)),
        ([70, 10], (-1, 1), (-10, 60)),
        ([3, 20, 9, 40, 11, 7, 2], (-8, -4, -1, 0, 1, 4, 8), (5, 80)),
    ],
)
def test_the_ratio_is_of_the_likeliest_distributions(counts, values, bounds):
    tally = Tally(counts, values)
    low, high = (likeliest(np.array(counts), np.array(values), nelo / NELO) for nelo in bounds)
    assert Sprt(*bounds).llr(tally) == pytest.approx(high - low, abs=1e-5)


def test_a_total_that_never_came_counts_as_a_thousandth():
    sprt = Sprt(-20, 60)
    counts = np.array([0.001, 3, 8, 0.001, 4])
    low, high = (likeliest(counts, VALUES, nelo / NELO) for nelo in (-20, 60))
    assert sprt.llr(Tally([0, 3, 8, 0, 4])) == pytest.approx(high - low, abs=1e-5)


@pytest.mark.parametrize("nelo", [-100, 100])
def test_the_widest_bounds_have_an_answer_for_any_counts(nelo):
    rng = np.random.default_rng(3)
    for values in (PENTANOMIAL, (-1, 1), (-64, -8, -1, 0, 1, 8, 64), (-(10**6), -1, 1, 10**6)):
        shares = rng.dirichlet(np.full(len(values), 0.2), 300)
        counts = np.array([rng.multinomial(10 ** rng.integers(1, 10), p) for p in shares])
        ratios = Sprt(*sorted((0, nelo))).llrs(counts, values)
        assert np.isfinite(ratios).all()
    slow = [3198583, 14715279, 5316741, 764786, 45459650, 13241647, 14020668, 2653359, 629287]
    turned = slow if nelo > 0 else slow[::-1]
    assert np.isfinite(Sprt(*sorted((0, nelo))).llrs([turned], (-8, -4, -2, -1, 0, 1, 2, 4, 8)))


def test_many_tallies_at_once_are_each_alone():
    counts = np.random.default_rng(4).multinomial(50, [0.1, 0.2, 0.4, 0.2, 0.1], 20)
    sprt = Sprt(0, 30)
    alone = [sprt.llr(Tally(row)) for row in counts]
    np.testing.assert_allclose(sprt.llrs(counts), alone, atol=1e-7)


def test_what_is_not_found_is_said(monkeypatch):
    monkeypatch.setattr(module, "ROUNDS", 1)
    with pytest.raises(OptionError, match="t-value"):
        Sprt(0, 5).llr(Tally([1, 2, 3, 4, 5]))


def test_a_tally_of_a_match():
    payoff = np.array([[1, 1], [1, -1], [0, 0], [-1, 0], [0, 1], [1, 1]], np.float32)
    tally = Tally.of(payoff)
    assert tally == Tally((0, 1, 2, 1, 2))
    assert tally.pairs == 6
    assert tally.points.mean == pytest.approx((payoff.mean() + 1) / 2)
    assert tally.elo.mean == pytest.approx(400 * math.log10(8 / 4))


def test_stakes_have_normalised_elo_alone():
    payoff = np.array([[4, 1], [-2, 0], [4, 4], [-1, -1], [1, -2]])
    tally = Tally.of(payoff)
    assert tally == Tally((0, 0, 2, 1, 0, 0, 0, 1, 1), (-8, -5, -2, -1, 0, 1, 2, 5, 8))
    for name in ("points", "elo"):
        with pytest.raises(OptionError, match=r"points and Elo .* come to 8 here"):
            getattr(tally, name)
    totals = payoff.sum(axis=1)
    assert tally.nelo.mean == pytest.approx(NELO * totals.mean() / totals.std())


@pytest.mark.parametrize("most", [1, 4])
def test_tallies_of_parts_add_up_to_that_of_the_match(most):
    """Though a part may hold few of the totals that can come."""
    rng = np.random.default_rng(8)
    payoff = rng.integers(-most, most + 1, (30, 2))
    payoff[:10] = np.sign(payoff[:10])
    assert Tally.of(payoff[:10]) + Tally.of(payoff[10:]) == Tally.of(payoff)


def test_the_score_is_that_of_the_match():
    payoff = np.random.default_rng(9).integers(-1, 2, (50, 2)).astype(np.float32)
    match = MatchResult("one", "other", payoff, np.zeros((50, 2), np.int16))
    assert Tally.of(payoff).score == match.score


def test_what_a_point_is_worth_changes_nothing():
    rng = np.random.default_rng(5)
    payoff = rng.choice([-1, 0, 1], (60, 2), p=[0.2, 0.3, 0.5])
    one, other = Tally.of(payoff), Tally.of(payoff * 16)
    assert one.los == pytest.approx(other.los)
    for end in ("low", "mean", "high"):
        assert getattr(one.nelo, end) == pytest.approx(getattr(other.nelo, end))
    assert Sprt(0, 20).llr(one) == pytest.approx(Sprt(0, 20).llr(other))


def test_a_match_in_which_games_at_higher_stakes_cancelled_has_no_elo():
    with pytest.raises(OptionError, match="points and Elo"):
        _ = Tally.of([[2, -2], [1, 0]]).elo


def test_elo_of_scores():
    assert elo_of(10 / 11) == pytest.approx(400)
    assert elo_of(0.5) == 0
    assert (elo_of(0), elo_of(1)) == (-math.inf, math.inf)


def test_a_line_says_it_all():
    assert str(Tally([13, 37, 50, 25, 3])) == (
        "128 pairs, score -0.125 [-0.209, -0.042], nElo -64.0 [-107.1, -21.3], LOS 0.2 %"
    )
    assert "score +1.000 [-0.707, +1.000], nElo +inf" in str(Tally([0, 0, 0, 0, 1]))


@pytest.mark.parametrize("counts", [[1, 2, -3, 4, 5], [], [1, 2, 3], [0, 0, 0, 0, 0]])
def test_bad_counts_are_refused(counts):
    with pytest.raises(OptionError, match="counts must be 5"):
        Tally(counts)


@pytest.mark.parametrize(
    "payoff",
    [
        [],
        np.ones((0, 2)),
        [1, 1],
        [[1, 0, 1]],
        [[0.5, 0.5]],
        [[math.nan, 1]],
        [[math.inf, 1]],
        [[10**6, 1]],
    ],
)
def test_bad_payoffs_are_refused(payoff):
    with pytest.raises(OptionError, match="payoff"):
        Tally.of(payoff)


@pytest.mark.parametrize(
    "options",
    [
        (0, 0),
        (5, 0),
        (-101, 0),
        (0, 101),
        (math.nan, 1),
        (0, 5, 0),
        (0, 5, 0.05, 0),
        (0, 5, 0.5, 0.5),
    ],
)
def test_bad_tests_are_refused(options):
    with pytest.raises(OptionError, match=r"nelo0 must|alpha and beta must"):
        Sprt(*options)


def of_strength(base, nelo):
    """The distribution next to ``base`` with this normalised Elo, by exponential tilting."""

    def tilted(by):
        p = np.array(base) * np.exp(by * VALUES)
        return p / p.sum()

    def known(p):
        return NELO * (p @ VALUES) / np.sqrt(p @ VALUES**2 - (p @ VALUES) ** 2)

    return tilted(brentq(lambda by: known(tilted(by)) - nelo, -3, 3))


@pytest.mark.parametrize(
    ("base", "nelo"), [([0.1, 0.2, 0.4, 0.2, 0.1], 20), ([0.25, 0.05, 0.4, 0.05, 0.25], -150)]
)
def test_intervals_hold_the_truth_as_often_as_they_say(base, nelo):
    """1,200 matches of 150 pairs: 93 to 97 % is 3.2 standard errors each way.

    So each of six checks fails by chance with 1.5e-3, were the seed not fixed.
    """
    p = of_strength(base, nelo)
    points = 0.5 + p @ VALUES / 4
    truths = {"points": points, "elo": elo_of(points), "nelo": nelo}
    covered = dict.fromkeys(truths, 0)
    for counts in np.random.default_rng(6).multinomial(150, p, 1200):
        tally = Tally(counts)
        for name, truth in truths.items():
            estimate = getattr(tally, name)
            covered[name] += estimate.low <= truth <= estimate.high
    for name, count in covered.items():
        assert 0.93 <= count / 1200 <= 0.97, name


def walks(sprt, nelo, number, rng):
    """How many of ``number`` matches of this strength accept H0, and H1, looked at each pair."""
    p = of_strength([0.1, 0.2, 0.4, 0.2, 0.1], nelo)
    counts, still = np.zeros((number, 5), int), np.arange(number)
    low, high = sprt.bounds
    accepted = [0, 0]
    while len(still):
        counts[still] += rng.multinomial(1, p, len(still))
        ratios = sprt.llrs(counts[still])
        accepted[0] += (ratios <= low).sum()
        accepted[1] += (ratios >= high).sum()
        still = still[(ratios > low) & (ratios < high)]
    return accepted


@pytest.mark.parametrize("bounds", [(0, 80), (-40, 40)])
def test_the_sequential_test_errs_as_often_as_it_says(bounds):
    """2,000 matches at each bound, looked at after every pair, which is the worst case.

    An error rate of 5 % is passed with probability 1e-3 at most by chance. Half of it would show
    bounds too wide.
    """
    sprt, rng, number = Sprt(*bounds), np.random.default_rng(7), 2000
    most = binom.ppf(1 - 1e-3, number, 0.05)
    wrong = walks(sprt, bounds[0], number, rng)[1], walks(sprt, bounds[1], number, rng)[0]
    for count in wrong:
        assert 0.025 * number < count <= most
