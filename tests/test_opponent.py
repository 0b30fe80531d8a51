"""The other seat: who can play it, what it sees, and that its chance is its own."""

import hashlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binomtest, chi2

from agents import make_agent
from agents.heuristic import Greedy
from conquian_env import Batch, Game, Views
from conquian_env.envs.opponent import Opposition, Uniform, make_opponent
from conquian_env.envs.single import ConquianEnv
from conquian_env.envs.vector import ConquianVectorEnv
from conquian_env.errors import ConquianError, IllegalActionError, OptionError
from conquian_env.seeds import draw, key
from tests.test_jit import python

TO_200 = np.arange(200)
FALSE_ALARM = 1e-6  # of each statistical test, over the choice of its seed
GREEDY = "agents.heuristic:Greedy"


def first_legal(views: Views) -> NDArray[np.int64]:
    return views.mask.argmax(1).astype(np.int64)


class Lazy:
    """The first legal action; it notes what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Views] = []

    def act(self, views: Views) -> NDArray[np.int64]:
        self.shown.append(views)
        return first_legal(views)


class Scribbler(Lazy):
    """Writes into all it is given, after it has chosen."""

    def act(self, views: Views) -> NDArray[np.int64]:
        actions = super().act(views)
        views.mask[:] = True
        for name in ("observation", "hand", "table", "other_table", "dead", "face_up", "history"):
            getattr(views, name)[:] = 1
        return actions


class Wrong:
    """Returns what ``make`` makes of the first legal actions, once it is ``after`` calls old."""

    def __init__(self, make: Callable[[Views], Any], after: int = 0) -> None:
        self.make, self.after = make, after

    def act(self, views: Views) -> Any:
        self.after -= 1
        return first_legal(views) if self.after >= 0 else self.make(views)


def cheat(views: Views) -> NDArray[np.int64]:
    """An action that is not legal, which the mask no longer tells."""
    illegal = (~views.mask).argmax(1)
    views.mask[:] = True
    return illegal


def fail(_: Views) -> None:
    raise ZeroDivisionError("no idea")


def refuse(_: Views) -> None:
    raise IllegalActionError("my own")


# --- specs ---


def test_an_opponent_is_a_word_an_import_string_or_an_object() -> None:
    own = Lazy()
    assert isinstance(make_opponent("random"), Uniform)
    assert isinstance(make_opponent(GREEDY), Greedy)
    assert make_opponent(own) is own
    assert make_opponent(agent := make_agent("greedy")) is agent


NO_OPPONENTS = [
    "", "greedy", ":Greedy", "agents.heuristic", "agents.heuristic:", "agents.heuristic:Nobody",
    "agents.nowhere:Greedy", "no_such_package:Greedy", "..agents:Greedy", "random:Random",
    "agents.heuristic:partner_table",  # needs an argument
    "collections:Counter",  # has no act
    None, 7, (1, 2), Greedy, len,
]  # fmt: skip


@pytest.mark.parametrize("spec", NO_OPPONENTS, ids=repr)
def test_what_is_no_opponent_is_refused_by_name(spec: Any) -> None:
    for made in (make_opponent, lambda spec: ConquianEnv(opponent=spec)):
        with pytest.raises(OptionError, match="opponent") as caught:
            made(spec)
        assert repr(spec) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seat", [2, -1, "0", None, True, 0.0, "both"])
def test_a_wrong_seat_is_refused_by_name(seat: Any) -> None:
    for made in (ConquianEnv, ConquianVectorEnv):
        with pytest.raises(OptionError, match="seat must be one of random, alternate, 0, 1"):
            made(seat=seat)


# --- what it is shown ---


@pytest.mark.parametrize("seat", [0, 1])
def test_an_opponent_sees_its_own_views_and_nothing_else(seat: Any) -> None:
    opponent = Lazy()
    env, rows = ConquianEnv(opponent=opponent, seat=seat), []
    for seed in range(3):
        env.reset(seed=seed)
        twin = Game(seed=seed)
        over = False
        while True:
            while not twin.is_over and twin.actor != seat:
                rows.append(twin.observation(1 - seat))
                twin.apply(twin.legal_actions()[0])
            if over:
                break
            action = twin.legal_actions()[-1]
            twin.apply(action)
            over = env.step(action)[2]
        assert env.game == twin
    assert {type(views) for views in opponent.shown} == {Views}
    assert np.array_equal(np.concatenate([v.observation for v in opponent.shown]), rows)
    assert all(v.mask.any() for v in opponent.shown)


def test_an_opponent_that_writes_into_its_views_changes_nothing() -> None:
    for made in (ConquianEnv, lambda **kw: ConquianVectorEnv(4, **kw)):
        seen = []
        for opponent in (Lazy(), Scribbler()):
            env, rng = made(opponent=opponent), np.random.default_rng(1)
            digest = hashlib.sha256(repr(env.reset(seed=5)).encode())
            for _ in range(60):
                mask = np.atleast_2d(env.action_masks())
                actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
                step = env.step(actions if mask.shape[0] > 1 else int(actions[0]))
                digest.update(repr(step).encode())
                if np.all(step[2]) and made is ConquianEnv:
                    env.reset()
            seen.append(digest.digest())
        assert seen[0] == seen[1]


@pytest.mark.parametrize("after", [0, 5])
@pytest.mark.parametrize("illegal", ["lose", "raise"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (cheat, "opponent Wrong: action .* is not legal in row"),
        (lambda views: first_legal(views) + 83, "opponent Wrong: action .* is not legal in row"),
        (lambda views: first_legal(views)[:-1], "opponent Wrong: act must return"),
        (lambda views: first_legal(views)[:, None], "opponent Wrong: act must return"),
        (lambda views: first_legal(views).astype(float), "opponent Wrong: act must return"),
        (lambda views: views.mask, "opponent Wrong: act must return"),
        (lambda _: None, "opponent Wrong: act must return"),
        (lambda _: [[1], [2, 3]], "opponent Wrong: "),
        (refuse, "my own\nraised by opponent Wrong"),
        (fail, "no idea\nraised by opponent Wrong"),
    ],
)
def test_a_wrong_opponent_is_named_and_the_next_game_is_sound(
    make: Callable[[Views], Any], message: str, illegal: Any, after: int
) -> None:
    """And the learner does not lose for it."""
    error = ZeroDivisionError if make is fail else IllegalActionError
    opponent = Wrong(make, after)
    single = ConquianEnv(opponent=opponent, seat=1, illegal=illegal)
    with pytest.raises(error, match=message):
        play(single, seed=3)
    opponent.after = after
    vector = ConquianVectorEnv(3, opponent=opponent, seat=1, illegal=illegal)
    with pytest.raises(error, match=message):
        play_rows(vector, seed=3)
    opponent.after = 10**9
    honest = ConquianEnv(opponent=Lazy(), seat=1), ConquianVectorEnv(3, opponent=Lazy(), seat=1)
    assert play(single, seed=3) == play(honest[0], seed=3)
    assert play_rows(vector, seed=3) == play_rows(honest[1], seed=3)


def play(env: ConquianEnv, seed: int) -> list[str]:
    """An episode of first legal actions."""
    told, over = [repr(env.reset(seed=seed))], False
    while not over:
        step = env.step(env.action_masks().argmax())
        told.append(repr(step))
        over = step[2]
    return told


def play_rows(env: ConquianVectorEnv, seed: int) -> list[str]:
    told = [repr(env.reset(seed=seed))]
    return told + [repr(env.step(env.action_masks().argmax(1))) for _ in range(40)]


# --- its chance ---


def test_the_built_in_opponent_is_uniform() -> None:
    """Chi-square in states of every number of legal actions; false alarm 1e-6 for each."""
    batch, rng, opponent, kinds = Batch(1, seed=4), np.random.default_rng(4), Uniform(), set()
    for ply in range(400):
        actions = np.flatnonzero(batch.mask[0])
        if (n := len(actions)) > 1 and n not in kinds:
            kinds.add(n)
            seeds = draw(np.tile(key("opponent", ply), (20_000, 1)), *np.mgrid[0:1, 0:20_000][:, 0])
            drawn = opponent.act(batch.views(np.zeros(20_000, np.int64), seeds))
            counts = np.bincount(drawn, minlength=83)
            assert counts[actions].sum() == 20_000
            expected = 20_000 / n
            statistic = ((counts[actions] - expected) ** 2 / expected).sum()
            assert chi2.sf(statistic, n - 1) > FALSE_ALARM
        batch.step(batch.sample_actions(rng))
    assert kinds >= {2, 3, 5, 7, 9}


@pytest.mark.parametrize("seed", [0, 1, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1])
def test_the_built_in_opponent_is_legal_for_extreme_seeds(seed: int) -> None:
    views = Game().views(np.array([seed], np.uint64))
    assert views.mask[0, Uniform().act(views)].all()


def digest() -> str:
    """What random opponents did in some games, and the seats."""
    env, told = ConquianEnv(skip_forced=True), []
    for seed in range(4):
        for again in range(2):
            env.reset(seed=None if again else seed)
            over = False
            while not over:
                over = env.step(env.action_masks().argmax())[2]
            told.append((env.seat, env.game.to_json()))
    return hashlib.sha256(repr(told).encode()).hexdigest()


def test_the_opponent_is_the_same_with_the_jit_off() -> None:
    code = "from tests.test_opponent import digest; print(digest())"
    assert python(code, NUMBA_DISABLE_JIT="1").strip() == digest()


def test_the_opponent_draws_from_the_seed_the_deal_and_the_ply_alone() -> None:
    """The same in one game and in many, whatever was played before."""
    one, many = Lazy(), Lazy()
    env = ConquianEnv(opponent=one, seat=1)
    play(env, seed=8)
    one.shown.clear()
    play(env, seed=6)
    env = ConquianVectorEnv(3, opponent=many, seat=1)
    env.reset(seed=[1, 6, 2])
    while not env.step(env.action_masks().argmax(1))[2][1]:
        pass
    seeds = np.concatenate([views.seeds for views in one.shown])
    plies = np.array([(views.history[0] != 255).sum() for views in one.shown])
    assert len(set(seeds.tolist())) == len(seeds) > 10
    assert np.isin(seeds, np.concatenate([views.seeds for views in many.shown])).all()
    assert set(seeds) <= set(draw(np.tile(key("opponent", 6), (200, 1)), 0 * TO_200, TO_200))
    assert (np.diff(plies) > 0).all()


@pytest.mark.parametrize("opponent", ["random", GREEDY, Lazy()])
def test_the_opponent_does_not_move_the_deals(opponent: Any) -> None:
    env = ConquianEnv(opponent=opponent)
    for deal in range(4):
        env.reset(seed=9 if deal == 0 else None)
        start = Game(seed=9, deal=deal)
        assert env.game._rows["pack"] == start._rows["pack"]
        over = False
        while not over:
            over = env.step(env.action_masks().argmax())[2]
        assert (env.game.seed, env.game.deal) == (9, deal)
        stocks = [np.sort(game._rows["stock"][0]) for game in (env.game, start)]
        np.testing.assert_array_equal(*stocks)
        np.testing.assert_array_equal(env.game._rows["stock"], start._rows["stock"])


# --- the seats ---

ROW = np.zeros(2000, np.int64)


def seats(seat: Any, seed: int) -> list[int]:
    """Of the learner in the first 2000 deals of a seed."""
    opposition = Opposition("random", seat)
    opposition.reseed(1, ROW[:1], [seed])
    return opposition.seats(ROW, np.arange(2000)).tolist()


def test_fixed_and_alternating_seats() -> None:
    assert set(seats(0, 1)) == {0}
    assert set(seats(1, 1)) == {1}
    assert seats("alternate", 1) == [0, 1] * 1000


def test_random_seats_are_a_function_of_seed_and_deal_and_half_and_half() -> None:
    assert seats("random", 3) == seats("random", 3) != seats("random", 4)
    for seed in (0, 3, (1 << 64) - 1):
        drawn = seats("random", seed)
        assert binomtest(sum(drawn), 2000).pvalue > FALSE_ALARM
        again = sum(one == two for one, two in pairwise(drawn))
        assert binomtest(again, 1999).pvalue > FALSE_ALARM  # nor does one deal tell the next
    firsts = [seats("random", seed)[0] for seed in range(300)]
    assert binomtest(sum(firsts), 300).pvalue > FALSE_ALARM


@pytest.mark.parametrize("seat", ["random", "alternate", 0, 1])
def test_the_seats_of_single_and_vector_environments(seat: Any) -> None:
    single, vector = ConquianEnv(seat=seat), ConquianVectorEnv(2, seat=seat)
    expected = seats(seat, 7)[:30]
    found = [single.reset(seed=7 if deal == 0 else None)[1]["seat"] for deal in range(30)]
    rows = [vector.reset(seed=[1, 7] if deal == 0 else None)[1]["seat"][1] for deal in range(30)]
    assert found == expected == rows


class Failing:
    """Plays the lowest legal action, and fails in its ``when``-th turn."""

    def __init__(self, when: int) -> None:
        self.left = when

    def act(self, views: Views) -> NDArray[np.int64]:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return views.mask.argmax(axis=1)


def play_until_it_fails(env: ConquianEnv | ConquianVectorEnv) -> None:
    env.reset(seed=1)
    while True:
        env.step(env.action_masks().argmax(axis=-1))


@pytest.mark.parametrize("when", [1, 2, 4])
def test_after_an_opponent_failed_nothing_is_shown_of_its_turn(when: int) -> None:
    """Its legal actions would tell its hand, and the learner would play them."""
    single = ConquianEnv(opponent=Failing(when), seat=0)
    vector = ConquianVectorEnv(2, opponent=Failing(when), seat=0)
    for env in (single, vector):
        with pytest.raises(KeyboardInterrupt):
            play_until_it_fails(env)
        for call in (
            env.action_masks,
            lambda env=env: env.step(0 if env is single else np.zeros(2, np.int64)),
        ):
            with pytest.raises(ConquianError, match="the opponent failed in its turn"):
                call()
        env.reset()
        env.step(env.action_masks().argmax(axis=-1))
