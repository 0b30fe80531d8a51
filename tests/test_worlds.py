"""Worlds dealt from a view: the same view, other cards, and what declines tell of them."""

import numpy as np
import pytest
from scipy.stats import chi2

from conquian_env import Batch, Game, Phase, RuleSet, card
from conquian_env.actions import PASS, TAKE
from conquian_env.errors import OptionError
from conquian_env.melds import can_complete
from conquian_env.worlds import decline_weights, redeal
from tests.playing import playthroughs

RULES = ["classic", "classic-1.1", "bicycle", "mexican", "nine", "nano", "micro", "mini",
         "classic,draw=double", "mexican,lay_order=ascending,stock=5",
         "mini,exchange=true,draw=double"]  # fmt: skip


@pytest.mark.parametrize("rules", RULES)
def test_a_decision_of_an_agent_is_a_view(rules: str) -> None:
    for game in playthroughs(RuleSet.from_text(rules), 12, seed=5):
        if game.is_over:
            continue
        found = game.views(np.zeros(1, np.uint64)).view(0)
        assert found == game.view(game.actor)


@pytest.mark.parametrize("rules", RULES)
def test_worlds_look_the_same_to_the_seat(rules: str) -> None:
    rng = np.random.default_rng(0)
    for game in playthroughs(RuleSet.from_text(rules), 4, seed=6):
        for seat in (0, 1):
            view = game.view(seat)
            if view.phase == Phase.OVER:
                continue
            worlds = redeal(view, rng, 5)
            for i in range(5):
                world = worlds.game(i)
                assert world.view(seat) == view
                assert Game.from_json(world.to_json()) == world
                assert (world.observation(seat) == game.observation(seat)).all()


def test_every_world_is_equally_likely() -> None:
    """15 hands of the other times 2 stocks; a false alarm once in ten thousand seeds."""
    view = Game("nano", seed=1).view(0)
    worlds = redeal(view, np.random.default_rng(4), 60_000).states()
    _, counts = np.unique(worlds["hand"][:, 1], return_counts=True)
    expected = 60_000 / len(counts)
    assert len(counts) > 5
    assert ((counts - expected) ** 2 / expected).sum() < chi2.ppf(0.9999, len(counts) - 1)
    assert len(set(worlds["seed"].tolist())) == 60_000


def test_there_is_nothing_to_deal_in_a_game_that_is_over() -> None:
    game = Game("nano", seed=1)
    while not game.is_over:
        game.apply(game.legal_actions()[0])
    for view, n in ((game.view(0), 5), (Game().view(0), 0)):
        with pytest.raises(OptionError, match="no world to deal"):
            redeal(view, np.random.default_rng(0), n)


@pytest.mark.parametrize("rules", ["classic", "bicycle", "mexican", "classic,force_source=discard"])
def test_who_always_takes_has_declined_nothing(rules: str) -> None:
    """The true deal has weight 1 where both take whenever they can, whatever they insist on."""
    rng, lighter = np.random.default_rng(2), 0
    for deal in range(8):
        game = Game(RuleSet.from_text(rules), seed=7, deal=deal)
        while not game.is_over:
            if game.phase in (Phase.TURNED, Phase.OFFERED):
                view, truth = game.view(game.actor), Batch.from_states(game.rules, game.to_state())
                assert decline_weights(view, truth, doubt=0.0).tolist() == [1.0]
                lighter += (decline_weights(view, redeal(view, rng, 20), doubt=0.0) == 0).sum()
            legal = game.legal_actions()
            game.apply(TAKE if TAKE in legal else int(rng.choice(legal)))
    assert lighter > 100


def test_what_was_declined_weighs() -> None:
    """Seat 1 passes the king of hearts: that it has the two black ones is in doubt."""
    game = Game.from_deck("classic", DECK)
    game.apply(PASS)
    game.apply(PASS)
    worlds = redeal(game.view(0), np.random.default_rng(0), 2000)
    weights = decline_weights(game.view(0), worlds, doubt=0.25)
    takes = np.array(
        [
            can_complete(1 << card("KH"), int(hand), game.rules)
            for hand in worlds.states()["hand"][:, 1]
        ]
    )
    assert takes.any()
    assert (weights == np.where(takes, 0.25, 1.0)).all()


DECK = (
    "AC 3C 5C 7C QC AD 3D 5D 7D QD "
    "2C 4C 6C JC KC 2D 4D 6D JD KD "
    "KH AH 2H 3H 4H 5H 6H 7H JH QH AS 2S 3S 4S 5S 6S 7S JS QS KS"
)


def test_a_history_that_began_in_the_middle_weighs_what_it_tells() -> None:
    """The first event answers a card that no event shows."""
    game = Game.from_position(
        "classic",
        hands=("KH 2C 4C 6C 2D 4D 6D QC AH 3H", "KS KD 3C 5C 7C 3D 5D 7D QD 2H"),
        face_up="KC",
        phase="offered",
        actor=1,
        stock="5H 6H 7H JH",
        dead=None,
    )
    game.apply(TAKE)
    while game.phase == Phase.MELD:
        game.apply(game.legal_actions()[0])
    worlds = redeal(game.view(0), np.random.default_rng(0), 50)
    assert (decline_weights(game.view(0), worlds, doubt=0.1) == 1.0).all()
