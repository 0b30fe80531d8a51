"""Agents: legal, honest, independent of batching, and greedy exactly as defined."""

import itertools

import numpy as np
import pytest
import torch

from agents import make_agent
from agents.agent import Agent, AgentError, draw, uniforms
from agents.checkpoint import Checkpoint, save
from agents.network import NetworkConfig, make_network
from agents.registry import KNOWN
from conquian_env import Batch, Game, RuleSet, Views, cards
from conquian_env.actions import DISCARD, FORCE, LAY, PASS, TAKE
from conquian_env.cards import card_mask
from conquian_env.view import views_of
from tests.playing import playthroughs

RULES = RuleSet()
SPECS = [
    "random",
    "greedy",
    "expert",
    "rollout:worlds=3",
    "pimc:worlds=1,limit=2000",
    "ismcts:simulations=8,group=4",
    "ppo:{policy}",
    "ppo:{policy},sample=true",
]
SEARCH = ("rollout", "pimc", "ismcts")


class First:
    """The lowest legal action; made by its dotted name in a test."""

    def act(self, views: Views) -> np.ndarray:
        return views.mask.argmax(axis=1)


class TooBig:
    def __init__(self):
        raise MemoryError


class NoAct:
    pass


def views(game: Game, seed: int = 0) -> Views:
    return views_of(game._rows, game.rules, np.array([seed], np.uint64))


def greedy_by_definition(game: Game) -> int:
    """The house's definition of greedy, in plain Python over names."""
    view, legal = game.view(game.actor), game.legal_actions()
    if TAKE in legal:
        return TAKE
    lays = [action for action in legal if LAY <= action < DISCARD]
    if lays:
        return lays[0]
    if PASS in legal:
        return PASS
    own = set(view.hand) | set(view.table)
    unseen = set(range(40)) - own - set(view.other_table) - set(view.dead)

    def links(card: int) -> int:
        suit, rank = divmod(card, 10)
        threes = [{10 * suit + r + k for k in range(3)} for r in range(rank - 2, rank + 1)
                  if r >= 0 and r + 2 < 10]  # fmt: skip
        others = [s for s in range(4) if s != suit]
        threes += [{10 * s + rank for s in range(4) if s != out} for out in others]
        total = 0
        for three in threes:
            rest = three - {card}
            if rest <= own:
                total += 25
            elif rest <= own | unseen:
                total += 6 if rest & own else 1
        return total

    return DISCARD + min(view.hand, key=lambda card: (links(card), card))


@pytest.mark.parametrize("preset", ["classic", "bicycle", "mexican"])
def test_greedy_is_as_defined_in_every_state(preset):
    agent, kinds = make_agent("greedy"), set()
    for game in playthroughs(preset, 60, seed=11):
        if not game.is_over:
            action = int(agent.act(views(game))[0])
            assert action == greedy_by_definition(game)
            kinds.add(min(action, DISCARD) if action >= DISCARD else min(action, LAY))
    assert kinds == {PASS, TAKE, LAY, DISCARD}


def test_greedy_never_insists():
    for game in playthroughs(RULES, 60, seed=12):
        if game.phase == "force":
            assert make_agent("greedy").act(views(game))[0] == PASS
            assert FORCE in game.legal_actions()
            return
    pytest.fail("no force decision was reached")


def test_random_is_uniform_over_the_legal_actions():
    """Chi-square over 20,000 draws of one decision; false alarm about 1e-6."""
    game = Game(seed=7)
    game.apply(TAKE)
    game.apply(game.legal_actions()[0])
    while len(game.legal_actions()) < 5:
        game.apply(game.legal_actions()[0])
    legal, n = game.legal_actions(), 20_000
    rows = np.repeat(game._rows, n)
    seeds = np.random.default_rng(0).integers(0, 1 << 64, n, np.uint64)
    chosen = make_agent("random").act(views_of(rows, RULES, seeds))
    counts = np.bincount(chosen, minlength=83)
    assert counts.sum() == counts[legal].sum()
    expected = n / len(legal)
    chi2 = ((counts[legal] - expected) ** 2 / expected).sum()
    freedom = len(legal) - 1
    assert chi2 < freedom + 7 * np.sqrt(2 * freedom) + 12


@pytest.mark.parametrize("spec", SPECS)
def test_agents_see_decisions_one_by_one(spec, policy):
    """The same answers whatever the batch, its order, or what else is in it."""
    agent, rng = make_agent(spec.format(policy=policy)), np.random.default_rng(3)
    n = 6 if spec.startswith(SEARCH) else 64
    batch = Batch(n, seed=5)
    for _ in range(60):
        seeds = rng.integers(0, 1 << 64, n, np.uint64)
        index = np.arange(n)
        together = agent.act(batch.views(index, seeds))
        order = rng.permutation(n)
        np.testing.assert_array_equal(agent.act(batch.views(order, seeds[order])), together[order])
        alone = [agent.act(batch.views(index[[i]], seeds[[i]]))[0] for i in range(3)]
        np.testing.assert_array_equal(alone, together[:3])
        batch.step(together)


@pytest.fixture(scope="module")
def policy(tmp_path_factory) -> str:
    """The spec of a network that knows nothing yet."""
    path = tmp_path_factory.mktemp("policy") / "policy.pt"
    torch.manual_seed(0)
    save(path, Checkpoint(make_network(NetworkConfig(width=16, layers=1)), RULES, 0))
    return str(path)


def test_every_known_agent_is_tested_for_peeking():
    assert set(KNOWN) == {spec.partition(":")[0] for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS)
def test_no_peek(spec, policy):
    """Other hidden cards, the same seed: the same action."""
    agent, rng = make_agent(spec.format(policy=policy)), np.random.default_rng(4)
    games = 2 if spec.startswith(SEARCH) else 8
    rule_sets = [RULES] if spec.startswith("ppo") else [RULES, RuleSet.preset("mexican")]
    states = itertools.chain(*(playthroughs(rules, games, seed=13) for rules in rule_sets))
    for game in states:
        if not game.is_over:
            action = agent.act(views(game, 9))
            for _ in range(3):
                other = game.resample_hidden(game.actor, rng)
                np.testing.assert_array_equal(agent.act(views(other, 9)), action)


def test_views_hold_the_actors_cards():
    game = Game(seed=3)
    seen = views(game)
    assert len(seen) == 1
    assert seen.hand[0] == card_mask(cards(" ".join(game.hand(0))))
    assert seen.face_up[0] == card_mask(cards(game.face_up))
    assert (seen.table[0], seen.other_table[0], seen.dead[0]) == (0, 0, 0)


def test_uniforms_and_draw():
    seeds = np.array([0, 1 << 63, (1 << 64) - 1], np.uint64)
    numbers = uniforms(seeds)
    assert numbers[0] == 0
    assert numbers[1] == 0.5
    assert numbers[2] < 1
    mask = np.zeros((3, 83), bool)
    mask[:, [4, 9]] = True
    weights = np.full((3, 83), 0.5, np.float32)
    np.testing.assert_array_equal(draw(weights, mask, seeds), [4, 9, 9])
    mask[:, 10], weights[:, 9:11] = True, (0.4, 0.0)  # rounding is left to the last that is played
    np.testing.assert_array_equal(draw(weights, mask, seeds), [4, 9, 9])


def test_make_agent_by_dotted_name():
    agent = make_agent("tests.test_agents:First")
    assert isinstance(agent, Agent)
    assert agent.act(views(Game()))[0] == PASS


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "unknown agent ''"),
        ("nobody", "unknown agent 'nobody'"),
        ("tests.rogues:RefusesToStart", "RefusesToStart': ValueError: not today"),
        ("tests.test_agents:Nobody", "'tests.test_agents:Nobody'"),
        ("no.such.module:X", "'no.such.module:X'"),
        ("tests.test_agents:NoAct", "'tests.test_agents:NoAct' has no act"),
        (":X", "':X'"),
        (".x:Y", "'.x:Y'"),
        ("greedy:worlds=3", "'greedy:worlds=3'"),
        ("random:1", "'random:1'"),
        ("ppo", "'ppo'"),
        ("ppo:no/such/file.pt", "no/such/file.pt: No such file"),
        ("ppo:a\0b", "null"),
        ("ppo:x,sample=maybe", "sample must be true or false, not 'maybe'"),
        ("rollout:worlds=0", "worlds must be a whole number from 1, not '0'"),
        ("rollout:worlds=1.5", "worlds must be a whole number from 1, not '1.5'"),
        ("rollout:doubt=0", "doubt must be a number from 0.001 to 1, not '0'"),
        ("rollout:doubt=nan", "doubt must be a number from 0.001 to 1, not 'nan'"),
        ("rollout:policy=nobody", "unknown agent 'nobody'"),
        ("pimc:bias=-1", "bias must be a number from 0 to 1e+09, not '-1'"),
        ("pimc:limit=0", "limit must be a whole number from 1, not '0'"),
        ("ismcts:explore=x", "explore must be a number from 0 to 1e+09, not 'x'"),
        ("ismcts:group=0", "group must be a whole number from 1, not '0'"),
    ],
)
def test_a_wrong_spec_is_refused_by_name(spec, said):
    with pytest.raises(AgentError) as caught:
        make_agent(spec)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ArithmeticError('''two\\nlines''')", "ArithmeticError: two lines"),
        ("class X(", "SyntaxError: '(' was never closed"),
    ],
)
def test_a_module_that_cannot_be_imported_is_the_error_of_its_agent(
    code, said, tmp_path, monkeypatch
):
    (tmp_path / "module_of_an_agent.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AgentError) as caught:
        make_agent("module_of_an_agent:X")
    assert str(caught.value).startswith(f"agent 'module_of_an_agent:X': {said}")
    assert "\n" not in str(caught.value)


def test_an_agent_that_fills_the_memory_is_no_error_of_its_spec():
    """Its process says so (agents/process)."""
    with pytest.raises(MemoryError):
        make_agent("tests.test_agents:TooBig")
