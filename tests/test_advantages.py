"""Advantages seat by seat, on games written by hand."""

import numpy as np
import pytest

from training.advantages import advantages

LAMBDA = 0.95


def one_game(actors, rewards, dones, values, last=(0.0, 0.0), gae_lambda=LAMBDA):
    """Advantages and returns of one game, as lists over its decisions."""
    actor = np.array(actors, np.int8)[:, None]
    reward = np.array(rewards, np.float32)[:, None]
    done = np.array(dones, np.bool_)[:, None]
    value = np.array(values, np.float32)[:, None]
    advantage, target = advantages(
        actor, reward, done, value, np.array([last], np.float32), gae_lambda
    )
    return advantage[:, 0], target[:, 0]


NOTHING = (0.0, 0.0)


def test_five_moves_running_by_one_seat():
    """A take, three lays and the discard that wins: a seat's next state is its own next move."""
    values = [0.1, 0.2, 0.4, 0.5, 0.7]
    rewards = [NOTHING] * 4 + [(1.0, -1.0)]
    advantage, target = one_game([0] * 5, rewards, [0, 0, 0, 0, 1], values)
    errors = [0.1, 0.2, 0.1, 0.2, 0.3]
    expected = 0.0
    for t in range(4, -1, -1):
        expected = errors[t] + LAMBDA * expected
        assert advantage[t] == pytest.approx(expected, abs=1e-6)
    np.testing.assert_allclose(target, advantage + np.array(values), atol=1e-6)


def test_the_losers_row_gets_minus_one():
    """Seat 1 decides once and seat 0 wins three moves later."""
    advantage, target = one_game(
        [0, 1, 0, 0, 0],
        [NOTHING, NOTHING, NOTHING, NOTHING, (1.0, -1.0)],
        [0, 0, 0, 0, 1],
        [0.0, 0.25, 0.0, 0.0, 0.0],
    )
    assert advantage[1] == pytest.approx(-1.25)
    assert target[1] == pytest.approx(-1.0)
    assert target[4] == pytest.approx(1.0)


def test_the_other_seat_in_between_is_skipped_and_signs_do_not_alternate():
    advantage, _ = one_game(
        [0, 1, 1, 0],
        [NOTHING, NOTHING, NOTHING, (-1.0, 1.0)],
        [0, 0, 0, 1],
        [0.3, -0.1, 0.2, 0.5],
        gae_lambda=0.0,
    )
    np.testing.assert_allclose(advantage, [0.5 - 0.3, 0.2 + 0.1, 1 - 0.2, -1 - 0.5], atol=1e-6)


def test_lambda_one_gives_return_minus_value():
    rng = np.random.default_rng(0)
    length = 40
    actors, values = rng.integers(0, 2, length), rng.normal(size=length)
    dones = np.zeros(length, bool)
    dones[[12, 13, 25, 39]] = True
    rewards, returns = np.zeros((length, 2)), np.zeros((length, 2))
    start = 0
    for end, paid in zip(np.flatnonzero(dones), [1.0, -1.0, 0.0, -1.0], strict=True):
        rewards[end] = paid, -paid
        returns[start : end + 1] = paid, -paid
        start = end + 1
    advantage, target = one_game(actors, rewards, dones, values, gae_lambda=1.0)
    own = returns[np.arange(length), actors]
    np.testing.assert_allclose(advantage, own - values, atol=1e-5)
    np.testing.assert_allclose(target, own, atol=1e-5)


def test_an_ended_deal_says_nothing_about_the_one_before():
    """The next deal's value and result stop at ``done``, for both seats."""
    actors, values = [0, 1, 0, 1], [0.1, 0.2, 0.9, 0.8]
    rewards = [NOTHING, (0.0, 0.0), NOTHING, (1.0, -1.0)]
    advantage, _ = one_game(actors, rewards, [0, 1, 0, 1], values)
    np.testing.assert_allclose(advantage[:2], [-0.1, -0.2], atol=1e-6)


def test_the_rollout_is_cut_with_each_seats_last_value():
    advantage, _ = one_game([0, 1], [NOTHING, NOTHING], [0, 0], [0.1, 0.2], last=(0.6, -0.6))
    np.testing.assert_allclose(advantage, [0.5, -0.8], atol=1e-6)


def test_games_do_not_mix():
    rng = np.random.default_rng(1)
    shape = (30, 5)
    actor = rng.integers(0, 2, shape).astype(np.int8)
    done = rng.random(shape) < 0.1
    reward = np.where(done, rng.integers(-1, 2, shape), 0).astype(np.float32)
    reward = np.stack([reward, -reward], axis=-1)
    value = rng.normal(size=shape).astype(np.float32)
    last = rng.normal(size=(5, 2)).astype(np.float32)
    together, _ = advantages(actor, reward, done, value, last, LAMBDA)
    for game in range(5):
        alone, _ = advantages(
            actor[:, [game]], reward[:, [game]], done[:, [game]], value[:, [game]],
            last[[game]], LAMBDA,
        )  # fmt: skip
        np.testing.assert_array_equal(alone[:, 0], together[:, game])
