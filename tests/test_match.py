"""Matches on mirrored deals."""

import numpy as np
import pytest

from agents import Agent, make_agent
from agents.agent import AgentError
from conquian_env import Game, RuleSet
from conquian_env.errors import OptionError
from conquian_env.seeds import deal_seeds, decision_seeds
from conquian_env.view import views_of
from training import match as module
from training.match import estimate, play_match

RULES = RuleSet()


def named(spec: str) -> tuple[str, Agent]:
    return spec, make_agent(spec)


def test_a_match_is_the_games_played_one_by_one():
    """Game for game, deal for deal, with the seeds each decision must have."""
    agents, seed, pairs = [make_agent("random"), make_agent("greedy")], 5, 6
    result = play_match(named("random"), named("greedy"), RULES, pairs, seed)
    for pair in range(pairs):
        dealt = int(deal_seeds(seed, np.array([pair]))[0])
        for seat_of_first in range(2):
            game = Game(RULES, dealt)
            while not game.is_over:
                own_seed = decision_seeds(
                    seed,
                    np.array([2 * pair + seat_of_first]),
                    np.array([game.actor], np.int8),
                    np.array([game.ply], np.int16),
                )
                agent = agents[0] if game.actor == seat_of_first else agents[1]
                game.apply(int(agent.act(views_of(game._rows, RULES, own_seed))[0]))
            assert result.payoff[pair, seat_of_first] == game.returns()[seat_of_first]


def test_the_order_of_the_agents_only_turns_the_sign():
    """Of two without luck, whose draws would be named by the game."""
    one = play_match(named("greedy"), named("expert"), RULES, 40, 1)
    two = play_match(named("expert"), named("greedy"), RULES, 40, 1)
    assert one.payoff.shape == (40, 2)
    assert one.payoff.any()
    np.testing.assert_array_equal(one.payoff, -two.payoff[:, ::-1])


def test_an_agent_without_luck_draws_every_mirrored_pair_against_itself():
    result = play_match(named("greedy"), ("copy", make_agent("greedy")), RULES, 200, 2)
    assert not result.pair_scores.any()
    assert (result.payoff != 0).any()
    won, drawn, lost = result.counts
    assert won == lost
    assert won + drawn + lost == 400


def test_results_do_not_depend_on_the_chunks(monkeypatch):
    whole = play_match(named("random"), named("greedy"), RULES, 30, 3)
    monkeypatch.setattr(module, "CHUNK", 7)
    parts = play_match(named("random"), named("greedy"), RULES, 30, 3)
    np.testing.assert_array_equal(whole.payoff, parts.payoff)


def test_seeds_make_different_matches():
    payoffs = [play_match(named("greedy"), named("random"), RULES, 30, s).payoff for s in (0, 1)]
    assert (payoffs[0] != payoffs[1]).any()


def test_greedy_beats_random_by_the_known_margin():
    """+0.49 is known; 3,000 pairs have a standard error of 0.008, so this fails by chance 1e-6."""
    score = play_match(named("greedy"), named("random"), RULES, 3000, 4).score
    assert abs(score.mean - 0.49) < 0.04
    assert score.low < score.mean < score.high


def test_the_interval_is_over_pairs():
    """Of 4,000 pairs of known spread: 1.96 standard errors to each side, within a tenth."""
    scores = np.random.default_rng(0).choice([-1.0, -0.5, 0.0, 0.5, 1.0], 4000).astype(np.float32)
    got, half = estimate(scores), 1.96 * scores.std() / np.sqrt(4000)
    assert got.mean == pytest.approx(scores.mean())
    assert got.high - got.mean == pytest.approx(half, rel=0.1)
    assert got.mean - got.low == pytest.approx(half, rel=0.1)


@pytest.mark.parametrize("pairs", [2, 5, 10, 50, 200])
@pytest.mark.parametrize(
    "weights", [[0.1, 0.15, 0.25, 0.2, 0.3], [0, 0.02, 0.08, 0.1, 0.8], [0, 0, 0, 0.1, 0.9]]
)
def test_the_interval_holds_the_truth_as_often_as_it_says(pairs, weights):
    """At least 92.5 % of 1,000 matches, however few and lopsided their pairs.

    4,000 of each gave 94 to 99 %; resampling the pairs gave 18 to 46 % of two, 40 to 85 % of five.
    """
    rng, values = np.random.default_rng(1), np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    truth, covered = values @ weights, 0
    counts, often = np.unique(rng.multinomial(pairs, weights, 1000), axis=0, return_counts=True)
    for count, times in zip(counts, often, strict=True):
        found = estimate(np.repeat(values, count).astype(np.float32))
        covered += times * (found.low <= truth <= found.high)
    assert covered >= 925


def test_the_interval_of_many_pairs_is_that_of_the_bootstrap():
    """Of 5,000: within a thousandth of its width, and 1.4 % that 50,000 resamples leave open."""
    values, counts = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), np.array([100, 400, 1500, 1200, 1800])
    drawn = np.random.default_rng(0).multinomial(5000, counts / 5000, 50_000) @ values / 5000
    found = estimate(np.repeat(values, counts).astype(np.float32))
    low, high = np.percentile(drawn, [2.5, 97.5])
    assert [found.low, found.high] == pytest.approx([low, high], abs=0.015 * (high - low))


def test_pairs_that_all_ended_alike_leave_an_interval_towards_what_could_have_come():
    """Three heads in a row do not tell a coin with heads alone from one with 53 % of them."""
    found = estimate(np.ones(3, np.float32))
    assert (found.mean, found.high) == (1, 1)
    assert found.low == pytest.approx(1 - 2 * (1 - 0.5272), abs=1e-3)
    doubled = estimate(np.full(3, 2, np.float32), most=4.0)
    assert doubled.low < 0
    assert 2 < doubled.high < 4
    assert found.short == "+1.000 ±0.473"


class Wrong:
    """Gives back what it was made with."""

    def __init__(self, answer):
        self.answer = answer

    def act(self, views):
        return self.answer(views)


@pytest.mark.parametrize(
    "answer",
    [
        lambda views: np.full(len(views), 82),
        lambda views: np.full(len(views), -1),
        lambda views: np.full(len(views), 10**9),
        lambda views: np.zeros(len(views) + 1, np.int64),
        lambda views: np.zeros(len(views)),
        lambda views: None,
        lambda views: [[0], [0, 1]],
        lambda views: 1 / 0,
    ],
)
def test_an_agent_that_breaks_the_protocol_is_named(answer):
    with pytest.raises(AgentError, match="cheat"):
        play_match(("cheat", Wrong(answer)), named("greedy"), RULES, 3, 0)


def test_an_agent_cannot_make_an_action_legal():
    def forge(views):
        views.mask[:] = True
        return np.full(len(views), 82)

    with pytest.raises(AgentError, match="forger"):
        play_match(("forger", Wrong(forge)), named("greedy"), RULES, 3, 0)


def test_no_call_shows_both_hands_of_a_deal():
    """Every decision of a call is of the same seat: the first event tells which."""
    calls = []

    def watch(views):
        first_cards = (views.history[:, 0] & 127).tolist()
        seats = (views.history[:, 0] >> 7).tolist()  # 0: the observer is seat 0
        calls.append(list(zip(first_cards, seats, strict=True)))
        return views.mask.argmax(axis=1)

    play_match(("watcher", Wrong(watch)), named("greedy"), RULES, 50, 0)
    assert len(calls) > 20
    assert all(len({seat for _, seat in call}) == 1 for call in calls)
    assert {call[0][1] for call in calls} == {0, 1}


@pytest.mark.parametrize("pairs", [0, 1, -1, 2.5, True, 10**7 + 1, 10**12])
def test_too_few_or_many_pairs_are_refused(pairs):
    with pytest.raises(OptionError, match="pairs"):
        play_match(named("greedy"), named("random"), RULES, pairs, 0)


def test_agents_cannot_move_the_deals():
    """An agent that spends global randomness changes nothing."""

    def spend(views):
        np.random.default_rng().random(3)
        np.random.seed(1)  # noqa: NPY002  # the point of the test
        return views.mask.argmax(axis=1)

    plain = Wrong(lambda views: views.mask.argmax(axis=1))
    one = play_match(("spender", Wrong(spend)), named("random"), RULES, 10, 0)
    two = play_match(("plain", plain), named("random"), RULES, 10, 0)
    np.testing.assert_array_equal(one.payoff, two.payoff)
