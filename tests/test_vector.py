"""The vector environment: step for step the same as single ones in Gymnasium's `SyncVectorEnv`."""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray

from conquian_env import Game, RuleSet
from conquian_env.actions import FORCE, PASS
from conquian_env.envs.single import ConquianEnv
from conquian_env.envs.vector import ConquianVectorEnv
from conquian_env.errors import (
    ConquianError,
    IllegalActionError,
    OptionError,
    RuleSetError,
    SeedError,
)

ID = "conquian_env:Conquian-v0"
GREEDY = "agents.heuristic:Greedy"
MODES = list(AutoresetMode)
TINY = "classic,deal=2"  # in most deals nobody has a choice
# A twentieth of the deals is over before the learner decides anything.
OVER_AT_ONCE: dict[str, Any] = {
    "rules": "classic,deal=2,suits=3,ranks=4",
    "seat": 1,
    "opponent": GREEDY,
}
N = 5
CASES: list[dict[str, Any]] = [
    {},
    {"opponent": GREEDY, "seat": "alternate", "shaping": True},
    {"skip_forced": True, "shaping": True, "observation": "planes"},
    {"opponent": GREEDY, "skip_forced": True, "mask_location": "both", "observation": "history"},
    {"rules": "mexican", "opponent": GREEDY, "mask_location": "info", "shaping": True},
    {"rules": "mexican", "skip_forced": True, "observation": "history"},
    {"rules": "nano", "mask_location": "both", "seat": 0},
    {"rules": "nano", "skip_forced": True, "shaping": True, "mask_location": "info"},
    {"rules": "classic,draw=double", "shaping": True, "seat": 1},
    {"rules": "classic,draw=double", "skip_forced": True, "opponent": GREEDY},
    {"rules": TINY, "skip_forced": True, "mask_location": "both", "shaping": True},
    {**OVER_AT_ONCE, "shaping": True, "mask_location": "both"},
]


def case_id(case: dict[str, Any]) -> str:
    return " ".join(str(value) for value in case.values()) or "default"


def choices(mask: NDArray[np.bool_], rng: np.random.Generator, wrong: float) -> NDArray[np.int64]:
    """Random legal actions; with some probability each, one that is not legal or none at all."""
    scores = rng.random(mask.shape)
    illegal = np.where(rng.random(len(mask)) < 0.5, rng.choice([-1, 83, 1 << 40]), PASS)
    illegal = np.where(illegal == PASS, (scores * ~mask).argmax(1), illegal)
    return np.where(rng.random(len(mask)) < wrong, illegal, (scores * mask).argmax(1))


def pair(mode: AutoresetMode, case: dict[str, Any], **own: Any) -> tuple[Any, SyncVectorEnv]:
    """Ours, and the same of Gymnasium's making."""
    single = partial(ConquianEnv, **case)
    return (
        ConquianVectorEnv(N, autoreset_mode=mode, **case, **own),
        SyncVectorEnv([single] * N, autoreset_mode=mode),
    )


def assert_infos(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """The same keys; the same values wherever Gymnasium's has one."""
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        if not name.startswith("_"):
            has = theirs[f"_{name}"]
            assert (ours[f"_{name}"] | ~has).all()
            if isinstance(value, dict):
                assert (ours[f"_{name}"] == has).all()
                assert_infos(ours[name], value)
            else:
                assert ours[name].dtype == value.dtype
                assert data_equivalence(list(ours[name][has]), list(value[has]))


def assert_same_play(
    ours: Any, theirs: SyncVectorEnv, steps: int, wrong: float, seed: Any = 7
) -> tuple[int, int]:
    """Play both and compare all they say; episodes ended, and those over at their beginning."""
    rng, ended, empty = np.random.default_rng(1), 0, 0
    before, expected = ours.reset(seed=seed), theirs.reset(seed=seed)
    assert data_equivalence(before[0], expected[0])
    assert_infos(before[1], expected[1])
    for _ in range(steps):
        empty += int((ours._batch.done & ~ours._over).sum())
        actions = choices(ours.action_masks(), rng, wrong)
        kept = actions.copy()
        step, expected = ours.step(actions), theirs.step(actions)
        assert (actions == kept).all()
        for got, want in zip(step[:4], expected[:4], strict=True):
            assert data_equivalence(got, want)
        assert_infos(step[4], expected[4])
        over = step[2]
        ended += int(over.sum())
        if ours.autoreset_mode == AutoresetMode.DISABLED and over.any():
            options = {"reset_mask": over.copy()}
            seen, info = ours.reset(options=options)
            assert options.keys() == {"reset_mask"}
            assert (options["reset_mask"] == over).all()
            want = theirs.reset(options=options)
            assert data_equivalence(seen, want[0])
            assert_infos(info, want[1])
    return ended, empty


@pytest.mark.parametrize("case", CASES, ids=case_id)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_step_is_that_of_single_environments(
    mode: AutoresetMode, case: dict[str, Any]
) -> None:
    ended, _ = assert_same_play(*pair(mode, case), steps=120, wrong=0.0)
    assert ended >= N
    ended, empty = assert_same_play(*pair(mode, case), steps=120, wrong=0.05)
    assert ended >= N
    assert empty or case not in CASES[-2:]


@pytest.mark.parametrize("case", CASES[2:5], ids=case_id)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("own", [{"threads": 3}, {"copy": False}, {"copy": False, "threads": 2}])
def test_threads_and_shared_arrays_change_nothing(
    own: dict[str, Any], mode: AutoresetMode, case: dict[str, Any]
) -> None:
    assert assert_same_play(*pair(mode, case, **own), steps=80, wrong=0.05)[0]


def test_arrays_are_new_at_every_step_or_the_same_ones() -> None:
    for fresh in (True, False):
        env = ConquianVectorEnv(2, copy=fresh)
        first, _ = env.reset(seed=1)
        kept = copy.deepcopy(first)
        second = env.step(env.action_masks().argmax(1))[0]
        assert isinstance(first, dict)
        assert isinstance(second, dict)
        for name in first:
            assert np.shares_memory(first[name], second[name]) != fresh
        seen = "observation"
        assert (first[seen] == kept[seen]).all() == fresh


# --- Gymnasium's ways to make and wrap it ---


@pytest.mark.parametrize("mode", [None, "vector_entry_point", "sync"])
def test_make_vec(mode: Any) -> None:
    env = gymnasium.make_vec(ID, 3, vectorization_mode=mode, opponent=GREEDY, seat=1)
    assert isinstance(env.unwrapped, SyncVectorEnv if mode == "sync" else ConquianVectorEnv)
    seen, info = env.reset(seed=1)
    assert env.observation_space.contains(seen)
    assert env.single_observation_space.contains({name: seen[name][0] for name in seen})
    assert (env.num_envs, info["seat"].tolist()) == (3, [1, 1, 1])
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert env.spec is not None
    env.close()


@pytest.mark.parametrize("location", ["obs", "info", "both"])
@pytest.mark.parametrize("encoding", ["flat", "planes", "history"])
def test_spaces_hold_what_is_seen(encoding: Any, location: Any) -> None:
    env = ConquianVectorEnv(3, observation=encoding, mask_location=location)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains(seen)
    for _ in range(60):
        seen, reward, over, cut, _ = env.step(env.action_masks().argmax(1))
        assert env.observation_space.contains(seen)
        assert (reward.dtype, over.dtype, cut.dtype) == (np.float64, np.bool_, np.bool_)
        assert not cut.any()


def flattened(env: Any) -> Any:
    return wrappers.FlattenObservation(env)


WRAPPERS: list[Callable[[Any], Any]] = [
    wrappers.DictInfoToList,
    wrappers.NormalizeReward,
    flattened,
    lambda env: wrappers.NormalizeObservation(flattened(env)),
    lambda env: wrappers.RescaleObservation(flattened(env), 0.0, 1.0),
    lambda env: wrappers.ClipReward(env, -1, 1),
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrappers_of_gymnasium(wrapper: Callable[[Any], Any]) -> None:
    env = wrapper(ConquianVectorEnv(3))
    env.reset(seed=1)
    rng = np.random.default_rng(2)
    for _ in range(80):
        actions = choices(env.unwrapped.action_masks(), rng, 0.02)
        _, _, _, _, info = env.step(actions)
        if isinstance(env, wrappers.DictInfoToList):
            assert [one["seat"] for one in info] == env.unwrapped.seats.tolist()


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_statistics_count_every_episode(mode: AutoresetMode) -> None:
    base = ConquianVectorEnv(N, autoreset_mode=mode, seat="alternate", **{"rules": "nano"})
    env = wrappers.RecordEpisodeStatistics(base)
    env.reset(seed=3)
    rng, returns, total, ended = np.random.default_rng(3), np.zeros(N), [], 0
    for _ in range(150):
        _, reward, over, _, info = env.step(choices(base.action_masks(), rng, 0.05))
        returns += reward
        assert over.any() == ("episode" in info)
        if over.any():
            assert (info["_episode"] == over).all()
            assert (info["episode"]["r"][over] == returns[over]).all()
            total += returns[over].tolist()
            ended += int(over.sum())
            returns[over] = 0.0
            if mode == AutoresetMode.DISABLED:
                env.reset(options={"reset_mask": over})
    assert env.episode_count == ended > N
    assert set(total) == {-1.0, 0.0, 1.0}


def test_metadata_and_options_are_their_owners() -> None:
    first, second = ConquianVectorEnv(2), ConquianVectorEnv(2, autoreset_mode="SameStep")
    assert first.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    assert second.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    before = copy.deepcopy(first.metadata)
    second.metadata["render_modes"].append("x")
    assert first.metadata == before == ConquianVectorEnv().metadata
    assert "autoreset_mode" not in ConquianEnv.metadata
    options = {"reset_mask": np.array([True, True]), "unknown": [1]}
    first.reset(seed=1, options=options)
    first.step(first.action_masks().argmax(1))
    assert options["reset_mask"].tolist() == [True, True]
    assert options["unknown"] == [1]


# --- seeds and episodes ---


def transcript(env: ConquianVectorEnv, steps: int = 150) -> list[Any]:
    """What steps of random legal actions show."""
    rng, told = np.random.default_rng(5), []
    for _ in range(steps):
        step = env.step(choices(env.action_masks(), rng, 0.05))
        told.append(copy.deepcopy(step))
        if env.autoreset_mode == AutoresetMode.DISABLED and step[2].any():
            told.append(env.reset(options={"reset_mask": step[2]}))
    return told


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("seed", [0, 3, [5, 0, 5, (1 << 64) - 1, 9]], ids=str)
def test_a_seed_brings_the_same_episodes_again(mode: AutoresetMode, seed: Any) -> None:
    """Whatever was played before, and in the middle of whatever."""
    env, told = ConquianVectorEnv(N, "nano", autoreset_mode=mode, shaping=True), []
    other = ConquianVectorEnv(N, "nano", autoreset_mode=mode, shaping=True)
    env.reset(seed=99)
    transcript(env, 20)
    for one in (env, env, other):
        told.append([one.reset(seed=seed), transcript(one)])
    assert data_equivalence(told[0], told[1])
    assert data_equivalence(told[0], told[2])
    assert env._batch.deal.min() >= 2


def test_seeds_of_each_environment() -> None:
    env = ConquianVectorEnv(3)
    env.reset(seed=4)
    assert [env._batch.game(i).seed for i in range(3)] == [4, 5, 6]
    env.reset()
    assert env._batch.deal.tolist() == [1, 1, 1]
    env.reset(seed=[None, 0, None])
    assert [env._batch.game(i).seed for i in range(3)] == [4, 0, 6]
    assert env._batch.deal.tolist() == [2, 0, 2]
    env.reset(seed=np.array([1, 2, 3]), options={"reset_mask": np.array([True, False, True])})
    assert [env._batch.game(i).seed for i in range(3)] == [1, 0, 3]
    assert env._batch.deal.tolist() == [0, 0, 0]
    for i, seed in enumerate((1, 0, 3)):
        assert env._batch.game(i).hand(0) == Game(seed=seed).hand(0)


def test_unseeded_environments_differ() -> None:
    first, second = ConquianVectorEnv(2), ConquianVectorEnv(2)
    first.reset()
    second.reset(seed=[None, 3])
    seeds = {env._batch.game(i).seed for env in (first, second) for i in range(2)}
    assert len(seeds) == 4
    assert 3 in seeds
    assert all(seed >> 32 for seed in seeds - {3})


def test_settings_survive_a_seeded_reset() -> None:
    env = ConquianVectorEnv(2, RuleSet(deal=8), GREEDY, 1, "planes", "both", True, "raise", True)
    keep = copy.deepcopy({k: v for k, v in vars(env).items() if isinstance(v, (str, int, RuleSet))})
    for seed in (3, None):
        seen, info = env.reset(seed=seed)
        assert isinstance(seen, dict)
        assert seen["observation"].shape == (2, 26, 4, 10)
        assert "action_mask" in info
        assert info["seat"].tolist() == [1, 1]
    now = {k: v for k, v in vars(env).items() if isinstance(v, (str, int, RuleSet))}
    assert {**now, "_seeded": False} == keep


@pytest.mark.parametrize("case", [{}, OVER_AT_ONCE, CASES[10]], ids=case_id)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_deal_is_an_episode(mode: AutoresetMode, case: dict[str, Any]) -> None:
    """Also where the opponent ends it before the learner decides: it is shown over, and pays."""
    env = ConquianVectorEnv(8, autoreset_mode=mode, **case)
    env.reset(seed=11)
    rng, flags, empty = np.random.default_rng(6), np.zeros(8, np.int64), 0
    paid = [[] for _ in range(8)]
    for _ in range(150):
        at_once = env._batch.done & ~env._over
        empty += int(at_once.sum())
        masks = env.action_masks()
        assert (masks[at_once].sum(1) == 1).all()
        assert masks[at_once, PASS].all()
        deals = env._batch.deal.copy()
        wins = [env._batch.game(i).returns()[env.seats[i]] for i in range(8)]
        _, reward, over, _, _ = env.step(choices(masks, rng, 0.0))
        assert over[at_once].all()
        assert (reward[at_once] == np.array(wins)[at_once]).all()
        for i in np.flatnonzero(over):
            assert deals[i] == flags[i]
            paid[i].append(reward[i])
        assert (reward[~over] == 0).all() or env.shaping
        flags += over
        if mode == AutoresetMode.DISABLED and over.any():
            env.reset(options={"reset_mask": over})
        assert (env._batch.deal == flags - env._over).all()
    assert flags.min() > 1
    assert (empty > 0) == bool(case)


def test_an_empty_deal_is_lost_by_anything_but_pass() -> None:
    env = ConquianVectorEnv(80, **OVER_AT_ONCE)
    env.reset(seed=1)
    at_once = env._batch.done.copy()
    assert at_once.any()
    actions = env.action_masks().argmax(1)
    actions[at_once] = 5
    _, reward, over, _, _ = env.step(actions)
    assert over[at_once].all()
    assert (reward[at_once] == -1).all()


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_shaping_leaves_the_sum_of_an_episode(case: dict[str, Any]) -> None:
    sums = []
    for shaping in (False, True):
        env = ConquianVectorEnv(N, **{**case, "shaping": shaping, "mask_location": "obs"})
        env.reset(seed=2)
        rng, totals, returns, moved = np.random.default_rng(2), [], np.zeros(N), 0
        for _ in range(200):
            _, reward, over, _, _ = env.step(choices(env.action_masks(), rng, 0.02))
            returns += reward
            moved += int(((reward != 0) & ~over).sum())
            totals += [(int(i), round(float(returns[i]), 9)) for i in np.flatnonzero(over)]
            returns[over] = 0.0
        assert (moved > 0) == shaping
        sums.append(totals)
    assert sums[0] == sums[1]
    assert len(sums[0]) > N


# --- illegal and impossible actions ---


def everything(env: ConquianVectorEnv) -> bytes:
    return pickle.dumps(env)


def test_an_illegal_action_loses_the_stake_of_its_game_alone() -> None:
    env = ConquianVectorEnv(4, "classic,draw=double", seat=0)
    env.reset(seed=1)
    while env._batch.observation[:, -1].max() < 2:
        env.step(env.action_masks().argmax(1))
    stakes = env._batch.observation[:, -1].tolist()
    actions = env.action_masks().argmax(1)
    actions[stakes.index(2)] = 83
    _, reward, over, _, _ = env.step(actions)
    assert reward.tolist() == [-2.0 if i == stakes.index(2) else 0.0 for i in range(4)]
    assert over.tolist() == [i == stakes.index(2) for i in range(4)]
    mask = env.action_masks()[stakes.index(2)]
    assert np.flatnonzero(mask).tolist() == [PASS]


@pytest.mark.parametrize("wrong", [-1, 83, 2, 1 << 40])
def test_with_raise_nothing_changes_in_any_row(wrong: int) -> None:
    env = ConquianVectorEnv(3, illegal="raise", seat=0, shaping=True)
    env.reset(seed=1)
    before, actions = everything(env), env.action_masks().argmax(1)
    with pytest.raises(IllegalActionError, match=f"game 2: action {wrong} is not legal"):
        env.step(np.array([*actions[:2], wrong]))
    assert everything(env) == before
    env.step(actions)


NO_ACTIONS = [
    1, None, "7S", True, 1.5, [0, 0], [0, 0, 0, 0], [[0], [0], [0]], [0.0, 0.0, 0.0],
    [True, False, True], [0, None, 0], ["0", "0", "0"], [[0], [0, 1], [0]], np.zeros((3, 1), int),
    np.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.bool),
]  # fmt: skip


@pytest.mark.parametrize("illegal", ["lose", "raise"])
@pytest.mark.parametrize("wrong", NO_ACTIONS, ids=repr)
def test_what_are_no_actions_is_refused_and_nothing_changes(wrong: Any, illegal: Any) -> None:
    env = ConquianVectorEnv(3, illegal=illegal, seat=0)
    env.reset(seed=1)
    before = everything(env)
    with pytest.raises(IllegalActionError, match="actions"):
        env.step(wrong)
    assert everything(env) == before
    env.step(env.action_masks().argmax(1))


@pytest.mark.parametrize(
    "make",
    [
        list,
        tuple,
        np.uint8,
        np.int32,
        np.uint64,
        torch.as_tensor,
        lambda a: torch.as_tensor(a).int(),
    ],
)
def test_integers_of_every_kind_are_actions(make: Callable[[Any], Any]) -> None:
    env, twin = ConquianVectorEnv(3), ConquianVectorEnv(3)
    env.reset(seed=1)
    twin.reset(seed=1)
    for _ in range(30):
        actions = env.action_masks().argmax(1)
        assert data_equivalence(env.step(make(actions)), twin.step(actions))


@pytest.mark.parametrize(
    ("seed", "error"),
    [(-1, SeedError), (1 << 64, SeedError), ((1 << 64) - 2, SeedError), (1.5, SeedError),
     (True, SeedError), ("abc", SeedError), ([1, -1, 2], SeedError), ([1, 1.5, 2], SeedError),
     ([1, True, 2], SeedError), ([1, 2], OptionError), ([], OptionError)],
)  # fmt: skip
@pytest.mark.parametrize("begun", [False, True])
def test_a_wrong_seed_is_refused_and_nothing_changes(
    seed: Any, error: type[Exception], begun: bool
) -> None:
    env = ConquianVectorEnv(3)
    if begun:
        env.reset(seed=1)
        env.step(env.action_masks().argmax(1))
    before = everything(env)
    with pytest.raises(error, match="seed"):
        env.reset(seed=seed)
    assert everything(env) == before


@pytest.mark.parametrize(
    "chosen",
    [[True, False, True], np.array([1, 0, 1]), np.ones(2, np.bool_), np.zeros(3, np.bool_),
     np.ones((3, 1), np.bool_), None, "all"],
    ids=repr,
)  # fmt: skip
def test_a_wrong_reset_mask_is_refused_and_nothing_changes(chosen: Any) -> None:
    env = ConquianVectorEnv(3)
    env.reset(seed=1)
    before = everything(env)
    with pytest.raises(OptionError, match="reset_mask"):
        env.reset(seed=2, options={"reset_mask": chosen})
    assert everything(env) == before


WRONG_OPTIONS: list[dict[str, Any]] = [
    {"num_envs": 0}, {"num_envs": -1}, {"num_envs": 1.5}, {"num_envs": "3"}, {"num_envs": True},
    {"threads": 0}, {"observation": "plane"}, {"mask_location": "infos"}, {"illegal": "win"},
    {"autoreset_mode": "never"}, {"render_mode": "human"}, {"render_mode": "rgb"},
    {"perspective": 2},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_OPTIONS, ids=str)
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        ConquianVectorEnv(**wrong)


def test_wrong_rules_are_named() -> None:
    with pytest.raises(RuleSetError, match="deal"):
        ConquianVectorEnv(rules="classic,deal=80")


def test_calls_out_of_order() -> None:
    env = ConquianVectorEnv(2, autoreset_mode="Disabled", seat=0)
    with pytest.raises(ConquianError, match="reset the environment before"):
        env.step(np.zeros(2, np.int64))
    with pytest.raises(ConquianError, match="reset all games before"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=1)
    env.step(np.array([PASS, 83]))
    before = everything(env)
    with pytest.raises(ConquianError, match=r"games \[1\] are over: reset them with reset_mask"):
        env.step(np.zeros(2, np.int64))
    assert everything(env) == before
    env.reset(options={"reset_mask": np.array([False, True])})
    assert env._batch.deal.tolist() == [0, 1]
    env.step(env.action_masks().argmax(1))


# --- copies and pictures ---

COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda env: pickle.loads(pickle.dumps(env)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("case", [{}, {"copy": False}, {"threads": 2}, CASES[11]], ids=case_id)
def test_a_copy_plays_on_identically(mode: AutoresetMode, case: dict[str, Any], way: str) -> None:
    env = ConquianVectorEnv(N, autoreset_mode=mode, **case)
    env.reset(seed=3)
    transcript(env, 17)
    twin = COPIES[way](env)
    before = everything(env)
    theirs = [transcript(twin), twin.reset(seed=[None, 1, None, 2, 3]), transcript(twin, 20)]
    assert everything(env) == before
    ours = [transcript(env), env.reset(seed=[None, 1, None, 2, 3]), transcript(env, 20)]
    assert data_equivalence(ours, theirs)


def test_rendering() -> None:
    env = ConquianVectorEnv(2, render_mode="ansi", seat=1)
    env.reset(seed=3)
    for i, text in enumerate(env.render()):
        assert isinstance(text, str)
        game = env._batch.game(i)
        assert " ".join(game.hand(1)) in text
        assert " ".join(game.hand(0)) not in text
    env = ConquianVectorEnv(2, render_mode="rgb_array")
    env.reset(seed=3)
    assert [np.shape(picture) for picture in env.render()] == [(720, 1280, 3)] * 2
    env = ConquianVectorEnv(2)
    env.reset()
    assert env.render() == (None, None)
    env.close()


def test_what_a_learner_writes_into_a_mask_makes_nothing_legal() -> None:
    env = ConquianVectorEnv(2, copy=False, seat=0)
    observation, _ = env.reset(seed=1)
    observation["action_mask"][:] = 1
    _, reward, over, _, _ = env.step(np.array([FORCE, FORCE]))
    assert (reward.tolist(), over.tolist()) == ([-1.0, -1.0], [True, True])
