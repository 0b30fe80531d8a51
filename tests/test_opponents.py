"""The pool: who is drawn, for how long, and what is refused."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from agents.agent import AgentError, uniforms
from agents.checkpoint import Checkpoint, CheckpointError, save
from agents.network import Network, NetworkConfig, make_network
from conquian_env import Batch, RuleSet, Views
from training.config import Config, PoolConfig, PPOConfig
from training.opponents import NOBODY, Pool
from training.rollout import Collector
from training.toml import ConfigError

RULES = RuleSet.preset("nano")
BOTH = PoolConfig(share=0.4, anchors=("random", "greedy"), past=2, every=1)
SHAPE = NetworkConfig(width=8, layers=1, ways=False)
CPU = torch.device("cpu")


def network(seed: int = 0) -> Network:
    torch.manual_seed(seed)
    return make_network(SHAPE)


def pool_of(config: PoolConfig = BOTH, past: int = 0, seed: int = 3) -> Pool:
    pool = Pool(config, RULES, seed)
    for number in range(past):
        pool.add(network(number), f"past {number}")
    return pool


def many(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Games and deals, in no order."""
    order = np.random.default_rng(0).permutation(n)
    return order % 1000, order // 1000


# --- drawing ---


def test_a_draw_depends_on_seed_game_and_deal_alone():
    games, deals = many(5000)
    opponent, seat = pool_of(past=2).draw(games, deals)
    other = pool_of(past=2)
    for k in range(200):
        one = other.draw(games[[k]], deals[[k]])
        assert (one[0][0], one[1][0]) == (opponent[k], seat[k])
    assert (pool_of(past=2, seed=4).draw(games, deals)[0] != opponent).any()
    assert len({*opponent[games == 7].tolist()}) > 1  # other deals of a game
    assert len({*opponent[deals == 1].tolist()}) > 1  # other games


def test_the_share_of_the_deals_has_an_opponent():
    """Of 40,000 deals 0.4 ± 5 standard errors; false alarm 6e-7 for another seed."""
    opponent, seat = pool_of(past=2).draw(*many(40_000))
    share = (opponent != NOBODY).mean()
    assert abs(share - 0.4) < 5 * np.sqrt(0.4 * 0.6 / 40_000)
    np.testing.assert_array_equal(opponent == NOBODY, seat == NOBODY)


def test_every_member_comes_as_often_in_either_seat():
    """Each of eight kinds in 1/8 of 16,000 deals ± 5 standard errors; false alarm below 5e-6."""
    opponent, seat = pool_of(replace(BOTH, share=1.0), past=2).draw(*many(16_000))
    kinds, counts = np.unique(np.stack([opponent, seat]), axis=1, return_counts=True)
    assert kinds.T.tolist() == [[member, seat] for member in range(4) for seat in (0, 1)]
    assert abs(counts - 2000).max() < 5 * np.sqrt(16_000 / 8 * 7 / 8)


@pytest.mark.parametrize(
    ("config", "some"),
    [
        (PoolConfig(share=1.0, past=3), False),
        (replace(BOTH, share=0.0), False),
        (replace(BOTH, share=1.0), True),
    ],
)
def test_without_members_or_a_share_all_is_self_play(config, some):
    opponent, _ = pool_of(config).draw(*many(1000))
    assert (opponent != NOBODY).all() == some
    assert (opponent != NOBODY).any() == some


# --- past selves ---


def test_new_deals_are_played_against_the_anchors_and_the_newest_past_selves():
    pool = pool_of(past=5)
    names = [pool[number][0] for number in pool.current]
    assert names == ["random", "greedy", "past 3", "past 4"]
    assert pool_of(past=1).current.tolist() == [0, 1, 2]
    assert pool_of(replace(BOTH, past=0), past=3).current.tolist() == [0, 1]


def test_no_more_past_selves_are_kept_than_one_above_those_drawn():
    pool = pool_of(past=50)
    assert [past.name for past in pool.past] == ["past 47", "past 48", "past 49"]


def test_a_member_keeps_its_number_while_deals_with_it_go_on():
    pool = pool_of(past=2)
    name = pool[3][0]
    pool.add(network(), "newer")
    pool.add(network(), "newest")
    assert pool[3][0] == name == "past 1"


def test_a_deal_that_outlasts_its_past_self_goes_on_against_the_oldest():
    pool = pool_of(past=20)
    assert {pool[number][0] for number in range(2, 19)} == {"past 17"}
    assert [pool[number][0] for number in (19, 20, 21)] == ["past 17", "past 18", "past 19"]


def test_a_past_self_is_a_copy():
    learning = network()
    pool = pool_of()
    pool.add(learning, "then")
    batch = Batch(20, RULES, skip_forced=True)
    views = batch.views(np.arange(20), np.zeros(20, np.uint64))
    before = pool[2][1].probabilities(views)
    learning.load_state_dict(network(1).state_dict())
    np.testing.assert_array_equal(pool[2][1].probabilities(views), before)


def test_past_selves_play_what_they_would_have_drawn():
    """Not their best action."""
    pool = pool_of(past=1)
    batch = Batch(200, RULES, skip_forced=True)
    seeds = np.random.default_rng(0).integers(0, 1 << 64, 200, np.uint64)
    actions, theirs = np.full(200, -1), np.arange(200) % 2 == 0
    pool.play(batch, np.full(200, 2), theirs, seeds, actions)
    assert (actions[~theirs] == -1).all()
    expected = pool[2][1].act(batch.views(np.flatnonzero(theirs), seeds[theirs]))
    np.testing.assert_array_equal(actions[theirs], expected)
    assert len(np.unique(actions[theirs])) > 1
    assert pool[2][1].sample


def test_a_restored_pool_is_the_same():
    pool, other = pool_of(past=7), pool_of()
    other.restore(copy.deepcopy(pool.state()), network(99))
    assert other.current.tolist() == pool.current.tolist()
    for number in pool.current.tolist():
        assert other[number][0] == pool[number][0]
    for one, theirs in zip(other.past, pool.past, strict=True):
        weights = theirs.network.state_dict()
        for name, tensor in one.network.state_dict().items():
            assert torch.equal(tensor, weights[name])
    games, deals = many(1000)
    np.testing.assert_array_equal(other.draw(games, deals), pool.draw(games, deals))


# --- in the games ---

CONFIG = Config(
    decisions=10**6,
    rules="nano",
    num_games=40,
    rollout=1,
    network=SHAPE,
    ppo=PPOConfig(bf16=False),
    pool=replace(BOTH, share=0.7),
)


def test_opponents_change_only_between_deals_and_all_appear():
    pool = Pool(CONFIG.pool, RULES, CONFIG.seed)
    collector = Collector(CONFIG, np.arange(40), pool, CPU)
    met, changes = set(), 0
    for step in range(120):
        opponent, seat = collector.opponent.copy(), collector.opponent_seat.copy()
        met |= {pool[k][0] for k in opponent[opponent != NOBODY].tolist()}
        collector.collect(network())
        changed = (collector.opponent != opponent) | (collector.opponent_seat != seat)
        assert not changed[~collector.done[0]].any()
        changes += changed.sum()
        if step % 20 == 19:
            pool.add(network(step), f"past {step}")
    assert changes > 200
    assert met == {"random", "greedy", *(f"past {step}" for step in range(19, 119, 20))}


def test_after_a_deal_the_next_opponent_is_drawn_by_its_number():
    pool = Pool(CONFIG.pool, RULES, CONFIG.seed)
    collector = Collector(CONFIG, np.arange(40), pool, CPU)
    for _ in range(30):
        expected = pool.draw(np.arange(40), collector.batch.deal)
        np.testing.assert_array_equal(collector.opponent, expected[0])
        np.testing.assert_array_equal(collector.opponent_seat, expected[1])
        collector.collect(network())
    assert collector.batch.deal.min() > 1


SEEDS: list[np.ndarray] = []


class Noting:
    """Notes the seeds that it is given."""

    def act(self, views: Views) -> np.ndarray:
        SEEDS.append(views.seeds.copy())
        return views.mask.argmax(axis=1)


def test_what_opponents_do_says_nothing_of_who_was_drawn(monkeypatch):
    """In the first step both are named by game and 0."""
    config = replace(CONFIG, pool=PoolConfig(share=1.0, anchors=("tests.test_opponents:Noting",)))
    drawn: list[np.ndarray] = []

    def noted(seeds: np.ndarray) -> np.ndarray:
        drawn.append(seeds)
        return uniforms(seeds)

    monkeypatch.setattr("training.opponents.uniforms", noted)
    SEEDS.clear()
    Collector(config, np.arange(40), Pool(config.pool, RULES, 0), CPU).collect(network())
    assert len(SEEDS[0]) > 5
    assert not set(SEEDS[0].tolist()) & set(drawn[0].tolist())


# --- what is refused ---


def checkpoint(path, rules: RuleSet = RULES) -> None:
    save(path, Checkpoint(network(), rules, 0))


def test_a_folder_of_checkpoints_joins_the_anchors_by_name(tmp_path):
    for name in ("b.pt", "a.pt"):
        checkpoint(tmp_path / name)
    for name in ("notes.txt", "state.pt"):
        (tmp_path / name).write_text("no checkpoint, and not looked at")
    pool = pool_of(replace(BOTH, anchors=("greedy",), folder=str(tmp_path)))
    paths = [f"ppo:{tmp_path / name},sample=true" for name in ("a.pt", "b.pt")]
    assert [name for name, _ in pool.anchors] == ["greedy", *paths]
    assert all(agent.sample for _, agent in pool.anchors[1:])


def test_a_foreign_file_in_the_folder_is_refused_by_its_path(tmp_path):
    checkpoint(tmp_path / "a.pt")
    (tmp_path / "b.pt").write_text("something else")
    with pytest.raises(CheckpointError) as caught:
        pool_of(replace(BOTH, folder=str(tmp_path)))
    assert str(tmp_path / "b.pt") in str(caught.value)


@pytest.mark.parametrize("where", ["anchors", "folder"])
def test_an_anchor_that_plays_other_rules_is_refused(tmp_path, where):
    path = tmp_path / "classic.pt"
    checkpoint(path, RuleSet())
    named = {"anchors": {"anchors": (f"ppo:{path}",)}, "folder": {"folder": str(tmp_path)}}
    with pytest.raises(AgentError) as caught:
        pool_of(PoolConfig(share=1.0, **named[where]))
    assert str(path) in str(caught.value)
    assert str(RuleSet()) in str(caught.value)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (PoolConfig(share=0.5), "pool.share: there is nobody"),
        (
            PoolConfig(share=0.5, folder="nowhere"),
            "pool.folder: there are no checkpoints in nowhere",
        ),
    ],
)
def test_an_empty_pool_is_refused(config, reason):
    with pytest.raises(ConfigError, match=reason):
        pool_of(config)


def test_a_pool_with_other_anchors_is_not_restored():
    state = pool_of(replace(BOTH, anchors=("greedy",))).state()
    with pytest.raises(ConfigError, match="the anchors were"):
        pool_of(BOTH).restore(state, network(1))


def test_an_unknown_anchor_is_refused_by_name():
    with pytest.raises(AgentError, match="unknown agent 'gredy'"):
        pool_of(PoolConfig(anchors=("gredy",)))
