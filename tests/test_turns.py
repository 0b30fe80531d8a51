"""Which lays a policy is asked about, against all subsets of a hand in plain Python."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.symmetry import ACTION_PLACES, OBSERVATION_PLACES
from agents.turns import narrow
from conquian_env import Batch, Game, RuleSet
from conquian_env.actions import DISCARD, LAY, NUM_ACTIONS
from conquian_env.cards import card_mask, cards
from conquian_env.melds import legal_table
from tests.playing import playthroughs
from tests.positions import meld
from tests.test_inputs import places


def narrowed(game: Game) -> NDArray[np.bool_]:
    observation, mask = game.observation(game.actor)[None], game.legal_mask()[None]
    return narrow(observation, mask, game.rules)[0]


def slow_lays(game: Game) -> set[int]:
    """Of all sets that make the table legal: those without a smaller one in them, or that win."""
    view, urgent = game.view(game.actor), set()
    enough: list[set[int]] = []
    for size in range(len(view.hand) + 1):
        for laid in map(set, itertools.combinations(view.hand, size)):
            smaller = any(one <= laid for one in enough)
            wins = len(view.table) + size == game.rules.target
            if (wins or not smaller) and legal_table(card_mask({*view.table, *laid}), game.rules):
                enough.append(laid)
                urgent |= laid
    return urgent


@pytest.mark.parametrize("name", ["classic", "mexican", "bicycle", "nine"])
def test_only_lays_that_can_wait_are_left_out(name):
    fewer = 0
    for game in playthroughs(name, games=60, seed=5):
        if game.is_over:
            continue
        legal, kept = game.legal_mask(), narrowed(game)
        lays = {c for c in range(40) if legal[LAY + c]}
        expected = lays & slow_lays(game) if lays else set()
        assert {c for c in range(40) if kept[LAY + c]} == expected
        np.testing.assert_array_equal(np.delete(kept, range(3, 43)), np.delete(legal, range(3, 43)))
        assert kept.any()
        fewer += expected != lays
    assert fewer > 10


def test_what_a_table_needs_comes_first():
    """KD needs JD QD, or KC KH; 5S 6S 7S can wait."""
    hands = ("AC AD AS 3C 3D 3H 4C 4D JC JH", "JD QD KC 5S 6S 7S KH 2S 2C 4H")
    game = meld(hands=hands, tables=("", "KD"), stock="AH 2H")
    assert {c for c in range(40) if narrowed(game)[LAY + c]} == set(cards("JD QD KC KH"))
    game.apply(LAY + 17)
    game.apply(LAY + 18)
    assert LAY + 34 in game.legal_actions()
    assert not narrowed(game)[LAY:DISCARD].any()


@pytest.mark.parametrize(("last", "kept"), [("2S", "4H 5H 6H 2C 2D 2H 2S"), ("3S", "")])
def test_a_lay_that_wins_cannot_wait(last, kept):
    """With four down, seven cards win together; six of them do not."""
    hands = ("AC AD AS 3C 3D 3H 4C 4D JC JH", f"4H 5H 6H 2C 2D 2H {last}")
    game = meld(hands=hands, tables=("", "7S JS QS KS"), stock="AH KH")
    assert {c for c in range(40) if narrowed(game)[LAY + c]} == set(cards(kept))


def test_cards_laid_in_order_are_left_as_they_are():
    for game in playthroughs("nano", games=20, seed=1):
        if not game.is_over:
            np.testing.assert_array_equal(narrowed(game), game.legal_mask())


def test_the_masks_given_are_not_changed_and_symmetries_move_what_is_left():
    batch, rng = Batch(256, seed=4, skip_forced=True), np.random.default_rng(0)
    for _ in range(9):
        batch.step(batch.sample_actions(rng))
    observation, mask = batch.observation.copy(), batch.mask.copy()
    plain = narrow(observation, mask, RuleSet())
    np.testing.assert_array_equal(mask, batch.mask)
    assert (plain != mask).any()
    suits = (2, 0, 3, 1)
    actions = places(NUM_ACTIONS, LAY, NUM_ACTIONS, suits)
    seen = observation[:, places(observation.shape[1], 0, 400, suits)]
    np.testing.assert_array_equal(narrow(seen, mask[:, actions], RuleSet()), plain[:, actions])
    turned = narrow(observation[:, OBSERVATION_PLACES], mask[:, ACTION_PLACES], RuleSet())
    np.testing.assert_array_equal(turned, plain[:, ACTION_PLACES])
