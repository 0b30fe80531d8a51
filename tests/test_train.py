"""The learner: one rollout, one update, one run."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import make_agent
from agents.checkpoint import load
from agents.network import SuitNetwork
from conquian_env import Batch, Game, RuleSet, cards
from conquian_env.actions import DISCARD, LAY
from conquian_env.cards import NAMES, cards_text
from training import train as module
from training.config import Config, NetworkConfig, PPOConfig, load_config
from training.match import play_match
from training.ppo import update
from training.rollout import Collector
from training.symmetry import ACTION_PLACES, OBSERVATION_PLACES
from training.train import METRICS, DivergedError, main, train

SMALL = Config(
    decisions=1000,
    num_games=32,
    rollout=8,
    network=NetworkConfig(width=16, layers=1),
    ppo=PPOConfig(minibatch=64),
)


def random_numbers() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def collector(games: int = 64, length: int = 40, reverse_ranks: bool = False) -> Collector:
    config = PPOConfig(bf16=False, reverse_ranks=reverse_ranks)
    return Collector(Batch(games, seed=3, skip_forced=True), length, config, random_numbers())


def test_a_rollout_holds_what_the_batch_showed():
    """Replayed on a twin batch: every observation, mask, actor and reward, in time order."""
    torch.manual_seed(0)
    network = SuitNetwork(16, 1)
    played = collector()
    rollout = played.collect(network)
    twin = Batch(64, seed=3, skip_forced=True)
    observation = rollout.observation.numpy().reshape(40, 64, -1)
    mask, action = rollout.mask.numpy().reshape(40, 64, -1), rollout.action.numpy().reshape(40, 64)
    returns = []
    for t in range(40):
        np.testing.assert_array_equal(observation[t], twin.observation)
        np.testing.assert_array_equal(mask[t], twin.mask)
        np.testing.assert_array_equal(played.actor[t], twin.actor)
        assert twin.mask.sum(axis=1).min() > 1
        twin.step(action[t])
        np.testing.assert_array_equal(played.reward[t], twin.reward)
        returns += twin.reward[twin.done, 0].tolist()
    assert len(returns) > 20
    np.testing.assert_array_equal(rollout.returns, returns)
    log_probabilities, value = network(rollout.observation, rollout.mask)
    chosen = log_probabilities.gather(1, rollout.action[:, None])[:, 0]
    torch.testing.assert_close(rollout.log_probability, chosen, atol=1e-4, rtol=0)
    torch.testing.assert_close(rollout.value, value, atol=1e-4, rtol=0)
    torch.testing.assert_close(rollout.target, rollout.advantage + rollout.value)


def test_the_second_rollout_goes_on_where_the_first_stopped():
    torch.manual_seed(0)
    network, played = SuitNetwork(16, 1), collector(games=8, length=5)
    played.collect(network)
    before = played.batch.observation.copy()
    rollout = played.collect(network)
    np.testing.assert_array_equal(rollout.observation[:8].numpy(), before)


def test_an_update_makes_good_actions_likelier_and_bad_ones_rarer():
    torch.manual_seed(0)
    network, played = SuitNetwork(32, 1), collector()
    rollout = played.collect(network)
    good = rollout.action % 2 == 0
    rollout = replace(rollout, advantage=torch.where(good, 1.0, -1.0))
    config = PPOConfig(minibatch=256, epochs=4, bf16=False, clip=10)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    losses = update(network, optimizer, rollout, config, 0.0, random_numbers())
    after, _ = network(rollout.observation, rollout.mask)
    gain = after.gather(1, rollout.action[:, None])[:, 0] - rollout.log_probability
    assert gain[good].mean() > 0.1
    assert gain[~good].mean() < -0.1
    assert losses.approx_kl > 0
    assert losses.clipfrac == 0


@pytest.mark.parametrize("reverse_ranks", [False, True])
def test_the_first_step_of_an_update_has_ratio_one(reverse_ranks):
    torch.manual_seed(0)
    network, played = SuitNetwork(16, 1), collector(reverse_ranks=reverse_ranks)
    rollout = played.collect(network)
    config = PPOConfig(minibatch=10**6, epochs=1, bf16=False)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
    losses = update(network, optimizer, rollout, config, 0.0, random_numbers())
    assert losses.approx_kl == pytest.approx(0, abs=1e-6)
    assert losses.clipfrac == 0
    assert losses.policy_loss == pytest.approx(0, abs=1e-4)
    assert losses.value_loss == pytest.approx(float((rollout.advantage**2).mean()), rel=1e-3)
    probabilities = network(rollout.observation, rollout.mask)[0].exp()
    entropy = torch.special.entr(probabilities).sum(1).mean()
    assert losses.entropy == pytest.approx(entropy.item(), rel=1e-3)


def test_entropy_bonus_and_value_weight_act():
    def trained(**changes: float) -> tuple[SuitNetwork, object]:
        torch.manual_seed(0)
        network, played = SuitNetwork(16, 1), collector()
        with torch.no_grad():
            network.card_logits.weight *= 100  # away from uniform
        rollout = played.collect(network)
        entropy = changes.pop("entropy", 0.0)
        config = PPOConfig(minibatch=256, epochs=5, bf16=False, **changes)
        optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
        update(network, optimizer, rollout, config, entropy, random_numbers())
        return network, rollout

    def entropy_of(network: SuitNetwork, rollout) -> float:
        probabilities = network(rollout.observation, rollout.mask)[0].exp()
        return torch.special.entr(probabilities).sum(1).mean().item()

    def value_error(network: SuitNetwork, rollout) -> float:
        value = network(rollout.observation, rollout.mask)[1]
        return (value - rollout.target).square().mean().item()

    assert entropy_of(*trained(entropy=1.0)) > entropy_of(*trained(entropy=0.0)) + 0.05
    assert value_error(*trained(value_weight=5.0)) < value_error(*trained(value_weight=0.0)) - 0.005


def mirrored(text: str) -> str:
    """Cards as text, each with its rank counted from the king down."""
    return cards_text(i - i % 10 + 9 - i % 10 for i in cards(text))


def mirror(value: object) -> object:
    """The mirrored cards in a saved game's value, if it holds cards."""
    if isinstance(value, list):
        return [mirror(part) for part in value]
    is_cards = isinstance(value, str) and all(word in NAMES for word in value.split())
    return mirrored(value) if is_cards else value


def test_reversing_ranks_is_a_symmetry_of_the_game():
    """The mirrored state's observation and mask, made afresh, are the rearranged ones."""
    game, rng, compared = Game(seed=2), np.random.default_rng(0), 0
    while not game.is_over:
        saved = json.loads(game.to_json())
        other = Game.from_json(
            json.dumps({k: mirror(v) for k, v in saved.items()} | {"history": []})
        )
        np.testing.assert_array_equal(
            game.observation(game.actor)[OBSERVATION_PLACES], other.observation(other.actor)
        )
        np.testing.assert_array_equal(game.legal_mask()[ACTION_PLACES], other.legal_mask())
        compared += 1
        game.apply(int(rng.choice(game.legal_actions())))
    assert compared > 30
    assert ACTION_PLACES[[0, LAY, DISCARD + 39]].tolist() == [0, LAY + 9, DISCARD + 30]


def test_mirrored_games_are_the_same_games():
    """What is learnt from the first half of the games, mirrored back, is what was played there."""
    torch.manual_seed(0)
    network, played = SuitNetwork(16, 1), collector(reverse_ranks=True)
    rollout = played.collect(network)
    observation = rollout.observation.numpy().reshape(40, 64, -1)
    mask, action = rollout.mask.numpy().reshape(40, 64, -1), rollout.action.numpy().reshape(40, 64)
    twin = Batch(64, seed=3, skip_forced=True)
    for t in range(40):
        np.testing.assert_array_equal(
            observation[t, :32][:, OBSERVATION_PLACES], twin.observation[:32]
        )
        np.testing.assert_array_equal(mask[t, :32][:, ACTION_PLACES], twin.mask[:32])
        np.testing.assert_array_equal(observation[t, 32:], twin.observation[32:])
        twin.step(np.concatenate([ACTION_PLACES[action[t, :32]], action[t, 32:]]))
        np.testing.assert_array_equal(played.reward[t], twin.reward)


def test_a_run_writes_a_checkpoint_and_every_metric(tmp_path):
    path = train(SMALL, tmp_path)
    checkpoint = load(path)
    assert checkpoint.rules == RuleSet()
    assert checkpoint.decisions == 1024  # whole rollouts
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == set(METRICS)
    steps = [event.step for event in events.Scalars("charts/SPS")]
    assert steps == [256, 512, 768, 1024]
    rates = [event.value for event in events.Scalars("charts/learning_rate")]
    assert rates[0] == pytest.approx(6e-4)
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == 4


def test_a_run_is_a_function_of_its_config(tmp_path):
    def weights(config: Config, name: str) -> dict[str, torch.Tensor]:
        return load(train(config, tmp_path / name)).network.state_dict()

    one, two = weights(SMALL, "one"), weights(SMALL, "two")
    other = weights(replace(SMALL, seed=1), "other")
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_ctrl_c_saves_and_leaves(tmp_path, monkeypatch, capsys):
    real, calls = module.update, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(module, "update", interrupted)
    assert load(train(SMALL, tmp_path)).decisions == 512
    assert "stopped after 512" in capsys.readouterr().err


def test_command_line(tmp_path, capsys):
    config, out = tmp_path / "tiny.toml", tmp_path / "out"
    config.write_text("decisions = 64\nnum_games = 8\nrollout = 8\n[network]\nwidth = 8\n")
    assert main([str(config), "--out", str(out)]) == 0
    assert str(out / "policy.pt") in capsys.readouterr().out
    before = (out / "policy.pt").read_bytes()
    assert main([str(config), "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (out / "policy.pt").read_bytes() == before
    assert main([str(config), "--out", str(out), "--overwrite"]) == 0
    assert main([str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("error: ")


def test_ctrl_c_before_the_first_update_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    path = train(SMALL, tmp_path)
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Collector, "collect", interrupted)
    train(SMALL, tmp_path)
    assert path.read_bytes() == before


def test_a_diverged_run_says_so_and_keeps_the_old_checkpoint(tmp_path):
    path = train(SMALL, tmp_path)
    before = path.read_bytes()
    wild = replace(SMALL, ppo=PPOConfig(learning_rate=1e30, bf16=False), checkpoint_every=1)
    with pytest.raises(DivergedError, match="not finite after"):
        train(wild, tmp_path)
    assert load(path).decisions in (256, 1024) or path.read_bytes() == before


def test_a_run_leaves_the_global_generators_alone(tmp_path):
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    train(SMALL, tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.slow
def test_the_demo_beats_random(tmp_path):
    """The README's promise: a lower bound of +0.35; learning nothing would score 0 ± 0.01."""
    path = train(load_config(Path("configs/demo.toml")), tmp_path)
    agents = [("trained", make_agent(f"ppo:{path}")), ("random", make_agent("random"))]
    score = play_match(*agents, RuleSet(), 2000, 1).score
    print(score)
    assert score.low >= 0.35
