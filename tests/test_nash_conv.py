"""NashConv on the sequence form is OpenSpiel's own, computed on the game ``python_conquian``.

``python -m tests.test_nash_conv`` prints both for uniform, random and learnt play on ``nano``.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.policy import Policy

from conquian_env.openspiel import rules_text
from conquian_env.rules import RuleSet
from conquian_env.view import views_of
from training.exact import CFR, Strategy, nash_conv, random_strategy, uniform_strategy
from training.sequence_form import Found, SequenceForm, sequence_form

SMALL = RuleSet(suits=2, ranks=4, deal=2, stock=2, exchange=True, hand_melds=True)
STRATEGIES: dict[str, Callable[[SequenceForm], Strategy]] = {
    "uniform": uniform_strategy,
    "random": lambda form: random_strategy(form, seed=1),
    "cfr": lambda form: learnt(form, 5),
}
Seen = tuple[int, int, bytes]  # seat, hand and history


def learnt(form: SequenceForm, iterations: int) -> Strategy:
    cfr = CFR(form)
    cfr.step(iterations)
    return cfr.average


def table(form: SequenceForm, strategy: Strategy) -> dict[Seen, dict[int, float]]:
    """A strategy by what is seen."""
    states: dict[Seen, dict[int, float]] = {}
    number = [0, 0]

    def visit(found: Found) -> None:
        views = views_of(found.rows, form.rules, np.zeros(len(found.seats), np.uint64))
        for i, seat in enumerate(found.seats.tolist()):
            first, end = form.first[seat][number[seat] : number[seat] + 2]
            number[seat] += 1
            actions = form.action[seat][first:end].tolist()
            chances = strategy[seat][first:end].tolist()
            seen = (seat, int(views.hand[i]), views.history[i].tobytes().rstrip(b"\xff"))
            assert seen not in states  # hand and history are perfect recall
            states[seen] = dict(zip(actions, chances, strict=True))

    sequence_form(form.rules, visit)
    return states


class TablePolicy(Policy):  # type: ignore[misc]  # OpenSpiel has no types
    def __init__(self, game: Any, states: Mapping[Seen, dict[int, float]]) -> None:
        super().__init__(game, [0, 1])
        self.states = states

    def action_probabilities(self, state: Any, player_id: int | None = None) -> dict[int, float]:
        node = state.node
        hand = int(node.rows["hand"][0, node.player])
        return self.states[node.player, hand, node.history(node.player).tobytes().rstrip(b"\xff")]


def both(rules: RuleSet, policy: str) -> tuple[float, float]:
    """NashConv, ours and theirs."""
    form = sequence_form(rules)
    strategy = STRATEGIES[policy](form)
    game = pyspiel.load_game(f"python_conquian(rules={rules_text(rules)},skip_forced=True)")
    theirs = exploitability.nash_conv(game, TablePolicy(game, table(form, strategy)))
    return nash_conv(form, strategy), float(theirs)


@pytest.mark.parametrize("policy", STRATEGIES)
def test_nash_conv_is_that_of_openspiel(policy: str) -> None:
    ours, theirs = both(SMALL, policy)
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert ours > 1e-4


@pytest.mark.slow  # three minutes: the other two are left to the command above
def test_nash_conv_is_that_of_openspiel_on_nano() -> None:
    ours, theirs = both(RuleSet.preset("nano"), "random")
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert ours > 0.1


if __name__ == "__main__":
    for policy in STRATEGIES:
        ours, theirs = both(RuleSet.preset("nano"), policy)
        print(f"nano {policy}: NashConv {ours:.12f}, OpenSpiel's {theirs:.12f}", flush=True)
