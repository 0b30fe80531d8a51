"""The PettingZoo environment: the library's own checkers, and what they do not check."""

import copy
import pickle

import numpy as np
import pytest
from pettingzoo import AECEnv
from pettingzoo.env_registry.registration import make
from pettingzoo.test import api_test, render_test, seed_test

from conquian_env import Game, RuleSet, conquian_v0
from conquian_env.errors import ConquianError, IllegalActionError, OptionError, SeedError
from conquian_env.observation import OBSERVATION_SIZE

CONSTRUCTORS = [conquian_v0.env, conquian_v0.raw_env]
MASKS = ["obs", "info", "both"]
# The checker would rather see a plain Box than the Dict its own classics have.
DICT_SPACE = "ignore:Observation space for each agent probably should be:UserWarning"
NOT_ARRAY = "ignore:Observation is not a NumPy array:UserWarning"


def masked_choice(env: AECEnv, rng: np.random.Generator) -> int:
    return int(rng.choice(env.unwrapped.game.legal_actions()))


def play_out(env: AECEnv, rng: np.random.Generator) -> None:
    for agent in env.agent_iter():
        env.step(None if env.terminations[agent] else masked_choice(env, rng))


@pytest.mark.filterwarnings(DICT_SPACE, NOT_ARRAY)
@pytest.mark.parametrize("mask_location", MASKS)
@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_peer_api(constructor, mask_location):
    api_test(constructor(mask_location=mask_location), num_cycles=300)


@pytest.mark.parametrize("mask_location", MASKS)
@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_peer_seed(constructor, mask_location):
    seed_test(lambda: constructor(mask_location=mask_location), num_cycles=300)


def test_peer_render(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(conquian_v0.raw_env.metadata, "render_fps", 1000)
    assert conquian_v0.raw_env.metadata["render_modes"] == ["ansi", "rgb_array", "human"]
    render_test(conquian_v0.env)


def test_registered():
    assert isinstance(make("aec", "conquian/conquian-v0", rules="classic-1.1"), AECEnv)


def test_seed_reset_deals_that_game_and_then_the_next_deals():
    env = conquian_v0.raw_env()
    for seed in (0, 1, 2**63):
        env.reset(seed=seed)
        assert env.game.to_json() == Game(seed=seed).to_json()
        env.reset()
        assert env.game.to_json() == Game(seed=seed, deal=1).to_json()


def test_unseeded_environments_differ():
    first, second = conquian_v0.raw_env(), conquian_v0.raw_env()
    first.reset()
    second.reset()
    assert first.game.seed != second.game.seed


def test_constructor_settings_survive_a_seeded_reset():
    rules = RuleSet(deal=8, force="off")
    env = conquian_v0.raw_env(rules=rules, mask_location="both", perspective=1)
    env.reset(seed=3)
    assert (env.game.rules, env.mask_location, env.perspective) == (rules, "both", 1)
    assert len(env.game.hand(0)) == 8


@pytest.mark.parametrize("mask_location", MASKS)
def test_masks_and_observations_are_the_games(mask_location):
    env, rng = conquian_v0.raw_env(mask_location=mask_location), np.random.default_rng(1)
    for seed in range(5):
        env.reset(seed=seed)
        while True:
            for seat, agent in enumerate(env.possible_agents):
                seen = env.observe(agent)
                flat = seen if mask_location == "info" else seen["observation"]
                np.testing.assert_array_equal(flat, env.game.observation(seat))
                assert env.observation_space(agent).contains(seen)
                mine = seat == env.game.actor and not env.game.is_over
                expected = env.game.legal_mask() if mine else np.zeros(83, np.int8)
                if mask_location != "info":
                    np.testing.assert_array_equal(seen["action_mask"], expected)
                if mask_location != "obs":
                    np.testing.assert_array_equal(env.infos[agent]["action_mask"], expected)
                else:
                    assert env.infos[agent] == {}
            if env.game.is_over:
                break
            env.step(masked_choice(env, rng))


def test_both_seats_are_paid_at_the_end_and_the_loser_sees_it():
    env, rng, wins = conquian_v0.env(), np.random.default_rng(2), 0
    for seed in range(60):
        env.reset(seed=seed)
        last = {}
        for agent in env.agent_iter():
            _, reward, terminated, truncated, _ = env.last()
            assert not truncated
            if terminated:
                last[agent] = reward
                env.step(None)
            else:
                assert reward == 0
                env.step(masked_choice(env, rng))
        returns = env.unwrapped.game.returns()
        assert (last["player_0"], last["player_1"]) == returns
        wins += returns != (0.0, 0.0)
    assert wins > 0


def test_observe_works_after_the_end_for_both():
    env, rng = conquian_v0.env(), np.random.default_rng(3)
    env.reset(seed=0)
    play_out(env, rng)
    assert env.agents == []
    for agent in env.possible_agents:
        seen = env.observe(agent)
        assert seen["observation"].shape == (OBSERVATION_SIZE,)
        assert not seen["action_mask"].any()


def test_an_illegal_action_raises_in_raw_env_and_changes_nothing():
    env = conquian_v0.raw_env()
    env.reset(seed=0)
    before = env.game.to_json()
    for action in (2, 43, 83, -1, None, "pass"):
        with pytest.raises(IllegalActionError):
            env.step(action)
    assert env.game.to_json() == before
    assert env.agent_selection == "player_0"


def test_an_illegal_action_loses_in_env():
    env = conquian_v0.env()
    env.reset(seed=0)
    env.step(0)
    assert env.agent_selection == "player_1"
    env.step(82)
    assert env.rewards == {"player_0": 1.0, "player_1": -1.0}
    assert env.terminations == {"player_0": True, "player_1": True}
    assert env.truncations == {"player_0": False, "player_1": False}
    assert not env.observe("player_1")["action_mask"].any()
    seen = {}
    for agent in env.agent_iter():
        seen[agent] = env.last()[1]
        env.step(None)
    assert seen == {"player_0": 1.0, "player_1": -1.0}
    env.reset(seed=0)
    assert env.observe("player_0")["action_mask"].any()


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_copies_in_the_middle_play_on_identically_into_the_next_deal(constructor):
    env = constructor(mask_location="both", render_mode="ansi")
    for cut in (0, 3, 17):
        env.reset(seed=5)
        rng = np.random.default_rng(4)
        for _ in range(cut):
            env.step(masked_choice(env, rng))
        for twin in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
            original = copy.deepcopy(env)
            for one in (original, twin):
                play_out(one, np.random.default_rng(6))
                one.reset()
                play_out(one, np.random.default_rng(7))
            assert twin.unwrapped.game.to_json() == original.unwrapped.game.to_json()
            assert twin.render() == original.render()


def test_render_hides_the_other_hand():
    env, rng = conquian_v0.raw_env(render_mode="ansi", perspective=0), np.random.default_rng(5)
    open_env = conquian_v0.raw_env(render_mode="ansi", perspective="open")
    for seed in range(5):
        env.reset(seed=seed)
        while not env.game.is_over:
            twin = env.game.resample_hidden(0, rng)
            picture = env.render()
            open_env._game = env._game
            assert " ".join(env.game.hand(1)) in open_env.render()
            keep, env._game = env._game, twin
            assert env.render() == picture
            env._game = keep
            env.step(masked_choice(env, rng))


@pytest.mark.parametrize(
    "wrong",
    [{"render_mode": "rgb"}, {"mask_location": "both "}, {"perspective": 2}, {"perspective": True}],
)
def test_wrong_options_are_named(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        conquian_v0.env(**wrong)


def test_calls_out_of_order():
    env = conquian_v0.raw_env()
    with pytest.raises(ConquianError, match="reset"):
        env.observe("player_0")
    env.reset(seed=1)
    with pytest.raises(SeedError):
        env.reset(seed=-1)
    assert env.game.seed == 1
    with pytest.raises(OptionError, match="agent"):
        env.observe("player_2")
    play_out(env, np.random.default_rng(0))
    with pytest.raises(ConquianError, match="reset"):
        env.step(0)
