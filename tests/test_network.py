"""The network: masked, symmetric over suits, and the agent made of it."""

import itertools

import numpy as np
import pytest
import torch

from agents import make_agent
from agents.checkpoint import Checkpoint, CheckpointError, save
from agents.network import NO, SuitNetwork
from conquian_env import Batch, RuleSet
from conquian_env.actions import LAY, NUM_ACTIONS
from conquian_env.observation import LAYOUT, OBSERVATION_SIZE
from training.symmetry import OBSERVATION_PLACES


@pytest.fixture(scope="module")
def decisions() -> tuple[torch.Tensor, torch.Tensor]:
    """Observations and masks of 256 games in the middle."""
    batch, rng = Batch(256, seed=4, skip_forced=True), np.random.default_rng(0)
    for _ in range(12):
        batch.step(batch.sample_actions(rng))
    return torch.from_numpy(batch.observation.copy()), torch.from_numpy(batch.mask.copy())


@pytest.fixture(scope="module")
def network() -> SuitNetwork:
    torch.manual_seed(1)
    network = SuitNetwork(32, 2)
    torch.nn.init.normal_(network.card_logits.weight, std=0.5)
    torch.nn.init.normal_(network.answer_logits.weight, std=0.5)
    return network.double()


def places(size: int, start: int, end: int, suits: tuple[int, ...]) -> torch.Tensor:
    """Places 0..size-1 with every block of 4 x 10 from start to end in another order of suits."""
    out = torch.arange(size)
    out[start:end] = out[start:end].reshape(-1, 4, 10)[:, list(suits)].flatten()
    return out


def test_shapes_and_mask(network, decisions):
    observation, mask = decisions
    log_probabilities, value = network(observation, mask)
    assert log_probabilities.shape == (256, NUM_ACTIONS)
    assert value.shape == (256,)
    assert (value.abs() < 1).all()
    assert (log_probabilities[~mask] <= NO).all()
    torch.testing.assert_close(log_probabilities.exp().sum(1), torch.ones(256))


def test_equivariant_under_all_suit_permutations(network, decisions):
    observation, mask = decisions
    plain, value = network(observation, mask)
    for suits in itertools.permutations(range(4)):
        seen = places(OBSERVATION_SIZE, 0, LAYOUT["phase"].start, suits)
        actions = places(NUM_ACTIONS, LAY, NUM_ACTIONS, suits)
        moved, moved_value = network(observation[:, seen], mask[:, actions])
        torch.testing.assert_close(moved, plain[:, actions], atol=1e-5, rtol=0)
        torch.testing.assert_close(moved_value, value, atol=1e-5, rtol=0)


def test_other_permutations_do_change_the_answer(network, decisions):
    observation, mask = decisions
    reversed_ = observation[:, OBSERVATION_PLACES]
    assert not torch.allclose(network(reversed_, mask)[1], network(observation, mask)[1])


def test_every_piece_of_the_observation_is_read(network, decisions):
    observation, mask = decisions
    value = network(observation, mask)[1]
    for name, piece in LAYOUT.items():
        changed = observation.clone()
        changed[:, piece] += 1
        assert not torch.allclose(network(changed, mask)[1], value), name


def test_the_policy_agent(tmp_path, network):
    path = tmp_path / "policy.pt"
    save(path, Checkpoint(network.float(), RuleSet(), 0))
    batch = Batch(500, seed=3, skip_forced=True)
    seeds = np.random.default_rng(0).integers(0, 1 << 64, 500, np.uint64)
    views = batch.views(np.arange(500), seeds)
    best, drawn = make_agent(f"ppo:{path}"), make_agent(f"ppo:{path},sample=true")
    probabilities = best.probabilities(views)
    assert probabilities.dtype == np.float32
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-5)
    assert not probabilities[~views.mask].any()
    np.testing.assert_array_equal(best.act(views), probabilities.argmax(1))
    chosen = drawn.act(views)
    assert views.mask[np.arange(500), chosen].all()
    assert 0.05 < (chosen != best.act(views)).mean() < 0.95


def test_the_policy_agent_on_no_decisions(tmp_path):
    path = tmp_path / "policy.pt"
    save(path, Checkpoint(SuitNetwork(8, 1), RuleSet(), 0))
    none = Batch(1).views(np.zeros(0, np.int64), np.zeros(0, np.uint64))
    assert make_agent(f"ppo:{path}").act(none).shape == (0,)


def test_a_path_may_hold_an_equals_sign_and_a_comma(tmp_path):
    path = tmp_path / "lr=1,b" / "policy.pt"
    save(path, Checkpoint(SuitNetwork(8, 1), RuleSet(), 0))
    assert make_agent(f"ppo:{path}").path == str(path)
    assert make_agent(f"ppo:{path},sample=true").sample


def test_a_policy_for_other_rules_is_refused(tmp_path):
    path = tmp_path / "policy.pt"
    save(path, Checkpoint(SuitNetwork(8, 1), RuleSet(deal=8), 0))
    batch = Batch(1, "classic")
    with pytest.raises(CheckpointError, match="deal=8"):
        make_agent(f"ppo:{path}").act(batch.views(np.array([0]), np.zeros(1, np.uint64)))
