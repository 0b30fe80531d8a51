"""The networks: masked, symmetric over suits where they share weights, and the agent of one."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents import make_agent
from agents.agent import AgentError
from agents.checkpoint import Checkpoint, save
from agents.inputs import network_inputs, row_size
from agents.network import NO, Critic, Network, NetworkConfig, SuitLayer, make_network
from agents.policy import NetworkAgent
from agents.symmetry import ACTION_PLACES, OBSERVATION_PLACES
from agents.turns import narrow
from conquian_env import Batch, RuleSet
from conquian_env.actions import LAY, NUM_ACTIONS
from conquian_env.errors import OptionError
from conquian_env.observation import LAYOUT

SUIT = NetworkConfig(width=32, layers=2, other_hand=True)
PLAIN = replace(SUIT, kind="plain")
SHAPES = [SUIT, PLAIN, replace(SUIT, ways=False), replace(PLAIN, ways=False)]
SMALL = NetworkConfig(width=8, layers=1)
N = 64
ROW = row_size(True)
NUMBERS = 4 * ROW  # where they begin


def made(shape: NetworkConfig) -> Network:
    """A network whose answers differ from uniform."""
    torch.manual_seed(1)
    network = make_network(shape)
    for name, weights in network.named_parameters():
        if "logits.weight" in name:
            torch.nn.init.normal_(weights, std=0.5)
    return network


@pytest.fixture(scope="module")
def batch() -> Batch:
    """Games in the middle."""
    batch, rng = Batch(N, seed=4, skip_forced=True), np.random.default_rng(0)
    for _ in range(12):
        batch.step(batch.sample_actions(rng))
    return batch


def given(batch: Batch, ways: bool = True) -> tuple[Tensor, Tensor]:
    inputs = network_inputs(batch.observation, batch.mask, batch.rules, ways)
    return torch.from_numpy(inputs), torch.from_numpy(batch.mask.copy())


def by_suits(x: Tensor, start: int, end: int, suits: tuple[int, ...], size: int) -> Tensor:
    """Rows of ``size`` numbers from start to end, four at a time, in another order of suits."""
    places = torch.arange(x.shape[1])
    places[start:end] = places[start:end].reshape(-1, 4, size)[:, list(suits)].flatten()
    return x[:, places]


PERMUTATIONS = list(itertools.permutations(range(4)))


def test_a_layer_of_suits_and_its_gradients():
    """Written out: rows plus what they and their mean say; gradients by differences."""
    torch.manual_seed(0)
    layer, rows = SuitLayer(6).double(), torch.randn(4, 5, 6, dtype=torch.double)
    expected = rows + torch.relu(layer.own(rows) + layer.mean(rows.mean(0)))
    torch.testing.assert_close(layer(rows), expected)
    weights = [rows, *(one.detach() for one in layer.parameters())]

    def by_weights(x: Tensor, *values: Tensor) -> Tensor:
        named = dict(zip(dict(layer.named_parameters()), values, strict=True))
        return torch.func.functional_call(layer, named, (x,))

    assert torch.autograd.gradcheck(by_weights, [one.requires_grad_() for one in weights])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes_and_mask(shape, batch):
    inputs, mask = given(batch, shape.ways)
    output = made(shape)(inputs, mask)
    assert output.log_probabilities.shape == (N, NUM_ACTIONS)
    assert output.value.shape == (N,)
    assert output.other_hand.shape == (N, 40)
    assert {one.dtype for one in output} == {torch.float32}
    assert (output.value.abs() < 1).all()
    assert (output.log_probabilities[~mask] <= NO).all()
    assert (output.log_probabilities[mask] > NO / 2).all()
    torch.testing.assert_close(output.log_probabilities.exp().sum(1), torch.ones(N))


@pytest.mark.parametrize("kind", ["suit", "plain"])
def test_there_is_no_head_that_was_not_asked_for(kind, batch):
    assert make_network(replace(SMALL, kind=kind))(*given(batch)).other_hand is None


@pytest.mark.parametrize("kind", ["suit", "plain"])
def test_a_new_network_plays_nearly_uniformly(kind, batch):
    torch.manual_seed(0)
    inputs, mask = given(batch)
    probabilities = make_network(NetworkConfig(kind, 32, 2))(inputs, mask).log_probabilities.exp()
    uniform = mask / mask.sum(1, keepdim=True)
    torch.testing.assert_close(probabilities, uniform, atol=0.05, rtol=0)


@pytest.mark.parametrize("suits", PERMUTATIONS, ids=str)
def test_the_suit_network_is_equivariant_under_all_suit_permutations(suits, batch):
    """The rows of the inputs follow the suits, as test_inputs shows."""
    network, (inputs, mask) = made(SUIT).double(), given(batch)
    plain = network(inputs, mask, torch.float64)
    moved = network(
        by_suits(inputs, 0, NUMBERS, suits, ROW),
        by_suits(mask, LAY, NUM_ACTIONS, suits, 10),
        torch.float64,
    )
    expected = (
        by_suits(plain.log_probabilities, LAY, NUM_ACTIONS, suits, 10),
        plain.value,
        by_suits(plain.other_hand, 0, 40, suits, 10),
    )
    for one, other in zip(moved, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


def test_the_suit_network_tells_suits_apart_that_hold_other_cards(batch):
    """Were its rows mixed before they are read, lays of all suits would be alike."""
    inputs, _ = given(batch)
    logits = made(SUIT)(inputs, torch.ones(N, NUM_ACTIONS, dtype=torch.bool)).log_probabilities
    rows = logits[:, LAY:].reshape(N, 2, 4, 10)
    assert (rows.std(2) > 1e-3).all()


@pytest.mark.parametrize("suits", [(1, 0, 2, 3), (3, 2, 1, 0)])
def test_the_plain_network_is_not_equivariant(suits, batch):
    network, (inputs, mask) = made(PLAIN), given(batch)
    moved = network(by_suits(inputs, 0, NUMBERS, suits, ROW), mask).value
    assert ((moved - network(inputs, mask).value).abs() > 1e-5).float().mean() > 0.9


def test_the_critic_is_invariant_under_all_suit_permutations(batch):
    torch.manual_seed(0)
    critic, (inputs, _) = Critic(SUIT).double(), given(batch)
    hidden = torch.from_numpy(batch.hidden())
    value = critic(inputs, hidden, torch.float64)
    assert value.shape == (N,)
    assert (value.abs() < 1).all()
    for suits in PERMUTATIONS:
        moved_hidden = by_suits(hidden, 0, 120, suits, 10)
        moved = critic(by_suits(inputs, 0, NUMBERS, suits, ROW), moved_hidden, torch.float64)
        torch.testing.assert_close(moved, value, atol=1e-6, rtol=0)
    apart = critic(inputs, by_suits(hidden, 0, 120, (1, 0, 2, 3), 10), torch.float64)
    assert ((apart - value).abs() > 1e-4).float().mean() > 0.9


def changed(inputs: Tensor, ways: bool) -> Iterator[tuple[str, Tensor]]:
    """The inputs with a piece, or one of the numbers that belong to no card, a little higher."""
    pieces = row_size(ways) // 10
    for piece in range(pieces):
        other = inputs.clone()
        other[:, : 40 * pieces].view(N, 4, pieces, 10)[:, :, piece] += 1
        yield f"piece {piece}", other
    for place in range(40 * pieces, inputs.shape[1]):
        other = inputs.clone()
        other[:, place] += 1
        yield f"number {place - 40 * pieces}", other


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_piece_is_read_by_every_head(shape, batch):
    network, (inputs, mask) = made(shape), given(batch, shape.ways)
    plain = network(inputs, mask)
    for name, other in changed(inputs, shape.ways):
        for head, before, after in zip(plain._fields, plain, network(other, mask), strict=True):
            assert not torch.allclose(before, after, rtol=1e-6), (name, head)


def test_the_critic_reads_every_hidden_piece(batch):
    torch.manual_seed(0)
    critic, (inputs, _) = Critic(SUIT), given(batch)
    hidden = torch.from_numpy(batch.hidden())
    value = critic(inputs, hidden)
    for card in range(120):
        other = hidden.clone()
        other[:, card] += 1
        assert not torch.allclose(critic(inputs, other), value, rtol=1e-6), card
    for name, other in changed(inputs, ways=True):
        assert not torch.allclose(critic(other, hidden), value, rtol=1e-6), name


@pytest.mark.parametrize("shape", [SUIT, PLAIN], ids=str)
def test_bfloat16_is_close_to_float32(shape, batch):
    network, (inputs, mask) = make_network(shape), given(batch)
    exact, rough = network(inputs, mask), network(inputs, mask, torch.bfloat16)
    assert rough.log_probabilities.dtype == rough.value.dtype == torch.float32
    torch.testing.assert_close(
        rough.log_probabilities.exp(), exact.log_probabilities.exp(), atol=0.02, rtol=0
    )
    torch.testing.assert_close(rough.value, exact.value, atol=0.05, rtol=0)
    assert not torch.equal(rough.value, exact.value)


def test_counts_of_cards_are_read_in_tens_and_ways_in_doublings():
    """An input of 10 cards, or of 32 = two doublings, moves features as a 1 elsewhere does."""
    rows = make_network(SUIT).rows
    number = LAYOUT["stock_left"].start - LAYOUT["phase"].start
    assert rows.number_scale[number] == pytest.approx(0.1)
    assert rows.number_scale[0] == 1
    assert rows.number_scale[16:].tolist() == [1 / 32] * 9
    told = [1 / 32] * 8 + [1 / 64] * 2 + [1 / 64] * 2 + [1 / 32, 1]
    assert rows.card_scale.reshape(24, 10)[:, 0].tolist() == [1] * 10 + told


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"kind": "round"}, "kind must be suit or plain, not 'round'"),
        ({"width": 0}, "width must be from 1 to 4096, not 0"),
        ({"width": 8.0}, "width must be from 1 to 4096, not 8.0"),
        ({"width": True}, "width must be"),
        ({"layers": 65}, "layers must be from 1 to 64, not 65"),
        ({"layers": "3"}, "layers must be"),
        ({"ways": 1}, "ways must be true or false, not 1"),
        ({"other_hand": None}, "other_hand must be true or false, not None"),
    ],
)
def test_a_wrong_shape_is_refused_by_field(values, said):
    with pytest.raises(OptionError) as caught:
        NetworkConfig(**values)
    assert said in str(caught.value)


def test_the_policy_agent(tmp_path):
    path = tmp_path / "policy.pt"
    save(path, Checkpoint(made(SUIT), RuleSet(), 0))
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
    save(path, Checkpoint(make_network(SMALL), RuleSet(), 0))
    none = Batch(1).views(np.zeros(0, np.int64), np.zeros(0, np.uint64))
    assert make_agent(f"ppo:{path}").act(none).shape == (0,)


def test_a_path_may_hold_an_equals_sign_and_a_comma(tmp_path):
    path = tmp_path / "lr=1,b" / "policy.pt"
    save(path, Checkpoint(make_network(SMALL), RuleSet(), 0))
    assert make_agent(f"ppo:{path}").path == str(path)
    assert make_agent(f"ppo:{path},sample=true").sample


def test_a_policy_for_other_rules_is_refused(tmp_path):
    path = tmp_path / "policy.pt"
    save(path, Checkpoint(make_network(SMALL), RuleSet(deal=8), 0))
    batch = Batch(1, "classic")
    with pytest.raises(AgentError, match="deal=8"):
        make_agent(f"ppo:{path}").act(batch.views(np.array([0]), np.zeros(1, np.uint64)))


def said(network: Network, observation: NDArray, mask: NDArray, rules: RuleSet) -> NDArray:
    """What a network says of decisions as they are shown, lays that can wait left out."""
    choices = torch.from_numpy(narrow(observation, mask, rules))
    inputs = torch.from_numpy(network_inputs(observation, mask, rules, network.config.ways))
    return network(inputs, choices).log_probabilities.exp().detach().numpy()


@pytest.mark.parametrize("ways", [True, False])
def test_an_agent_is_asked_in_both_readings_of_the_rank_line(ways, batch):
    network, rules = made(replace(SUIT, ways=ways)), RuleSet()
    agent = NetworkAgent(network, rules, sample=True)
    views = batch.views(np.arange(N), np.zeros(N, np.uint64))
    plain = said(network, views.observation, views.mask, rules)
    turned = views.observation[:, OBSERVATION_PLACES], views.mask[:, ACTION_PLACES]
    mirrored = said(network, *turned, rules)[:, ACTION_PLACES]
    assert abs(plain - mirrored).max() > 0.01
    seen = agent.probabilities(views)
    np.testing.assert_allclose(seen, (plain + mirrored) / 2, atol=1e-6)
    again = agent.probabilities(replace(views, observation=turned[0], mask=turned[1]))
    np.testing.assert_allclose(again[:, ACTION_PLACES], seen, atol=1e-6)


def test_where_the_rank_line_has_a_gap_it_is_asked_once():
    rules = RuleSet(seven_jack_adjacent=False)
    batch, network = Batch(N, rules, skip_forced=True), made(SUIT)
    views = batch.views(np.arange(N), np.zeros(N, np.uint64))
    seen = NetworkAgent(network, rules, sample=True).probabilities(views)
    np.testing.assert_allclose(seen, said(network, views.observation, views.mask, rules), atol=1e-6)
