"""The Gymnasium environment: the library's own checkers, and what they do not check."""

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers import FlattenObservation, RecordEpisodeStatistics

from conquian_env import Game, RuleSet, cards
from conquian_env.actions import DISCARD, LAY, PASS
from conquian_env.cards import NAMES
from conquian_env.envs.aec import raw_env
from conquian_env.envs.single import ConquianEnv
from conquian_env.errors import (
    CardError,
    ConquianError,
    IllegalActionError,
    OptionError,
    PositionError,
    RuleSetError,
    SeedError,
)
from tests.positions import position, won
from tests.test_opponent import Lazy
from tests.test_vector import CASES, COPIES, GREEDY, ID, OVER_AT_ONCE, case_id

LOCATIONS = ["obs", "info", "both"]
ENCODINGS = ["flat", "planes", "history"]


def choice(env: ConquianEnv, rng: np.random.Generator, wrong: float = 0.0) -> int:
    mask = env.action_masks()
    return int(rng.choice(np.flatnonzero(mask ^ (rng.random() < wrong))))


def episode(env: ConquianEnv, rng: np.random.Generator, wrong: float = 0.0) -> list[Any]:
    """The steps of an episode that has been reset."""
    steps: list[Any] = []
    while not steps or not steps[-1][2]:
        steps.append(env.step(choice(env, rng, wrong)))
    return steps


# --- Gymnasium's checkers ---


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("location", LOCATIONS)
def test_check_env(encoding: Any, location: Any) -> None:
    env = gymnasium.make(ID, observation=encoding, mask_location=location)
    check_env(env.unwrapped, skip_render_check=True)


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
def test_check_env_draws(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(ConquianEnv.metadata, "render_fps", 1000)
    env = gymnasium.make(ID, render_mode=mode)
    check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("options", [{}, {"opponent": GREEDY, "seat": 1, "rules": "mexican"}])
def test_make(options: dict[str, Any]) -> None:
    env = gymnasium.make(ID, **options)
    seen, info = env.reset(seed=1)
    assert isinstance(env.unwrapped, ConquianEnv)
    assert env.observation_space.contains(seen)
    assert info["seat"] == options.get("seat", env.unwrapped.seat)
    assert type(info["seat"]) is int
    again = gymnasium.make(env.spec)
    assert data_equivalence(again.reset(seed=1), (seen, info))


def test_wrappers_of_gymnasium() -> None:
    env = RecordEpisodeStatistics(FlattenObservation(gymnasium.make(ID, skip_forced=True)))
    seen, _ = env.reset(seed=1)
    assert seen.shape == (416 + 83,)
    over, rng, total = False, np.random.default_rng(1), 0.0
    while not over:
        seen, reward, over, _, info = env.step(choice(env.unwrapped, rng))
        assert env.observation_space.contains(seen)
        total += reward
    assert info["episode"]["r"] == total


# --- what is seen ---


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_observation_mask_and_info_are_the_games(encoding: Any, location: Any) -> None:
    env = ConquianEnv(observation=encoding, mask_location=location, seat="alternate")
    rng = np.random.default_rng(1)
    for deal in range(6):
        seen, info = env.reset(seed=4 if deal == 0 else None)
        over = False
        while True:
            game = env.game
            flat = seen if location == "info" else seen["observation"]
            assert (flat == game.observation(deal % 2, encoding)).all()
            assert env.observation_space.contains(seen)
            expected = [PASS] if over else game.legal_actions()
            assert np.flatnonzero(env.action_masks()).tolist() == expected
            if location != "info":
                assert np.flatnonzero(seen["action_mask"]).tolist() == expected
            keys = {"seat"} if location == "obs" else {"seat", "action_mask"}
            assert info.keys() == keys
            assert info["seat"] == deal % 2
            if location != "obs":
                assert info["action_mask"].dtype == np.int8
                assert np.flatnonzero(info["action_mask"]).tolist() == expected
            if over:
                break
            assert game.actor == deal % 2
            seen, _, over, cut, info = env.step(choice(env, rng))
            assert not cut


def test_what_was_seen_stays_as_it_was() -> None:
    env, rng = ConquianEnv(mask_location="both"), np.random.default_rng(1)
    seen = [env.reset(seed=1)]
    kept = copy.deepcopy(seen)
    for _ in range(5):
        step = env.step(choice(env, rng))
        seen.append((step[0], step[4]))
        kept.append(copy.deepcopy(seen[-1]))
    assert data_equivalence(seen, kept)
    seen[-1][0]["observation"][:] = 7
    seen[-1][0]["action_mask"][:] = 1
    assert env.observation_space.contains(env.step(choice(env, rng))[0])


@pytest.mark.parametrize("skip", [False, True])
def test_skip_forced_shows_real_choices_only(skip: bool) -> None:
    env, rng, counts = ConquianEnv(skip_forced=skip), np.random.default_rng(2), set()
    for seed in range(20):
        env.reset(seed=seed)
        over = env.game.is_over
        while not over:
            counts.add(int(env.action_masks().sum()))
            over = env.step(choice(env, rng))[2]
    assert (1 in counts) != skip
    assert 2 in counts


# --- what is paid ---


@pytest.mark.parametrize("shaping", [False, True])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_an_episode_pays_what_the_game_does(case: dict[str, Any], shaping: bool) -> None:
    """To the learner's seat, at the end alone, or shaped on the way to the same sum."""
    env = ConquianEnv(**{**case, "shaping": shaping})
    rng, sums, moved = np.random.default_rng(3), set(), 0
    for deal in range(60):
        env.reset(seed=5 if deal == 0 else None)
        rewards = [step[1] for step in episode(env, rng)]
        assert all(type(reward) is float for reward in rewards)
        returns = env.game.returns()
        assert sum(returns) == 0
        assert round(sum(rewards), 9) == returns[env.seat]
        assert shaping or not any(rewards[:-1])
        moved += sum(reward != 0 for reward in rewards[:-1])
        sums.add(returns[env.seat])
    assert (moved > 0) == shaping
    assert len(sums) > 1


def test_win_loss_and_draw_are_all_paid() -> None:
    sums = set()
    for opponent in (GREEDY, "random"):
        env, rng = ConquianEnv("nano", opponent), np.random.default_rng(3)
        for seed in range(60):
            env.reset(seed=seed)
            sums.add(sum(step[1] for step in episode(env, rng)))
    assert sums == {-1.0, 0.0, 1.0}


def test_shaping_pays_for_cards_on_the_tables() -> None:
    env = ConquianEnv(shaping=True, seat=0, opponent=Lazy())
    env.reset(options={"position": position()})
    assert env.step(1)[1] == 1 / 11  # 6S is taken
    assert env.step(3 + 33)[1] == 1 / 11  # and 4S laid


def test_a_deal_that_the_opponent_ends_is_shown_over_and_pays() -> None:
    env, found = ConquianEnv(**OVER_AT_ONCE, illegal="raise"), 0
    for seed in range(200):
        seen, _ = env.reset(seed=seed)
        if env.game.is_over:
            found += 1
            assert np.flatnonzero(env.action_masks()).tolist() == [PASS]
            assert np.flatnonzero(seen["action_mask"]).tolist() == [PASS]
            assert seen["observation"][env.observation_space["observation"].shape[0] - 16 + 1] >= 0
            for wrong in (1, 5, 83, -1):
                with pytest.raises(IllegalActionError):
                    env.step(wrong)
            _, reward, over, cut, _ = env.step(PASS)
            assert (reward, over, cut) == (env.game.returns()[1], True, False)
            assert reward == -1
    assert found > 3


def test_every_deal_is_an_episode() -> None:
    env, rng = ConquianEnv(**OVER_AT_ONCE), np.random.default_rng(4)
    env.reset(seed=9)
    for deal in range(100):
        assert (env.game.seed, env.game.deal) == (9, deal)
        assert episode(env, rng)[-1][2]
        env.reset()


# --- seeds and options ---


@pytest.mark.parametrize("seed", [0, 3, (1 << 64) - 1])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_a_seed_brings_the_same_episodes_again(case: dict[str, Any], seed: int) -> None:
    env, told = ConquianEnv(**case), []
    for one in (env, env, ConquianEnv(**case)):
        rng = np.random.default_rng(5)
        for deal in range(3):
            told.append([one.reset(seed=None if deal else seed), episode(one, rng, 0.02)])
            assert (one.game.seed, one.game.deal) == (seed, deal)
    assert data_equivalence(told[:3], told[3:6])
    assert data_equivalence(told[:3], told[6:])
    assert not data_equivalence(told[0], told[1])


def test_a_deal_is_that_of_a_game() -> None:
    env = ConquianEnv(seat=0)
    for seed in (0, 1, 1 << 63, np.uint64(7), np.int64(7)):
        env.reset(seed=seed)
        assert env.game == Game(seed=int(seed))
        env.reset()
        assert env.game == Game(seed=int(seed), deal=1)


def test_unseeded_environments_differ() -> None:
    first, second = ConquianEnv(), ConquianEnv()
    first.reset()
    second.reset()
    assert first.game.seed != second.game.seed


def test_settings_survive_a_seeded_reset() -> None:
    env = ConquianEnv(RuleSet(deal=8), GREEDY, 1, "planes", "both", True, "raise", True)
    keep = {k: v for k, v in vars(env).items() if isinstance(v, (str, bool, RuleSet))}
    for seed in (3, None):
        seen, info = env.reset(seed=seed)
        assert seen["observation"].shape == (26, 4, 10)
        assert info.keys() == {"seat", "action_mask"}
        assert (len(env.game.view(1).hand) + len(env.game.table(1)), info["seat"]) == (8, 1)
    assert keep == {k: v for k, v in vars(env).items() if isinstance(v, (str, bool, RuleSet))}


PACK = " ".join(np.random.default_rng(1).permutation(NAMES))


def test_deal_deck_and_position_are_options() -> None:
    env = ConquianEnv(seat=0)
    env.reset(seed=3, options={"deal": 9, "other": 1})
    assert env.game == Game(seed=3, deal=9)
    env.reset(options={"deal": 2})
    assert env.game == Game(seed=3, deal=2)
    env.reset()
    assert env.game == Game(seed=3, deal=3)
    env.reset(options={"deck": PACK})
    assert env.game == Game.from_deck("classic", PACK)
    start = position()
    env.reset(options={"position": start})
    assert env.game == start
    env.step(PASS)
    assert start == position()


def test_a_seed_moves_the_chance_of_an_opponent_in_a_position() -> None:
    """The cards stay; who the learner is, and what the opponent does, is the seed's."""
    for options in ({"position": Game(seed=4)}, {"deck": PACK}):
        env, ends, seats = ConquianEnv(), {}, set()
        for seed in [*range(12), *range(12)]:
            env.reset(seed=seed, options=options)
            seats.add(env.seat)
            while not env.game.is_over:
                env.step(env.action_masks().argmax())
            end = env.game.history
            assert ends.setdefault(seed, end) == end
        assert seats == {0, 1}
        assert len(set(ends.values())) > 9


WRONG_OPTIONS = [
    ({"deal": -1}, SeedError, "deal"),
    ({"deal": 1.5}, SeedError, "deal"),
    ({"deck": "2S 3S"}, PositionError, "deck"),
    ({"deck": PACK[:-2] + PACK[:2]}, CardError, "comes twice"),
    ({"position": "2S"}, OptionError, "position"),
    ({"position": Game("mexican")}, OptionError, "position"),
    ({"position": won()}, OptionError, "position"),
    ({"deck": PACK, "deal": 1}, OptionError, "deal and deck|deck and deal"),
]
SEEDS = [-1, 1 << 64, 1.5, "7", True]


@pytest.mark.parametrize(("options", "error", "name"), WRONG_OPTIONS)
def test_a_wrong_option_is_named_and_nothing_changes(
    options: dict[str, Any], error: type[Exception], name: str
) -> None:
    env, kept = ConquianEnv(), copy.deepcopy(options)
    env.reset(seed=1)
    before = pickle.dumps(env)
    with pytest.raises(error, match=name):
        env.reset(seed=2, options=options)
    assert pickle.dumps(env) == before
    assert options == kept


@pytest.mark.parametrize("options", [None, {"position": position()}, {"deck": PACK}, {"deal": 3}])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_seed_is_refused_and_nothing_changes(seed: Any, options: Any) -> None:
    env = ConquianEnv()
    env.reset(seed=1)
    before = pickle.dumps(env)
    with pytest.raises(SeedError, match="seed"):
        env.reset(seed=seed, options=options)
    assert pickle.dumps(env) == before


def test_options_and_metadata_are_their_owners() -> None:
    options = {"deal": 3, "unknown": [1]}
    before = copy.deepcopy(ConquianEnv.metadata)
    env = ConquianEnv(render_mode="ansi")
    env.reset(seed=1, options=options)
    episode(env, np.random.default_rng(1))
    assert options == {"deal": 3, "unknown": [1]}
    assert ConquianEnv.metadata == before
    assert before == {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 2}


WRONG_ARGUMENTS: list[dict[str, Any]] = [
    {"observation": "plane"}, {"mask_location": "infos"}, {"illegal": "win"},
    {"render_mode": "rgb"}, {"perspective": 2}, {"perspective": True}, {"seat": 2},
    {"opponent": "nobody"},
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG_ARGUMENTS, ids=str)
def test_wrong_arguments_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        ConquianEnv(**wrong)
    if "render_mode" not in wrong:  # which Gymnasium refuses itself
        with pytest.raises(OptionError, match=next(iter(wrong))):
            gymnasium.make(ID, **wrong)


def test_wrong_rules_are_named() -> None:
    with pytest.raises(RuleSetError, match="unknown"):
        ConquianEnv("modern")


# --- illegal and impossible actions ---

ILLEGAL = [-1, 83, 2, 1 << 70, np.int64(82), np.array(2), torch.tensor(2)]
NO_ACTIONS = [1.5, True, None, "7S", [0], np.array([0]), np.float64(0), np.True_, torch.tensor(1.5)]


@pytest.mark.parametrize("wrong", ILLEGAL, ids=repr)
def test_an_illegal_action_raises_and_changes_nothing(wrong: Any) -> None:
    env = ConquianEnv(illegal="raise", seat=0, shaping=True)
    env.reset(seed=1)
    before = pickle.dumps(env)
    with pytest.raises(IllegalActionError):
        env.step(wrong)
    assert pickle.dumps(env) == before
    assert not env.step(PASS)[2]


@pytest.mark.parametrize("shaping", [False, True])
@pytest.mark.parametrize("wrong", ILLEGAL, ids=repr)
def test_an_illegal_action_loses_the_stake(wrong: Any, shaping: bool) -> None:
    env = ConquianEnv("classic,draw=double", Lazy(), 0, shaping=shaping, render_mode="ansi")
    env.reset(seed=1)
    total = 0.0
    while env.game.stake == 1:
        total += env.step(env.action_masks().argmax())[1]
    _, reward, over, cut, _ = env.step(wrong)
    assert (round(total + reward, 9), over, cut) == (-2.0, True, False)
    assert np.flatnonzero(env.action_masks()).tolist() == [PASS]
    assert "illegal" in str(env.render())
    with pytest.raises(ConquianError, match="reset"):
        env.step(PASS)
    twin = ConquianEnv("classic,draw=double", Lazy(), 0, shaping=shaping, render_mode="ansi")
    assert data_equivalence(env.reset(seed=2), twin.reset(seed=2))
    rngs = np.random.default_rng(1), np.random.default_rng(1)
    assert data_equivalence(episode(env, rngs[0]), episode(twin, rngs[1]))
    assert env.render() == twin.render()


@pytest.mark.parametrize("illegal", ["lose", "raise"])
@pytest.mark.parametrize("wrong", NO_ACTIONS, ids=repr)
def test_what_is_no_number_is_refused_and_changes_nothing(wrong: Any, illegal: Any) -> None:
    for env in (ConquianEnv(illegal=illegal, seat=0), over_at_once(illegal)):
        before = pickle.dumps(env)
        if env._game is None:
            env.reset(seed=1)
            before = pickle.dumps(env)
        with pytest.raises(IllegalActionError, match="unknown action"):
            env.step(wrong)
        assert pickle.dumps(env) == before
        env.step(PASS)


def over_at_once(illegal: Any) -> ConquianEnv:
    env, seed = ConquianEnv(**OVER_AT_ONCE, illegal=illegal), 0
    env.reset(seed=seed)
    while not env.game.is_over:
        seed += 1
        env.reset(seed=seed)
    return env


@pytest.mark.parametrize("make", [np.int64, np.uint8, np.array, torch.tensor])
def test_integers_of_every_kind_are_actions(make: Callable[[int], Any]) -> None:
    env, twin, rng = ConquianEnv(), ConquianEnv(), np.random.default_rng(6)
    env.reset(seed=1)
    twin.reset(seed=1)
    for _ in range(10):
        action = choice(env, rng)
        assert data_equivalence(env.step(make(action)), twin.step(action))


def test_calls_out_of_order() -> None:
    env = ConquianEnv()
    for call in (env.action_masks, lambda: env.step(0), lambda: env.game):
        with pytest.raises(ConquianError, match="reset the environment"):
            call()
    env.reset(seed=1)
    episode(env, np.random.default_rng(1))
    game = env.game.to_json()
    with pytest.raises(ConquianError, match="the deal is over: reset"):
        env.step(PASS)
    assert env.game.to_json() == game


# --- copies and pictures ---


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("case", [*CASES[:4], CASES[-1]], ids=case_id)
def test_a_copy_plays_on_identically(case: dict[str, Any], way: str) -> None:
    env = ConquianEnv(**case)
    for cut in (0, 3, 9):
        env.reset(seed=7)
        rng = np.random.default_rng(7)
        for _ in range(cut):
            if not env._over:
                env.step(choice(env, rng))
        twin = COPIES[way](env)
        before, told = pickle.dumps(env), []
        for one in (twin, env):
            assert one is env or pickle.dumps(env) == before
            rng = np.random.default_rng(8)
            on = [] if one._over else episode(one, rng)
            told.append([on, one.reset(), episode(one, rng), one.reset(seed=2)])
            assert pickle.dumps(env) != before or one is twin
        assert data_equivalence(*told)


def test_rendering_shows_the_learners_side() -> None:
    env = ConquianEnv(render_mode="ansi", seat=1)
    env.reset(seed=3)
    assert " ".join(env.game.hand(1)) in env.render()
    assert " ".join(env.game.hand(0)) not in env.render()
    env = ConquianEnv(render_mode="ansi", seat=1, perspective="open")
    env.reset(seed=3)
    assert " ".join(env.game.hand(0)) in env.render()
    env = ConquianEnv(render_mode="rgb_array")
    env.reset(seed=3)
    assert (env.render().shape, env.render().dtype) == ((720, 1280, 3), np.uint8)
    env = ConquianEnv()
    env.reset(seed=3)
    assert env.render() is None


def test_the_deck_of_a_deal_plays_as_the_deal() -> None:
    start = Game(seed=5)
    stock = json.loads(start.to_json())["stock"].split()
    turned = [start.face_up] if start.face_up else []
    deck = " ".join([*start.hand(0), *start.hand(1), *turned, *stock])
    assert sorted(cards(deck)) == list(range(40))
    env = ConquianEnv(seat=0, opponent=Lazy())
    env.reset(options={"deck": deck})
    assert env.game.observation(0).tolist() == start.observation(0).tolist()


def test_a_deck_stands_in_the_place_of_a_deal() -> None:
    """The deals go on after it, under the seed that was given last."""
    deck = "AC 2C 3C 4C 5C 6C 7C JC QC KC " + " ".join(
        rank + suit for suit in "DHS" for rank in "A234567JQK"
    )
    for env in (ConquianEnv(), raw_env()):
        env.reset(seed=5)
        env.reset(options={"deck": deck})
        env.reset()
        assert (env.game.seed, env.game.deal) == (5, 2)


def test_shaping_adds_up_from_a_position_on() -> None:
    game = Game(seed=3)
    while not game.table(0) and not game.table(1):
        game.apply(game.legal_actions()[-1])
    while game.phase != "offered":
        game.apply(game.legal_actions()[-1])
    env = raw_env(shaping=True)
    env.reset(options={"position": game})
    total = 0.0
    while not env.game.is_over:
        env.step(env.game.legal_actions()[0])
        total += env.rewards["player_0"]
    assert total == pytest.approx(env.game.returns()[0])


def test_an_illegal_action_is_not_told_to_the_other_side() -> None:
    env = ConquianEnv(seat=0, render_mode="ansi", perspective=1)
    env.reset(seed=1)
    env.step(next(a for a in range(LAY, DISCARD) if a not in env.game.legal_actions()))
    assert env.render().endswith("the learner chose an illegal action and loses")
