"""Playing for the learner: what is kept is what was shown, decided and paid."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.inputs import network_inputs
from agents.network import Critic, Network, NetworkConfig, make_network
from agents.symmetry import ACTION_PLACES, HIDDEN_PLACES, OBSERVATION_PLACES
from agents.turns import narrow
from conquian_env import Batch
from conquian_env.actions import NUM_ACTIONS
from conquian_env.rules import rule_set
from conquian_env.seeds import derive
from training.advantages import advantages
from training.config import Config, PoolConfig, PPOConfig
from training.opponents import NOBODY, Pool
from training.rollout import Collector, Rollout, _draw

N, T = 32, 40
CONFIG = Config(
    decisions=10**6,
    seed=5,
    num_games=N,
    rollout=T,
    network=NetworkConfig(width=8, layers=1),
    ppo=PPOConfig(bf16=False),
)
LOWEST = PoolConfig(share=0.7, anchors=("tests.test_agents:First",))


def network_of(config: Config) -> Network:
    """Its decisions are far from uniform."""
    torch.manual_seed(0)
    network = make_network(config.network)
    torch.nn.init.normal_(network.card_logits.weight, std=0.3)
    return network


def collector_of(config: Config, games: NDArray[np.int64] | None = None) -> Collector:
    games = np.arange(config.num_games) if games is None else games
    pool = Pool(config.pool, config.rule_set, config.seed)
    return Collector(config, games, pool, torch.device("cpu"))


def twin_of(config: Config) -> Batch:
    games = np.arange(config.num_games)
    seeds = derive("training", config.seed, games, np.zeros_like(games))
    return Batch(config.num_games, config.rule_set, seeds, skip_forced=True)


def by_time(tensor: torch.Tensor, games: int = N) -> NDArray:
    return tensor.numpy().reshape(-1, games, *tensor.shape[1:])


def collected(config: Config) -> tuple[Collector, Rollout]:
    collector = collector_of(config)
    return collector, collector.collect(network_of(config))


# --- replayed on a twin batch ---


@pytest.mark.parametrize("ways", [True, False])
@pytest.mark.parametrize("rules", ["classic", "mexican,draw=double"])
def test_a_rollout_holds_what_the_batch_showed(rules, ways):
    """Every input, mask, actor and reward, in time order."""
    config = replace(
        CONFIG, rules=rule_set(rules).to_dict(), network=replace(CONFIG.network, ways=ways)
    )
    collector, rollout = collected(config)
    twin, returns, highest = twin_of(config), [], config.rule_set.highest_stake
    inputs, mask, action = map(by_time, (rollout.inputs, rollout.mask, rollout.action))
    for t in range(T):
        expected = network_inputs(twin.observation, twin.mask, twin.rules, ways)
        np.testing.assert_array_equal(inputs[t], expected)
        choices = narrow(twin.observation, twin.mask, twin.rules)
        np.testing.assert_array_equal(mask[t], choices)
        np.testing.assert_array_equal(collector.actor[t], twin.actor)
        assert twin.mask.sum(axis=1).min() > 1
        twin.step(action[t])
        np.testing.assert_array_equal(collector.reward[t], twin.reward / highest)
        np.testing.assert_array_equal(collector.done[t], twin.done)
        returns += (twin.reward[twin.done, 0] / highest).tolist()
    assert len(returns) > 2
    np.testing.assert_array_equal(rollout.returns, returns)
    assert rollout.pool_returns.size == 0
    assert rollout.learned.all()


def test_what_the_network_said_is_kept():
    _, rollout = collected(CONFIG)
    network = network_of(CONFIG)
    output = network(rollout.inputs, rollout.mask)
    chosen = output.log_probabilities.gather(1, rollout.action[:, None])[:, 0]
    torch.testing.assert_close(rollout.log_probability, chosen, atol=1e-5, rtol=0)
    torch.testing.assert_close(rollout.value, output.value, atol=1e-5, rtol=0)
    torch.testing.assert_close(rollout.target, rollout.advantage + rollout.value)
    assert rollout.hidden is None


def test_advantages_end_with_the_value_of_what_comes_next():
    """Without a critic the network's, for the seat that waits its negative."""
    collector, rollout = collected(CONFIG)
    after = collector.batch
    inputs = network_inputs(after.observation, after.mask, after.rules, True)
    value = network_of(CONFIG)(torch.from_numpy(inputs), torch.from_numpy(after.mask)).value
    value = value.detach().numpy()
    last = np.stack([np.where(after.actor == seat, value, -value) for seat in (0, 1)], 1)
    expected = by_hand(collector, rollout.value, last)
    np.testing.assert_allclose(rollout.advantage, expected.ravel(), atol=1e-5)


def by_hand(collector: Collector, value: torch.Tensor, last: NDArray) -> NDArray[np.float32]:
    arrays = (collector.actor, collector.reward, collector.done, by_time(value.detach()))
    advantage, _ = advantages(*arrays, last.astype(np.float32), CONFIG.ppo.gae_lambda)
    return advantage


def test_the_second_rollout_goes_on_where_the_first_stopped():
    config, network = replace(CONFIG, rollout=5), network_of(CONFIG)
    collector = collector_of(config)
    first = collector.collect(network)
    inputs = network_inputs(
        collector.batch.observation, collector.batch.mask, collector.batch.rules, True
    )
    before = first.action.clone()
    second = collector.collect(network)
    np.testing.assert_array_equal(by_time(second.inputs)[0], inputs)
    assert not torch.equal(second.action, before)


def test_a_restored_collector_plays_on_as_the_first_did():
    config = replace(CONFIG, rules="nano", pool=replace(LOWEST, anchors=("random", "greedy")))
    network, collector = network_of(config), collector_of(config)
    collector.collect(network)
    state, steps = copy.deepcopy(collector.state()), collector.steps
    other = collector_of(config)
    other.restore(state, steps)
    ours, theirs = collector.collect(network), other.collect(network)
    for name in ("inputs", "mask", "action", "log_probability", "advantage", "target", "learned"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name)), name
    np.testing.assert_array_equal(collector.reward, other.reward)


# --- opponents ---


def test_decisions_of_opponents_are_theirs_and_are_not_learnt_from():
    """The anchor plays its lowest legal action; both seats are paid when the deal ends."""
    config = replace(CONFIG, rules="nano", pool=LOWEST)
    collector = collector_of(config)
    opponent, seat = collector.opponent.copy(), collector.opponent_seat.copy()
    rollout = collector.collect(network_of(config))
    twin, pool, returns, pool_returns = twin_of(config), collector.pool, [], []
    learned, action = by_time(rollout.learned), by_time(rollout.action)
    inputs = by_time(rollout.inputs)
    for t in range(T):
        expected = network_inputs(twin.observation, twin.mask, twin.rules, True)
        np.testing.assert_array_equal(inputs[t], expected)
        theirs = twin.actor == seat
        np.testing.assert_array_equal(learned[t], ~theirs)
        twin.step(np.where(theirs, twin.mask.argmax(axis=1), action[t]))
        np.testing.assert_array_equal(collector.reward[t], twin.reward)
        alone = opponent == NOBODY
        returns += twin.reward[twin.done & alone, 0].tolist()
        against = np.flatnonzero(twin.done & ~alone)
        pool_returns += twin.reward[against, 1 - seat[against]].tolist()
        drawn = pool.draw(np.arange(N), twin.deal)
        opponent, seat = (
            np.where(twin.done, new, old) for new, old in zip(drawn, (opponent, seat), strict=True)
        )
    np.testing.assert_array_equal(rollout.returns, returns)
    np.testing.assert_array_equal(rollout.pool_returns, pool_returns)
    assert 0.5 < learned.mean() < 0.8
    assert 20 < len(returns) < collector.done.sum() / 2


# --- mirrored games and hidden numbers ---

MIRRORED = replace(
    CONFIG,
    ppo=replace(CONFIG.ppo, reverse_ranks=True, critic=True),
    pool=replace(LOWEST, share=0.3),
)
ODD = np.arange(N) % 2 == 1


def test_mirrored_games_are_the_same_games():
    """What is learnt from odd games, mirrored back, is what was played and hidden there."""
    collector = collector_of(MIRRORED)
    seat = collector.opponent_seat.copy()
    rollout = collector.collect(network_of(MIRRORED), Critic(MIRRORED.network))
    twin = twin_of(MIRRORED)
    arrays = (rollout.inputs, rollout.mask, rollout.action, rollout.hidden)
    inputs, mask, action, hidden = map(by_time, arrays)
    for t in range(T):
        seen, may, rest = twin.observation.copy(), twin.mask.copy(), states(twin)[:, 416:]
        seen[ODD], may[ODD] = seen[ODD][:, OBSERVATION_PLACES], may[ODD][:, ACTION_PLACES]
        rest[ODD] = rest[ODD][:, HIDDEN_PLACES]
        np.testing.assert_array_equal(inputs[t], network_inputs(seen, may, twin.rules, True))
        np.testing.assert_array_equal(mask[t], narrow(seen, may, twin.rules))
        np.testing.assert_array_equal(hidden[t], rest)
        played = np.where(ODD, ACTION_PLACES[action[t]], action[t])
        theirs = twin.actor == seat
        twin.step(np.where(theirs, twin.mask.argmax(axis=1), played))
        np.testing.assert_array_equal(collector.reward[t], twin.reward)
        seat = np.where(twin.done, collector.pool.draw(np.arange(N), twin.deal)[1], seat)
    assert collector.done.sum() > 10
    assert (hidden[:, ODD] != hidden[:, ODD][..., HIDDEN_PLACES]).any()


def states(batch: Batch) -> NDArray[np.uint8]:
    return np.stack([batch.game(i).state(batch.actor[i]) for i in range(N)])


@pytest.mark.parametrize("critic", [True, False])
def test_hidden_numbers_are_kept_where_something_learns_from_them(critic):
    asked = {"network": replace(CONFIG.network, other_hand=True)} if not critic else {}
    config = replace(CONFIG, ppo=replace(CONFIG.ppo, critic=critic), **asked)
    _, rollout = collected(config)
    assert rollout.hidden.shape == (N * T, 120)
    np.testing.assert_array_equal(by_time(rollout.hidden)[0], states(twin_of(config))[:, 416:])


def test_with_a_critic_values_are_the_critics():
    """Also the last ones."""
    config = replace(CONFIG, ppo=replace(CONFIG.ppo, critic=True))
    torch.manual_seed(3)
    critic, collector = Critic(config.network), collector_of(config)
    rollout = collector.collect(network_of(config), critic)
    value = critic(rollout.inputs, rollout.hidden)
    torch.testing.assert_close(rollout.value, value, atol=1e-5, rtol=0)
    after = collector.batch
    inputs = network_inputs(after.observation, after.mask, after.rules, True)
    one = critic(torch.from_numpy(inputs), torch.from_numpy(after.hidden())).detach().numpy()
    last = np.stack([np.where(after.actor == seat, one, -one) for seat in (0, 1)], 1)
    expected = by_hand(collector, rollout.value, last)
    np.testing.assert_allclose(rollout.advantage, expected.ravel(), atol=1e-5)


# --- the same whoever plays ---


def test_collectors_of_parts_collect_what_one_of_all_does():
    """By number; games are dealt, played and opposed the same whatever is beside them."""
    config = replace(MIRRORED, num_games=24, rollout=30)
    network, critic = network_of(config), Critic(config.network)
    parts = [np.arange(5), np.arange(5, 24)]
    whole = collector_of(config).collect(network, critic)
    several = [collector_of(config, games).collect(network, critic) for games in parts]
    assert sorted(whole.number.tolist()) == list(range(24 * 30))
    number = torch.cat([part.number for part in several])
    order = torch.argsort(number)
    assert torch.equal(number[order], whole.number)
    for name in ("inputs", "mask", "action", "hidden", "learned"):
        assert torch.equal(torch.cat([getattr(one, name) for one in several])[order],
                           getattr(whole, name)), name  # fmt: skip
    for name in ("log_probability", "advantage", "target", "value"):
        torch.testing.assert_close(
            torch.cat([getattr(one, name) for one in several])[order],
            getattr(whole, name),
            atol=1e-5,
            rtol=0,
        )


def test_seeds_make_other_games():
    one, other = (by_time(collected(replace(CONFIG, seed=seed))[1].action) for seed in (5, 6))
    assert (one != other).mean() > 0.5


def test_the_same_decision_is_drawn_anew_in_each_game_and_at_each_step():
    """And all that is legal is played."""
    config = replace(CONFIG, rollout=1)
    collector, actions = collector_of(config), []
    states = np.repeat(collector.batch.states()[:1], N)
    for _ in range(2):
        collector.batch.restore(states)
        actions.append(collector.collect(network_of(config)).action.tolist())
        assert sorted(set(actions[-1])) == np.flatnonzero(collector.mask[0, 0]).tolist()
    assert len(set(actions[0])) > 1
    assert actions[0] != actions[1]


# --- drawing ---


def drawn(log_probabilities, mask, uniforms):
    actions, chosen = np.empty(len(uniforms), np.int64), np.empty(len(uniforms), np.float32)
    rows = partial(np.tile, reps=(len(uniforms), 1))
    _draw(rows(log_probabilities), rows(mask), uniforms, actions, chosen)
    return actions, chosen


def test_a_draw_hits_each_action_in_its_part_of_the_unit_interval():
    mask = np.zeros(NUM_ACTIONS, np.bool_)
    mask[[1, 5, 82]] = True
    log_probabilities = np.full(NUM_ACTIONS, -1e9, np.float32)
    log_probabilities[[1, 5, 82]] = np.log([0.2, 0.5, 0.3])
    uniforms = (np.arange(1000) + 0.5) / 1000
    actions, chosen = drawn(log_probabilities, mask, uniforms)
    assert actions.tolist() == [1] * 200 + [5] * 500 + [82] * 300
    np.testing.assert_array_equal(chosen, log_probabilities[actions])


def test_a_draw_may_be_though_probabilities_add_up_to_less_than_one():
    """It is legal, and not of an action that is never played."""
    mask = np.zeros(NUM_ACTIONS, np.bool_)
    mask[[3, 40, 41]] = True
    log_probabilities = np.zeros(NUM_ACTIONS, np.float32)
    log_probabilities[[3, 40, 41]] = *np.log([0.5, 0.4]), -200
    actions, _ = drawn(log_probabilities, mask, np.array([0.0, 0.49, 0.51, 0.95, 1 - 2**-53]))
    assert actions.tolist() == [3, 3, 40, 40, 40]
