"""The PettingZoo environment: the library's own checkers, and what they do not check."""

import copy
import json
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo import AECEnv
from pettingzoo.env_registry.registration import make
from pettingzoo.test import (
    api_test,
    performance_benchmark,
    render_test,
    seed_test,
)
from pettingzoo.test.save_obs_test import test_save_obs as save_obs_test

from conquian_env import Game, RuleSet, card, conquian_v0
from conquian_env.actions import PASS
from conquian_env.cards import NAMES
from conquian_env.errors import (
    CardError,
    ConquianError,
    IllegalActionError,
    OptionError,
    PositionError,
    SeedError,
)
from conquian_env.observation import OBSERVATION_SIZE
from tests.playing import choose, playthroughs
from tests.positions import position, won

CONSTRUCTORS = [conquian_v0.env, conquian_v0.raw_env]
MASKS = ["obs", "info", "both"]
ENCODINGS = ["flat", "planes", "history"]
SETTINGS: list[dict[str, Any]] = [
    {"rules": rules, "observation": observation, "mask_location": location, "shaping": shaping}
    for rules, observation, location, shaping in [
        ("classic", "flat", "obs", False),
        ("classic", "history", "both", True),
        ("mexican", "planes", "info", True),
        ("classic,draw=double", "flat", "both", True),
        ("nano", "history", "obs", False),
    ]
]
# The checker would rather see a plain Box than the Dict its own classics have.
DICT_SPACE = "ignore:Observation space for each agent probably should be:UserWarning"
NOT_ARRAY = "ignore:Observation is not a NumPy array:UserWarning"


def masked_choice(env: AECEnv, rng: np.random.Generator) -> int:
    return int(rng.choice(env.unwrapped.game.legal_actions()))


def play_out(env: AECEnv, rng: np.random.Generator) -> None:
    for agent in env.agent_iter():
        env.step(None if env.terminations[agent] else masked_choice(env, rng))


@pytest.mark.filterwarnings(DICT_SPACE, NOT_ARRAY)
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("mask_location", MASKS)
@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_peer_api(constructor, mask_location, encoding):
    env = constructor(mask_location=mask_location, observation=encoding, shaping=True)
    api_test(env, num_cycles=300)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("mask_location", MASKS)
@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_peer_seed(constructor, mask_location, encoding):
    seed_test(
        lambda: constructor(mask_location=mask_location, observation=encoding), num_cycles=100
    )


def test_peer_render(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setitem(conquian_v0.raw_env.metadata, "render_fps", 1000)
    assert conquian_v0.raw_env.metadata["render_modes"] == ["ansi", "rgb_array", "human"]
    render_test(conquian_v0.env)


def test_peer_save_obs(capsys):
    """There is no picture to save in an observation, and the tool says so."""
    save_obs_test(conquian_v0.env())
    assert "did not save the observations" in capsys.readouterr().out


def test_peer_max_cycles():
    """Has nothing to test: it wants ``parallel_env`` with ``max_cycles``, and a deal just ends."""
    assert not conquian_v0.raw_env.metadata["is_parallelizable"]
    assert not hasattr(conquian_v0, "parallel_env")


def test_peer_benchmark(capsys, monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr("time.time", lambda: next(clock) / 10)  # 50 cycles instead of 5 seconds
    performance_benchmark(conquian_v0.env())
    assert "turns per second" in capsys.readouterr().out


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


WRONG = [
    2, 43, 83, -1, 1 << 70, None, "pass", "7S", 1.5, 0.0, True, False, [0], np.array([0]),
    np.int64(82), np.float64(0), torch.tensor(1.5),
]  # fmt: skip


def test_an_illegal_action_raises_in_raw_env_and_changes_nothing():
    env = conquian_v0.raw_env()
    env.reset(seed=0)
    before = env.game.to_json()
    for action in WRONG:
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


# --- rewards ---


def collect(env: AECEnv, rng: np.random.Generator, eager: bool = True) -> dict[str, float]:
    """Play an episode out; what ``last()`` paid each seat."""
    sums = dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        _, reward, over, cut, _ = env.last()
        assert sum(env.rewards.values()) == 0
        assert not cut
        sums[agent] += reward
        env.step(None if over else choose(env.unwrapped.game, rng, eager))
    return {agent: round(total, 9) for agent, total in sums.items()}


@pytest.mark.parametrize("shaping", [False, True])
@pytest.mark.parametrize("rules", ["classic", "mexican", "nano", "classic,draw=double"])
@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_both_are_paid_the_returns_in_all(constructor, rules, shaping):
    env, rng, found = constructor(rules=rules, shaping=shaping), np.random.default_rng(5), set()
    for deal in range(60):
        env.reset(seed=2 if deal == 0 else None)
        sums = collect(env, rng, eager=deal % 2 == 0)
        returns = env.unwrapped.game.returns()
        assert tuple(sums.values()) == returns
        found.add(np.sign(returns[0]))
    assert found == {-1, 0, 1} or rules == "classic,draw=double"
    assert {-1, 1} <= found


def test_shaping_pays_for_cards_on_the_tables():
    env = conquian_v0.raw_env(shaping=True)
    env.reset(options={"position": position()})
    env.step(1)  # 6S is taken
    assert env.rewards == {"player_0": 1 / 11, "player_1": -1 / 11}
    env.step(3 + card("4S"))
    assert env.rewards["player_0"] == 1 / 11
    assert env.last()[1] == 1 / 11


def test_an_illegal_action_takes_a_lead_back():
    env = conquian_v0.env(shaping=True)
    env.reset(options={"position": position()})
    env.step(1)
    assert env.last()[1] == 1 / 11
    env.step(82)
    assert env.rewards == {"player_0": -1 - 1 / 11, "player_1": 1 + 1 / 11}
    assert env.last()[1] == -1 - 1 / 11
    env.step(None)
    assert env.last()[1] == pytest.approx(1)


@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_every_deal_is_an_episode(constructor):
    env, rng = constructor(rules="nano"), np.random.default_rng(6)
    env.reset(seed=4)
    for deal in range(30):
        assert (env.unwrapped.game.seed, env.unwrapped.game.deal) == (4, deal)
        assert not any(env.terminations.values())
        ended = 0
        for agent in env.agent_iter():
            over = env.terminations[agent]
            ended += over
            env.step(None if over else masked_choice(env, rng))
        assert ended == 2
        env.reset()


def test_an_illegal_action_loses_the_stake_in_play():
    env = conquian_v0.env(rules="classic,draw=double", shaping=True)
    env.reset(seed=1)
    sums = dict.fromkeys(env.possible_agents, 0.0)
    while env.unwrapped.game.stake < 4:
        sums[env.agent_selection] += env.last()[1]
        env.step(env.unwrapped.game.legal_actions()[0])
    loser = env.agent_selection
    sums[loser] += env.last()[1]
    env.step(82)
    for agent in env.agent_iter():
        sums[agent] += env.last()[1]
        env.step(None)
    assert {agent: round(total, 9) for agent, total in sums.items()} == {
        agent: -4.0 if agent == loser else 4.0 for agent in env.possible_agents
    }


# --- wrong actions in the wrapped environment ---


@pytest.mark.parametrize(
    "wrong", [83, -1, None, "7S", 1.5, np.array([0]), torch.tensor(0), [0]], ids=repr
)
def test_what_is_outside_the_action_space_raises_in_env(wrong):
    env = conquian_v0.env()
    env.reset(seed=0)
    before = env.unwrapped.game.to_json()
    with pytest.raises(AssertionError, match="action is not in action space"):
        env.step(wrong)
    assert env.unwrapped.game.to_json() == before
    assert not any(env.terminations.values())
    env.step(PASS)


@pytest.mark.parametrize("make_action", [int, np.int64, np.uint8, np.array, torch.tensor])
def test_integers_of_every_kind_are_actions(make_action):
    env, twin = conquian_v0.raw_env(), conquian_v0.raw_env()
    env.reset(seed=0)
    twin.reset(seed=0)
    rng = np.random.default_rng(7)
    while not env.game.is_over:
        action = masked_choice(env, rng)
        env.step(make_action(action))
        twin.step(action)
    assert env.game == twin.game


def test_a_game_after_a_wrong_action_is_sound():
    env, twin = (conquian_v0.env(shaping=True, render_mode="ansi") for _ in range(2))
    env.reset(seed=0)
    env.step(82)
    assert "player_0 chose an illegal action and loses" in env.render()
    env.reset(seed=1)
    twin.reset(seed=1)
    assert env.observe("player_0")["observation"].tolist() == Game(seed=1).observation(0).tolist()
    assert data_equivalence(transcript(env, 8), transcript(twin, 8))


# --- seeds, copies and options ---


def transcript(env: AECEnv, seed: int) -> list[Any]:
    """All that is seen in an episode, of both sides at every step."""
    rng, told = np.random.default_rng(seed), []
    for agent in env.agent_iter():
        seen = [env.observe(each) for each in env.possible_agents]
        now = (agent, env.last(), seen, env.infos, env.rewards, env.render())
        told.append(copy.deepcopy(now))
        env.step(None if env.terminations[agent] else masked_choice(env, rng))
    return told


@pytest.mark.parametrize("seed", [0, 5, (1 << 64) - 1])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: " ".join(map(str, s.values())))
def test_a_seed_brings_the_same_episodes_again(settings, seed):
    env, told = conquian_v0.env(render_mode="ansi", **settings), []
    for one in (env, env, conquian_v0.env(render_mode="ansi", **settings)):
        one.reset(seed=seed)
        episodes = []
        for deal in range(3):
            episodes.append(transcript(one, deal))
            assert one.unwrapped.game.deal == deal
            one.reset()
        told.append(episodes)
    assert data_equivalence(told[0], told[1])
    assert data_equivalence(told[0], told[2])
    assert not data_equivalence(told[0][0], told[0][1])
    assert not data_equivalence(told[0][1], told[0][2])


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: " ".join(map(str, s.values())))
@pytest.mark.parametrize("constructor", CONSTRUCTORS)
def test_copies_go_on_with_the_same_rewards_and_infos(constructor, settings):
    env = constructor(render_mode="ansi", **settings)
    for cut in (0, 2, 6):
        env.reset(seed=6)
        rng = np.random.default_rng(9)
        for _ in range(cut):
            if env.agents and not any(env.terminations.values()):
                env.step(masked_choice(env, rng))
        kept = env.unwrapped.game.to_json()
        told = []
        for one in (copy.deepcopy(env), pickle.loads(pickle.dumps(env)), env):
            assert one is env or env.unwrapped.game.to_json() == kept
            told.append([transcript(one, 1), one.reset(), transcript(one, 2)])
        assert data_equivalence(told[0], told[1])
        assert data_equivalence(told[0], told[2])


def test_set_state_goes_on_from_a_copy():
    env = conquian_v0.raw_env(shaping=True)
    env.reset(seed=0)
    play_out(env, np.random.default_rng(0))
    start = position()
    env.set_state(start)
    assert env.game == start
    assert (env.agents, env.agent_selection) == (["player_0", "player_1"], "player_0")
    assert not any(env.terminations.values())
    assert env.observe("player_0")["action_mask"].tolist() == start.legal_mask().tolist()
    env.step(PASS)
    assert start == position() != env.game
    before = env.game.to_json()
    for wrong in (None, "2S", won(), Game("mexican")):
        with pytest.raises(OptionError, match="game"):
            env.set_state(wrong)
        assert env.game.to_json() == before


PACK = " ".join(np.random.default_rng(1).permutation(NAMES))


def test_deal_deck_and_position_are_options():
    env = conquian_v0.env()
    options = {"deal": 9, "unknown": [1]}
    env.reset(seed=3, options=options)
    assert options == {"deal": 9, "unknown": [1]}
    assert env.unwrapped.game == Game(seed=3, deal=9)
    env.reset()
    assert env.unwrapped.game == Game(seed=3, deal=10)
    env.reset(options={"deck": PACK})
    assert env.unwrapped.game == Game.from_deck("classic", PACK)
    start = position(actor=1)
    env.reset(options={"position": start})
    assert env.unwrapped.game == start
    assert env.agent_selection == "player_1"
    env.step(PASS)
    assert start == position(actor=1)


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"deal": -1}, SeedError, "deal"),
        ({"deal": 1.5}, SeedError, "deal"),
        ({"deck": "2S 3S"}, PositionError, "deck"),
        ({"deck": 7}, CardError, "7"),
        ({"position": "2S"}, OptionError, "position"),
        ({"position": Game("mexican")}, OptionError, "position"),
        ({"position": won()}, OptionError, "position is over"),
        ({"deck": PACK, "position": position()}, OptionError, "deck and position"),
    ],
)
def test_a_wrong_option_is_named_and_nothing_changes(options, error, name):
    env = conquian_v0.env(shaping=True)
    env.reset(seed=1)
    env.step(PASS)
    before = pickle.dumps(env)
    with pytest.raises(error, match=name):
        env.reset(seed=2, options=options)
    with pytest.raises(SeedError):
        env.reset(seed=-1, options={"position": position()})
    assert pickle.dumps(env) == before


def test_metadata_stays_as_it_is():
    before = copy.deepcopy(conquian_v0.raw_env.metadata)
    env = conquian_v0.env(render_mode="ansi")
    env.reset(seed=1)
    play_out(env, np.random.default_rng(1))
    assert conquian_v0.raw_env.metadata == env.metadata == before
    assert before["name"] == "conquian_v0"


# --- what is seen ---


def assert_seen(env: AECEnv) -> None:
    """Both agents' observations are the game's, in their spaces, now and after all have left."""
    for seat, agent in enumerate(env.possible_agents):
        seen = env.observe(agent)
        assert env.observation_space(agent).contains(seen)
        flat = seen if isinstance(seen, np.ndarray) else seen["observation"]
        assert (flat == env.unwrapped.game.observation(seat, env.unwrapped.encoding)).all()
    assert env.state_space.contains(env.state())
    assert (env.state() == env.unwrapped.game.state(0)).all()


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda s: " ".join(map(str, s.values())))
def test_both_can_observe_at_any_time(settings):
    env, rng = conquian_v0.env(**settings), np.random.default_rng(1)
    for seed in range(3):
        env.reset(seed=seed)
        for agent in env.agent_iter():
            assert_seen(env)
            env.step(None if env.terminations[agent] else masked_choice(env, rng))
        assert_seen(env)


def test_what_was_seen_stays_as_it_was():
    env = conquian_v0.env(mask_location="both")
    env.reset(seed=1)
    seen = [env.observe("player_0"), env.infos["player_0"], env.state()]
    kept = copy.deepcopy(seen)
    play_out(env, np.random.default_rng(1))
    assert data_equivalence(seen, kept)
    env.observe("player_0")["observation"][:] = 9
    assert_seen(env)


def test_the_state_holds_the_other_hand_and_the_stock_card_by_card():
    env, rng, moved = conquian_v0.raw_env(), np.random.default_rng(2), 0
    for game in list(playthroughs("classic", 10, seed=3))[::5]:
        if game.is_over:
            continue
        env.reset(options={"position": game})
        state = env.state()
        assert env.state_space.contains(state)
        other_hand, turns = np.split(state[OBSERVATION_SIZE:], 3)[:2]
        assert np.flatnonzero(other_hand).tolist() == sorted(map(card, game.hand(1)))
        stock = json.loads(game.to_json())["stock"].split()
        assert [NAMES[i] for i in np.argsort(turns)[40 - len(stock) :]] == stock
        if len(stock) > 5:
            env.set_state(game.resample_hidden(0, rng))
            assert (env.state() != state).any()
            assert (env.state()[:OBSERVATION_SIZE] == state[:OBSERVATION_SIZE]).all()
            moved += 1
    assert moved > 10
