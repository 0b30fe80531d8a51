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
    flat = estimate(np.full(5, 0.5, np.float32))
    assert str(flat) == "+0.500 [+0.500, +0.500]"
    assert flat.short == "+0.500 ±0.000"


def test_the_interval_holds_the_truth_as_often_as_it_says():
    """Coverage over 400 samples of 200 pairs: 95 % less small-sample loss; false alarm < 1e-5."""
    rng = np.random.default_rng(1)
    values, weights = [-1.0, -0.5, 0.0, 0.5, 1.0], [0.1, 0.15, 0.25, 0.2, 0.3]
    truth = np.dot(values, weights)
    samples = [rng.choice(values, 200, p=weights).astype(np.float32) for _ in range(400)]
    covered = sum(e.low <= truth <= e.high for e in map(estimate, samples))
    assert 0.89 * 400 < covered < 0.99 * 400


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


@pytest.mark.parametrize("pairs", [0, 1, -1, 2.5, True])
def test_too_few_pairs_are_refused(pairs):
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
