"""The game tree and what is computed on it, against a slow second way on the oracle.

The second way shares nothing with the first: it plays every deal through ``tests/oracle.py``, knows
an information state by the list of what its seat saw, and searches best responses from the top.
"""

import hashlib
import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import conquian_env
from agents import make_agent
from agents.agent import AgentError, draw
from conquian_env import RuleSet, Views
from conquian_env.actions import FORCE, GAVE, NUM_ACTIONS, PASS, SEAT_FLAG, TURN
from conquian_env.errors import OptionError
from tests.oracle import DISCARD, Oracle
from training.exact import (
    CFR,
    Strategy,
    action_values,
    agent_strategy,
    best_response,
    draw_rate,
    main,
    nash_conv,
    random_strategy,
    uniform_strategy,
    value,
)
from training.sequence_form import SequenceForm, sequence_form

TINY = (
    RuleSet(suits=3, ranks=3, deal=2, stock=1),
    RuleSet(suits=2, ranks=4, deal=2, stock=2, first_card="dealt"),
    RuleSet(suits=2, ranks=4, deal=2, stock=1, exchange=True, hand_melds=True),
    RuleSet(suits=2, ranks=4, deal=3, stock=2, force="auto", lay_order="ascending"),
    pytest.param(
        RuleSet(suits=2, ranks=5, deal=4, stock=1, lay_order="ascending"), marks=pytest.mark.slow
    ),
)


class Seen(NamedTuple):
    """A deal in play, how likely the cards and the other's play make it, and what was seen."""

    oracle: Oracle
    weight: float
    hands: tuple[frozenset[int], frozenset[int]]
    events: tuple[int, ...]

    def state(self, seat: int) -> tuple[object, ...]:
        """All that ``seat`` has seen: its hand, now and as dealt, and the public events."""
        gift = self.oracle.given[seat]
        return (self.hands[seat], frozenset(self.oracle.hands[seat]), gift, self.events)

    def after(self, action: int, probability: float) -> "Seen":
        oracle = copied(self.oracle)
        giving = oracle.phase == "give"
        event = (GAVE if giving else action) | SEAT_FLAG * oracle.actor
        stock = len(oracle.stock)
        oracle.apply(action)
        events = (*self.events, event)
        if len(oracle.stock) < stock:
            events = (*events, (TURN + (oracle.face_up or 0)) | SEAT_FLAG * oracle.actor)
        return Seen(oracle, self.weight * probability, self.hands, events)


def copied(oracle: Oracle) -> Oracle:
    other = object.__new__(Oracle)
    other.__dict__ = {
        name: [set(part) if isinstance(part, set) else part for part in kept]
        if isinstance(kept, list)
        else set(kept)
        if isinstance(kept, set)
        else kept
        for name, kept in oracle.__dict__.items()
    }
    return other


def deals(rules: RuleSet) -> list[Seen]:
    pack = [10 * suit + rank for suit in range(rules.suits) for rank in range(rules.ranks)]
    dealt = []
    for hand0 in itertools.combinations(pack, rules.deal):
        rest = [card for card in pack if card not in hand0]
        for hand1 in itertools.combinations(rest, rules.deal):
            left = [card for card in rest if card not in hand1]
            for stock in itertools.permutations(left, rules.stock_size):
                removed = set(left) - set(stock)
                fields = rules.to_dict() | {"stock": None}
                oracle = Oracle((hand0, hand1), stock, removed=removed, **fields)
                hands = (frozenset(hand0), frozenset(hand1))
                turned = () if oracle.face_up is None else (TURN + oracle.face_up,)
                dealt.append(Seen(oracle, 1.0, hands, turned))
    return [seen._replace(weight=1 / len(dealt)) for seen in dealt]


# --- strategies, for both ways ---


def chance_of(hand: int, events: bytes, actions: list[int]) -> dict[int, float]:
    """Probabilities that depend on everything the seat has seen, and on nothing else."""
    weights = {}
    for action in actions:
        text = f"{hand} {events.hex()} {action}".encode()
        weights[action] = 1 + int.from_bytes(hashlib.blake2b(text, digest_size=4).digest())
    total = sum(weights.values())
    return {action: weight / total for action, weight in weights.items()}


class Hashed:
    """An agent that plays ``chance_of``."""

    def probabilities(self, views: Views) -> NDArray[np.float64]:
        out = np.zeros((len(views), NUM_ACTIONS))
        for i in range(len(views)):
            events = bytes(event for event in views.history[i].tolist() if event != 255)
            actions = np.flatnonzero(views.mask[i]).tolist()
            for action, chance in chance_of(int(views.hand[i]), events, actions).items():
                out[i, action] = chance
        return out

    def act(self, views: Views) -> NDArray[np.int64]:
        raise AssertionError("an agent with probabilities is asked for them")


class Likeliest(Hashed):
    """An agent that only acts: what ``chance_of`` makes likeliest."""

    probabilities: Any = None

    def act(self, views: Views) -> NDArray[np.int64]:
        return Hashed().probabilities(views).argmax(axis=1)


def hashed(seen: Seen) -> dict[int, float]:
    oracle, seat = seen.oracle, seen.oracle.actor
    events = bytes(_named(event ^ seat * SEAT_FLAG, oracle) for event in seen.events)
    return chance_of(sum(1 << card for card in oracle.hands[seat]), events, oracle.legal())


def _named(event: int, oracle: Oracle) -> int:
    """The event with the gift that the seat to act knows."""
    own, other = oracle.given[oracle.actor], oracle.given[1 - oracle.actor]
    if event == GAVE and own is not None:
        return DISCARD + own
    if event == GAVE | SEAT_FLAG and other is not None and oracle.phase != "give":
        return DISCARD + other | SEAT_FLAG
    return event


def likeliest(seen: Seen) -> dict[int, float]:
    chances = hashed(seen)
    best = max(chances, key=lambda action: (chances[action], -action))
    return {action: float(action == best) for action in chances}


def equal(seen: Seen) -> dict[int, float]:
    legal = seen.oracle.legal()
    return dict.fromkeys(legal, 1 / len(legal))


# --- the second way ---


def split(seat: int, group: list[Seen]) -> list[list[Seen]]:
    """By what the seat has seen."""
    parts = defaultdict(list)
    for seen in group:
        if seen.weight > 0:
            parts[seen.state(seat)].append(seen)
    return list(parts.values())


def slow_best(seat: int, group: list[Seen], policy: Any) -> float:
    """What the seat wins at best from states that look the same to it, weighted."""
    oracle = group[0].oracle
    if oracle.phase == "over":
        return sum(seen.weight * seen.oracle.returns()[seat] for seen in group)
    if oracle.actor == seat:
        return max(
            sum(slow_best(seat, part, policy) for part in split(seat, after))
            for action in oracle.legal()
            for after in [[seen.after(action, 1.0) for seen in group]]
        )
    after = [seen.after(action, p) for seen in group for action, p in policy(seen).items()]
    return sum(slow_best(seat, part, policy) for part in split(seat, after))


def slow_value(group: list[Seen], policy: Any) -> float:
    total = 0.0
    while group:
        total += sum(s.weight * s.oracle.returns()[0] for s in group if s.oracle.phase == "over")
        group = [
            seen.after(action, p)
            for seen in group
            if seen.oracle.phase != "over"
            for action, p in policy(seen).items()
            if p > 0
        ]
    return total


@pytest.mark.parametrize("rules", TINY, ids=str)
def test_values_and_best_responses_are_those_found_the_slow_way(rules: RuleSet) -> None:
    form, dealt = sequence_form(rules), deals(rules)
    starts = {seat: split(seat, dealt) for seat in (0, 1)}
    for policy, strategy in (
        (equal, uniform_strategy(form)),
        (hashed, agent_strategy(form, Hashed())),
        (likeliest, agent_strategy(form, Likeliest())),
    ):
        assert value(form, strategy) == pytest.approx(slow_value(dealt, policy), abs=1e-12)
        for seat in (0, 1):
            slow = sum(slow_best(seat, group, policy) for group in starts[seat])
            assert best_response(form, seat, strategy) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("rules", TINY, ids=str)
def test_the_tree_is_the_game(rules: RuleSet) -> None:
    """Histories and information states, counted on the oracle."""
    form, group = sequence_form(rules), deals(rules)
    histories: set[object] = set()
    states: tuple[set[object], set[object]] = set(), set()
    while group:
        for seen in group:
            histories.add((seen.hands, tuple(seen.oracle.given), seen.events))
            if len(seen.oracle.legal()) > 1:
                states[seen.oracle.actor].add(seen.state(seen.oracle.actor))
        group = [seen.after(action, 1.0) for seen in group for action in seen.oracle.legal()]
    assert form.histories == len(histories)
    assert [len(parent) for parent in form.parent] == [len(states[0]), len(states[1])]
    assert [len(action) for action in form.action] == [first[-1] for first in form.first]


def plan_of(form: SequenceForm, seat: int, strategy: Strategy) -> NDArray[np.float64]:
    plan = np.ones(len(form.action[seat]))
    for state, parent in enumerate(form.parent[seat].tolist()):
        for sequence in range(*form.first[seat][state : state + 2]):
            plan[sequence] = plan[parent] * strategy[seat][sequence]
    return plan


def test_the_average_is_that_of_plans_weighed_by_squares() -> None:
    form = sequence_form("nano")
    assert (form.parent[0] > 0).any()  # some choices come after others
    cfr = CFR(form)
    sums = [np.zeros(len(form.action[seat])) for seat in (0, 1)]
    for iteration in range(1, 6):
        cfr.step()
        for seat in (0, 1):
            sums[seat] += iteration**2 * plan_of(form, seat, cfr.current)
    for seat in (0, 1):
        np.testing.assert_allclose(plan_of(form, seat, cfr.average), sums[seat] / 55, atol=1e-12)


def solved(preset: str, target: float) -> tuple[SequenceForm, Strategy]:
    form = sequence_form(preset)
    cfr = CFR(form)
    while nash_conv(form, cfr.average) > target:
        assert cfr.iterations < 200
        cfr.step(10)
    return form, cfr.average


def documented(preset: str) -> dict[str, str]:
    """The column of a small deck in RULES.md."""
    text = (Path(conquian_env.__file__).parent / "RULES.md").read_text(encoding="utf-8")
    lines = text[text.index("### Small decks") :].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    column = rows[0].index(f"`{preset}`")
    return {row[0]: row[column] for row in rows[2:10]}


SLOW = [pytest.param(preset, marks=pytest.mark.slow) for preset in ("micro", "mini")]


def percent(rate: float) -> str:
    return f"{100 * rate:.0f} %"


@pytest.mark.parametrize("preset", ["nano", *SLOW])
def test_the_small_decks_are_what_the_rules_say(preset: str) -> None:
    said = documented(preset)
    form, average = solved(preset, 1e-3)
    low, high = -best_response(form, 1, average), best_response(form, 0, average)
    assert low <= value(form, average) <= high < low + 1e-3
    digits = len(said["value to seat 0"].partition(".")[2])
    assert low - 10**-digits < float(said["value to seat 0"]) < high + 10**-digits
    greedy, uniform = agent_strategy(form, make_agent("greedy")), uniform_strategy(form)
    assert said["histories"] == f"{form.histories:,}"
    assert said["information states with a choice, seat 0"] == f"{len(form.parent[0]):,}"
    assert said["the same, seat 1"] == f"{len(form.parent[1]):,}"
    assert said["draws, both seats in equilibrium"] == percent(draw_rate(form, average))
    assert said["draws, `greedy` against itself"] == percent(draw_rate(form, greedy))
    assert said["NashConv of uniformly random play"] == f"{nash_conv(form, uniform):.3f}"
    assert nash_conv(form, uniform) > 0.3


@pytest.mark.parametrize("preset", ["nano", SLOW[0]])
def test_forcing_changes_values_as_the_rules_say(preset: str) -> None:
    form, average = solved(preset, 1e-4)
    free, without = solved(f"{preset},force=off", 1e-4)
    said = float(documented(preset)['value to seat 0 with `force="off"`'])
    assert value(free, without) == pytest.approx(said, abs=1e-4)
    other = average if preset == "micro" else random_strategy(form, 1)
    gains = np.concatenate([insisting_gains(form, seat, other) for seat in (0, 1)])
    assert gains.max() > 1e-6  # of at most 6e-5, the chance of one deal in nano
    assert gains.min() < -1e-6


def insisting_gains(form: SequenceForm, seat: int, strategy: Strategy) -> NDArray[np.float64]:
    """What insisting is worth more than letting go, wherever there is that choice."""
    first, action = form.first[seat], form.action[seat]
    values = action_values(form, seat, strategy)
    force = first[:-1][action[first[1:] - 1] == FORCE] + 1  # the last action of its state
    assert (action[force - 1] == PASS).all()
    return values[force] - values[force - 1]


def test_random_strategies_are_strategies() -> None:
    form = sequence_form(TINY[0])
    one, other = random_strategy(form, 1), random_strategy(form, 2)
    for seat in (0, 1):
        sums = np.add.reduceat(one[seat], form.first[seat][:-1])
        np.testing.assert_allclose(sums, 1)
        assert (one[seat] != other[seat]).any()
    assert nash_conv(form, one) > 0


def test_an_agent_is_scored_by_what_it_plays() -> None:
    form = sequence_form("nano")
    random = agent_strategy(form, make_agent("random"))
    for strategy, uniform in zip(random, uniform_strategy(form), strict=True):
        np.testing.assert_allclose(strategy, uniform, rtol=1e-6)
    greedy = agent_strategy(form, make_agent("greedy"))
    assert set(np.concatenate(greedy)) == {0.0, 1.0}
    assert nash_conv(form, greedy) > nash_conv(form, random)  # on so small a deck


class Dice:
    """Draws from the seeds it is given."""

    def act(self, views: Views) -> NDArray[np.int64]:
        equal = views.mask / views.mask.sum(axis=1, keepdims=True)
        return draw(equal, views.mask, views.seeds)


def test_an_agent_that_only_acts_draws_from_a_seed_of_what_it_has_seen() -> None:
    form = sequence_form(TINY[0])
    one, again, other = (agent_strategy(form, Dice(), seed=seed) for seed in (1, 1, 2))
    assert all((one[seat] == again[seat]).all() for seat in (0, 1))
    assert all((one[seat] != other[seat]).any() for seat in (0, 1))
    chosen = one[0][form.first[0][:-1]]  # of states with few actions the first comes often
    assert 0.2 < chosen.mean() < 0.6


class Broken:
    def __init__(self, spoil: Any) -> None:
        self.spoil = spoil

    def act(self, views: Views) -> NDArray[np.int64]:
        return views.mask.argmax(axis=1)

    def probabilities(self, views: Views) -> Any:
        return self.spoil(views.mask.astype(np.float64))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda mask: mask[:1], r"agent mine: probabilities have shape \(1, 83\)"),
        (lambda mask: mask, "agent mine: these are no probabilities of the legal actions"),
        (lambda mask: np.full_like(mask, 1 / 83), "agent mine: these are no probabilities"),
        (lambda mask: mask * np.nan, "agent mine: these are no probabilities"),
        (lambda mask: mask.nothing, "agent mine failed: AttributeError"),
    ],
)
def test_what_is_no_strategy_is_refused(spoil: Any, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        agent_strategy(sequence_form(TINY[0]), Broken(spoil), "mine")


def test_a_doubled_game_is_refused() -> None:
    with pytest.raises(OptionError, match="draw='double'"):
        sequence_form(RuleSet(suits=3, ranks=3, deal=2, draw="double"))


@pytest.mark.parametrize("rules", ["classic", "classic,deal=2", "micro,ranks=10"])
def test_a_tree_too_large_to_walk_is_refused(rules: str) -> None:
    with pytest.raises(OptionError, match="deals are too many to follow"):
        sequence_form(rules)


def test_the_command_prints_size_value_and_scores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nano", "--agents", "random"]) == 0
    printed = capsys.readouterr().out
    assert f"nano: {sequence_form('nano').histories:,} histories" in printed
    lines = [line.split(" NashConv ")[-1] for line in printed.splitlines()[-2:]]
    assert lines[0] == lines[1]  # uniform play, said in two ways


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pico"], "error: unknown preset 'pico'"),
        (["nano", "--agents", "x"], "error: unknown agent"),
    ],
)
def test_the_command_refuses_bad_arguments(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)
