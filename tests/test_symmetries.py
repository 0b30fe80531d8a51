"""Promise 6: the symmetries of a rule set leave legality as it is (section 7 of the rules)."""

import itertools
import json

import numpy as np
import pytest

from conquian_env import Game, RuleSet, card_name, cards
from conquian_env.actions import DISCARD, LAY, PASS, TAKE
from conquian_env.cards import NAMES
from tests.playing import playthroughs

LINE = tuple(range(10))
LOW, HIGH = LINE[:7], LINE[7:]


def rank_orders(rules: RuleSet) -> list[tuple[int, ...]]:
    """Orders of the ranks that keep runs runs: the whole line turned, or its two parts alone."""
    if rules.seven_jack_adjacent:
        return [LINE, LINE[::-1]]
    return [low + high for low in (LOW, LOW[::-1]) for high in itertools.permutations(HIGH)]


def symmetries(rules: RuleSet) -> list[np.ndarray]:
    """Permutations of the 40 card ids."""
    return [
        np.array([10 * suits[card // 10] + ranks[card % 10] for card in range(40)])
        for suits in itertools.permutations(range(4))
        for ranks in rank_orders(rules)
    ]


def moved(value: object, order: np.ndarray) -> object:
    """A value of a saved game with its cards exchanged."""
    if isinstance(value, list):
        return [moved(part, order) for part in value]
    if isinstance(value, str) and all(word in NAMES for word in value.split()):
        return " ".join(card_name(int(order[card])) for card in cards(value))
    return value


def moved_actions(actions: list[int], order: np.ndarray) -> list[int]:
    def move(action: int) -> int:
        start = DISCARD if action >= DISCARD else LAY
        return start + int(order[action - start]) if action >= LAY else action

    return sorted(map(move, actions))


@pytest.mark.parametrize(
    ("preset", "count"),
    [("classic", 48), ("classic-1.1", 288), ("bicycle", 48), ("mexican", 48), ("nine", 48)],
)
def test_rule_7_symmetries_leave_legality_as_it_is(preset: str, count: int) -> None:
    rules, rng = RuleSet.preset(preset), np.random.default_rng(1)
    orders = symmetries(rules)
    assert len({tuple(order) for order in orders}) == count
    for game in playthroughs(rules, 4, seed=21):
        saved = json.loads(game.to_json()) | {"history": []}
        for order in rng.permutation(orders)[:6]:
            values = {key: moved(value, order) for key, value in saved.items()}
            other = Game.from_json(json.dumps(values))
            assert other.legal_actions() == moved_actions(game.legal_actions(), order)


def test_rule_7_no_other_order_of_the_ranks_is_a_symmetry() -> None:
    """With the 4 and the 5 exchanged, 2 3 4 is 2 3 5."""
    order = np.arange(40)
    order[[3, 4]] = order[[4, 3]]
    game = Game.from_position(
        "classic",
        hands=("2C 3C 6S KD QC JD 7C AH 2H 4H", "AC AD AS 3D 4D 5D 6H 7H JS KS"),
        face_up="4C",
        stock="KC KH",
    )
    values = {key: moved(value, order) for key, value in json.loads(game.to_json()).items()}
    other = Game.from_json(json.dumps(values | {"history": []}))
    assert (game.legal_actions(), other.legal_actions()) == ([PASS, TAKE], [PASS])
