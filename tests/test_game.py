"""`Game`: properties, actions, the end and copies."""

import copy
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conquian_env import Batch, Game, Outcome, Phase, RuleSet, Termination, card
from conquian_env.actions import (
    CODE_MASK,
    DISCARD,
    FORCE,
    LAY,
    NUM_ACTIONS,
    PASS,
    SEAT_BIT,
    TAKE,
    TURN,
    action_name,
)
from conquian_env.cards import NAMES
from conquian_env.errors import CardError, IllegalActionError, PositionError, SeedError
from conquian_env.observation import LAYOUT
from conquian_env.rules import PRESETS as ALL_PRESETS
from conquian_env.state import MAX_EVENTS
from tests.oracle import COMBINATIONS, legal_table
from tests.playing import play, playthroughs, random_actions
from tests.positions import PRESETS, RULES, VARIANTS, drawn, force, meld, offered, position, won

# --- what is on the table ---


def test_fresh_game() -> None:
    game = Game("classic", seed=7, deal=3)
    assert (game.seed, game.deal, game.ply, game.rules) == (7, 3, 0, RuleSet())
    assert (game.phase, game.actor, game.stock_count) == (Phase.TURNED, 0, 19)
    assert (len(game.hand(0)), len(game.hand(1)), len(set(game.hand(0) + game.hand(1)))) == (
        10, 10, 20,
    )  # fmt: skip
    assert game.table(0) == game.table(1) == game.dead == ()
    assert game.face_up is not None
    assert game.history == (TURN + card(game.face_up),)
    assert (game.is_over, game.outcome, game.returns()) == (False, None, (0.0, 0.0))


def test_defaults_are_classic_seed_0_deal_0() -> None:
    assert Game().to_json() == Game(RuleSet(), seed=0, deal=0).to_json()


def test_repr_says_where_the_game_stands() -> None:
    game = Game("classic", seed=7, deal=3)
    game.apply(PASS)
    assert repr(game) == "<Game seed 7 deal 3 ply 1: offered>"


@pytest.mark.parametrize("seed", [0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("deal", [0, (1 << 58) - 1])
def test_seed_and_deal_come_back(seed: int, deal: int) -> None:
    game = Game("classic", np.uint64(seed), np.int64(deal))  # type: ignore[arg-type]
    assert (game.seed, game.deal) == (seed, deal)
    assert game.to_json() == Game("classic", seed, deal).to_json()


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.0, "1", True, None])
def test_bad_seed(seed: Any) -> None:
    with pytest.raises(SeedError, match=re.escape(str(seed))):
        Game("classic", seed)


@pytest.mark.parametrize("deal", [-1, 1 << 58, 1.0, "1", True, None])
def test_bad_deal(deal: Any) -> None:
    with pytest.raises(SeedError, match=re.escape(str(deal))):
        Game("classic", 0, deal)


def test_seed_and_deal_both_choose_the_cards() -> None:
    hands = {Game("classic", seed, deal).hand(0) for seed in range(20) for deal in range(20)}
    assert len(hands) == 400


def test_cards_are_sorted_by_id() -> None:
    for game in playthroughs("classic", 4, seed=1):
        for names in (game.hand(0), game.hand(1), game.table(0), game.table(1), game.dead):
            assert list(names) == sorted(names, key=NAMES.index)


@pytest.mark.parametrize("seat", [-1, 2, "0", None, 1.0, True])
@pytest.mark.parametrize("ask", ["hand", "table", "melds", "view", "observation"])
def test_unknown_seat(ask: str, seat: Any) -> None:
    with pytest.raises(PositionError, match=f"seat must be 0 or 1, not {seat!r}"):
        getattr(Game(), ask)(seat)


def test_a_seat_may_be_a_numpy_integer() -> None:
    game, seat = Game(), np.int8(1)
    assert game.view(seat) == game.view(1)  # type: ignore[arg-type]
    assert game.view(seat).to_json() == game.view(1).to_json()  # type: ignore[arg-type]


def test_resample_hidden_of_an_unknown_seat() -> None:
    with pytest.raises(PositionError, match="seat must be 0 or 1, not 2"):
        Game().resample_hidden(2, np.random.default_rng(0))


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_legal_mask_is_the_legal_actions(rules: RuleSet) -> None:
    for game in playthroughs(rules, 2, seed=2):
        mask = game.legal_mask()
        assert (mask.shape, mask.dtype) == ((NUM_ACTIONS,), np.int8)
        assert set(mask.tolist()) <= {0, 1}
        assert np.flatnonzero(mask).tolist() == game.legal_actions()


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_melds_is_a_legal_split_unless_a_take_is_unfinished(rules: RuleSet) -> None:
    adjacent = rules.seven_jack_adjacent
    for game in playthroughs(rules, 4, seed=3):
        for seat in (0, 1):
            table, melds = frozenset(map(card, game.table(seat))), game.melds(seat)
            if melds is None:
                assert (game.phase, game.actor) == (Phase.MELD, seat)
                assert not legal_table(table, adjacent)
            else:
                groups = [frozenset(map(card, group)) for group in melds]
                assert set(groups) <= set(COMBINATIONS[adjacent])
                assert sorted(name for group in groups for name in group) == sorted(table)


def test_melds_of_a_table_and_of_none() -> None:
    game = won()
    assert game.melds(0) == ()
    melds = game.melds(1)
    assert melds is not None
    assert sorted(map(" ".join, melds)) == ["3H 4H 5H 6H 7H", "AC AD AS", "QD QH QS"]
    assert meld().melds(1) is None


# --- playing on ---


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_every_action_that_is_not_legal_is_refused_and_changes_nothing(rules: RuleSet) -> None:
    for game in playthroughs(rules, 2, seed=4):
        before = game.to_json()
        for action in sorted(set(range(NUM_ACTIONS)) - set(game.legal_actions())):
            with pytest.raises(IllegalActionError, match=f"^{action_name(action)}: ."):
                game.apply(action)
        assert game.to_json() == before


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_legal_action_can_be_played(rules: RuleSet) -> None:
    for game in playthroughs(rules, 2, seed=5):
        for action in game.legal_actions():
            after = game.copy()
            after.apply(action)
            assert after.ply == game.ply + 1
            assert after.history[len(game.history)] == game.actor << SEAT_BIT | action


@pytest.mark.parametrize(
    "action", [-1, 83, 1 << 70, True, False, np.True_, "1", "pass", 1.0, np.float64(0), None, [0]]
)
def test_what_is_no_action_id_is_refused(action: Any) -> None:
    game = position()
    before = game.to_json()
    with pytest.raises(IllegalActionError, match=re.escape(f"unknown action {action!r}: ids run")):
        game.apply(action)
    assert game.to_json() == before


def test_numpy_integers_are_action_ids() -> None:
    game = position()
    game.apply(np.uint8(TAKE))  # type: ignore[arg-type]
    assert game.phase == Phase.MELD


def useless() -> Game:
    """Seat 0 has turned a card that it cannot take."""
    return position(face_up="KH", stock="KC 6S")


def must_take() -> Game:
    """Seat 1 has to take 6S."""
    return offered(rules=RuleSet(force="auto"))


def giving() -> Game:
    """Seat 0, without the king of clubs, chooses a card to give."""
    return Game("mexican", seed=4)


def hand_melds() -> Game:
    """Seat 0 may lay its three twos, but has turned a card that is not the first."""
    return position(rules=RuleSet(hand_melds=True))


def first_dealt() -> Game:
    """The same with the card that was dealt face up, on which nothing is laid."""
    return position(rules=RuleSet(hand_melds=True, first_card="dealt", stock=3))


def unfinished() -> Game:
    """Seat 0 has laid the first of them."""
    game = hand_melds()
    game.apply(LAY + card("2H"))
    return game


def in_order() -> Game:
    """Seat 1 has taken 6S and 4S 5S to lay, 4S first."""
    return meld(rules=RuleSet(lay_order="ascending"))


REFUSED = [
    (won, PASS, "pass: the game is over"),
    (drawn, DISCARD, "discard AC: the game is over"),
    (position, LAY + card("4S"), "lay 4S: not in phase turned; answer the face-up card first"),
    (offered, DISCARD + card("AC"), "discard AC: not in phase offered; answer the face-up"),
    (position, FORCE, "force: there is nothing to force in phase turned"),
    (offered, FORCE, "force: there is nothing to force in phase offered"),
    (force, TAKE, "take: seat 0 may only force or pass"),
    (force, LAY + card("4H"), "lay 4H: not in phase force"),
    (meld, PASS, "pass: seat 1 has taken a card and must lay or discard"),
    (meld, TAKE, "take: seat 1 has taken a card and must lay or discard"),
    (meld, FORCE, "force: seat 1 has taken a card and must lay or discard"),
    (meld, LAY + card("JS"), "lay JS: JS is not in the hand of seat 1"),
    (meld, DISCARD + card("JS"), "discard JS: JS is not in the hand of seat 1"),
    (meld, LAY + card("6S"), "lay 6S: 6S is not in the hand of seat 1"),
    (meld, DISCARD + card("KD"), "discard KD: the table is not legal yet; lay the missing"),
    (meld, LAY + card("KD"), "lay KD: no legal table of seat 1 holds KD"),
    (useless, TAKE, "take: no legal table of seat 0 holds KH"),
    (must_take, PASS, "pass: the table of seat 1 absorbs 6S, which must be taken"),
    (giving, PASS, "pass: seat 0 must choose a card to give (discard)"),
    (giving, LAY, "lay AC: seat 0 must choose a card to give (discard)"),
    (giving, DISCARD + card("KC"), "discard KC: KC is not in the hand of seat 0"),
    (hand_melds, LAY + card("KD"), "lay KD: no legal table of seat 0 holds KD"),
    (hand_melds, DISCARD + card("KD"), "discard KD: not in phase turned; answer the face-up card"),
    (first_dealt, LAY + card("2H"), "lay 2H: not in phase turned; answer the face-up card first"),
    (unfinished, PASS, "pass: the table is not legal yet; lay the missing cards first"),
    (unfinished, TAKE, "take: the table is not legal yet; lay the missing cards first"),
    (
        in_order,
        LAY + card("5S"),
        "lay 5S: no legal table of seat 1 holds 5S with later cards alone",
    ),
]


@pytest.mark.parametrize(("make", "action", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_a_refusal_says_why(make: Callable[[], Game], action: int, why: str) -> None:
    game = make()
    before = game.to_json()
    with pytest.raises(IllegalActionError, match="^" + re.escape(why)):
        game.apply(action)
    assert game.to_json() == before


# --- the end ---


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_returns_and_outcome(rules: RuleSet) -> None:
    ends = set()
    for game in playthroughs(rules, 20, seed=6):
        assert sum(game.returns()) == 0
        assert game.is_over == (game.phase == Phase.OVER)
        if game.outcome is None:
            assert not game.is_over
            assert game.returns() == (0, 0)
            assert max(len(game.table(0)), len(game.table(1))) < rules.target
            continue
        ends.add(game.outcome.termination)
        winners = [seat for seat in (0, 1) if len(game.table(seat)) == rules.target]
        assert winners == [seat for seat in (0, 1) if game.returns()[seat] == game.stake]
        if winners:
            assert game.outcome == Outcome(winners[0], Termination.OUT)
            assert game.hand(winners[0]) == ()
        else:
            assert game.outcome == Outcome(None, Termination.STOCK)
            assert game.returns() == (0, 0)
            assert game.stock_count == 0
    assert ends == set(Termination)


def test_the_outcome_names_the_winning_seat() -> None:
    assert (won().outcome, won().returns()) == (Outcome(1, Termination.OUT), (-1.0, 1.0))
    assert (drawn().outcome, drawn().returns()) == (Outcome(None, Termination.STOCK), (0.0, 0.0))


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_every_state_has_a_legal_action_until_the_end(rules: RuleSet) -> None:
    for game in playthroughs(rules, 10, seed=7):
        assert bool(game.legal_actions()) != game.is_over


@pytest.mark.parametrize(
    "rules", [*map(RuleSet.preset, ALL_PRESETS), RuleSet(draw="double", max_deals=2)], ids=str
)
def test_no_game_is_longer_than_its_rules_say(rules: RuleSet) -> None:
    most = offers = 0
    before: tuple[object, ...] = ()
    for game in playthroughs(rules, 40, seed=8):
        offers = 0 if len(game.history) <= 1 else offers
        now = (game.phase, game.face_up, game.actor)
        offers += game.phase in (Phase.TURNED, Phase.OFFERED) and now != before
        most, before = max(most, offers), now
        assert game.ply <= rules.max_plies
    assert 2 * rules.stock_size <= most <= rules.max_offers


@pytest.mark.parametrize("deal", range(2, 20))
def test_the_history_fits_at_every_deal_size(deal: int) -> None:
    for game in playthroughs(RuleSet(deal=deal), 4, seed=9):
        assert len(game.history) <= MAX_EVENTS
        if game.ply % 8 == 0 or game.is_over:  # a saved game leaves room for all that can follow
            assert Game.from_json(game.to_json()).history == game.history


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_everybody_passing_draws(rules: RuleSet) -> None:
    game = Game(rules, seed=11)
    for _ in range(2 * rules.stock_size):
        assert not game.is_over
        game.apply(PASS)
    assert game.outcome == Outcome(None, Termination.STOCK)
    assert (game.returns(), game.stock_count) == ((0, 0), 0)
    assert len(game.dead) == rules.stock_size


@pytest.mark.parametrize("preset", PRESETS)
def test_everybody_passing_draws_in_a_batch(preset: str) -> None:
    batch = Batch(8, preset, seed=11, autoreset=False)
    for _ in range(40):
        assert not batch.done.any()
        batch.step(np.zeros(8, np.int64))
        assert not batch.reward.any()
    assert batch.done.all()
    assert all(batch.game(i).outcome == Outcome(None, Termination.STOCK) for i in range(8))


# --- cards are conserved ---


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_every_card_is_in_one_place(rules: RuleSet) -> None:
    for game in playthroughs(rules, 4, seed=12):
        stock = json.loads(game.to_json())["stock"].split()
        places = [*game.hand(0), *game.hand(1), *game.table(0), *game.table(1), *game.dead, *stock]
        places += [game.face_up] if game.face_up else []
        assert sorted(places) == sorted(NAMES)
        assert len(stock) == game.stock_count
        for seat in (0, 1):
            taking = game.phase == Phase.MELD and game.actor == seat
            has_won = game.is_over and game.returns()[seat] > 0
            size = len(game.hand(seat)) + len(game.table(seat))
            assert size == (rules.target if taking or has_won else rules.deal)


def test_the_stock_is_turned_in_its_order() -> None:
    game = Game("classic", seed=13)
    stock = [game.face_up, *json.loads(game.to_json())["stock"].split()]
    while not game.is_over:
        game.apply(PASS)
    turned = [code - TURN for e in game.history if (code := e & CODE_MASK) >= TURN]
    assert [NAMES[card_id] for card_id in turned] == stock


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_history_is_what_was_done(rules: RuleSet) -> None:
    """Each action is recorded with its seat, each turned card after the action that led to it."""
    before = None
    for game in playthroughs(rules, 2, seed=14):
        if before is None or game.ply == 0:
            before = game
            continue
        assert game.history[: len(before.history)] == before.history
        new = game.history[len(before.history) :]
        assert new[0] >> SEAT_BIT == before.actor
        assert new[0] & CODE_MASK in before.legal_actions()
        if game.phase == Phase.TURNED:
            assert game.face_up is not None
            assert new[1:] == (game.actor << SEAT_BIT | TURN + card(game.face_up),)
        else:
            assert new[1:] == ()
        before = game


# --- copies ---

COPIES: dict[str, Callable[[Game], Game]] = {
    "copy": Game.copy,
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda game: pickle.loads(pickle.dumps(game)),
    "json": lambda game: Game.from_json(game.to_json()),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize(
    "rules",
    [
        RuleSet(),
        RuleSet(False, force="auto"),
        RuleSet.preset("mexican"),
        RuleSet(draw="double", max_deals=2, deal=9),
        RuleSet(lay_order="ascending"),
    ],
    ids=str,
)
def test_a_copy_plays_on_identically_from_every_ply(rules: RuleSet, way: str) -> None:
    for eager in (False, True):
        game = Game(rules, seed=15)
        actions = random_actions(game, seed=3, eager=eager)
        states = play(game.copy(), actions)
        for ply, action in enumerate(actions):
            twin = COPIES[way](game)
            assert (type(twin), twin.rules, twin.to_json()) == (Game, game.rules, game.to_json())
            assert play(twin, actions[ply:]) == states[ply:]
            assert (twin.outcome, twin.seed, twin.deal) == (
                Game.from_json(states[-1]).outcome, game.seed, game.deal,
            )  # fmt: skip
            game.apply(action)
        assert COPIES[way](game).to_json() == game.to_json()


def test_a_save_in_every_phase_plays_on_into_the_next_deal() -> None:
    rules = RuleSet(draw="double", exchange=True, hand_melds=True)
    seen: dict[tuple[Phase, int], str] = {}
    for game in playthroughs(rules, 30, seed=22):
        if game.redeal < rules.max_deals - 1:
            seen.setdefault((game.phase, game.actor), game.to_json())
    assert seen.keys() == {(phase, seat) for phase in Phase for seat in (0, 1)}
    crossed = set()
    for (phase, _), saved in seen.items():
        for seed in range(10):
            loaded = Game.from_json(saved)
            actions = random_actions(loaded, seed)
            states = play(pickle.loads(pickle.dumps(loaded)), actions)
            assert play(loaded, actions) == states
            if states and Game.from_json(states[-1]).redeal > Game.from_json(saved).redeal:
                crossed.add(phase)
    assert crossed == set(Phase) - {Phase.OVER}


def test_a_drawn_deal_is_dealt_again_for_twice_the_stake() -> None:
    game = Game(RuleSet(draw="double", max_deals=3), seed=23, deal=4)
    hands, starters = set(), []
    for redeal in range(3):
        assert (game.redeal, game.stake, game.returns()) == (redeal, 1 << redeal, (0, 0))
        assert (game.stock_count, game.deal, len(game.history)) == (19, 4, 1)
        hands.add(game.hand(0))
        starters.append(game.actor)
        for _ in range(40):
            game.apply(PASS)
    assert (game.is_over, game.outcome) == (True, Outcome(None, Termination.STOCK))
    assert (len(hands), starters, game.ply) == (3, [0, 1, 0], 120)


def test_the_stake_is_seen() -> None:
    for game in playthroughs(RuleSet(draw="double"), 20, seed=25):
        for seat in (0, 1):
            assert game.view(seat).stake == game.stake == 1 << game.redeal
            assert game.observation(seat)[LAYOUT["stake"]].tolist() == [game.stake]


def test_a_deal_keeps_nothing_of_the_one_before() -> None:
    rules = RuleSet(draw="double", stock=5, max_deals=3)
    for game in playthroughs(rules, 12, seed=26):
        assert Game.from_json(game.to_json()) == game  # no card removed before is missing now
    batch, rng = Batch(16, rules, seed=27), np.random.default_rng(1)
    redealt = False
    for _ in range(400):
        before, redeals = batch.deal.copy(), [batch.game(i).redeal for i in range(16)]
        batch.step(batch.sample_actions(rng))
        for i in np.flatnonzero(batch.deal > before):
            redealt |= redeals[i] > 0
            assert batch.game(i) == Game(rules, 27, int(batch.deal[i]))
    assert redealt


@pytest.mark.parametrize("rules", [RuleSet(), RuleSet(first_card="dealt", stock=1)], ids=str)
def test_after_a_draw_the_actor_is_who_declined_last(rules: RuleSet) -> None:
    game = Game(rules, seed=28)
    while not game.is_over:
        last = game.actor
        game.apply(PASS)
    assert game.actor == last


def test_a_resampled_gift_can_be_any_card_of_the_hand() -> None:
    """Eight cards, 200 gifts: that one never comes has a chance of 2e-11."""
    game, rng = Game("mexican", seed=29), np.random.default_rng(2)
    game.apply(game.legal_actions()[0])
    places = set()
    for _ in range(200):
        other = game.resample_hidden(1, rng)
        places.add(other.hand(0).index(json.loads(other.to_json())["given"][0]))
    assert places == set(range(8))


def test_the_winner_takes_the_stake() -> None:
    rules = RuleSet(draw="double")
    ends = [game for game in playthroughs(rules, 200, seed=24) if game.is_over]
    assert {abs(game.returns()[0]) for game in ends} == {0, 1, 2, 4, 8}
    assert {game.stake for game in ends if game.outcome == Outcome(None, Termination.STOCK)} == {8}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_is_independent(way: str) -> None:
    game = position()
    before = game.to_json()
    twin = COPIES[way](game)
    twin.apply(TAKE)
    assert game.to_json() == before
    game.apply(PASS)
    assert twin.phase == Phase.MELD


def test_json_is_the_whole_state() -> None:
    seen = {game.to_json() for game in playthroughs("classic", 4, seed=16)}
    assert len(seen) == sum(1 for _ in playthroughs("classic", 4, seed=16))
    assert all(Game.from_json(text).to_json() == text for text in seen)
    assert all("\n" not in text for text in seen)


def test_the_helper_repeats_itself() -> None:
    first = [game.to_json() for game in playthroughs("classic", 2, seed=17)]
    assert first == [game.to_json() for game in playthroughs("classic", 2, seed=17)]


# --- from_deck, state, views ---


def pack_of(game: Game) -> str:
    """The deck that deals a game which nobody has played in yet."""
    saved = json.loads(game.to_json())
    turned = [game.face_up] if game.face_up else []
    return " ".join([*game.hand(0), *game.hand(1), *turned, saved["stock"], saved["removed"]])


@pytest.mark.parametrize(
    "rules", [*VARIANTS, RuleSet.preset("nano"), RuleSet.preset("mini")], ids=str
)
def test_a_deck_deals_the_cards_in_their_order(rules: RuleSet) -> None:
    for deal in range(3):
        start = Game(rules, seed=3, deal=deal)
        game = Game.from_deck(rules, pack_of(start))
        assert (game.seed, game.deal) == (0, 0)
        while True:
            values = [json.loads(one.to_json()) for one in (game, start)]
            for each in values:
                del each["seed"], each["deal"]
            assert values[0] == values[1]
            if game.is_over or game.redeal:
                break
            action = game.legal_actions()[-1]
            game.apply(action)
            start.apply(action)
            if game.redeal:
                break  # the next deal is of another seed


@pytest.mark.parametrize(
    ("deck", "error", "message"),
    [
        ("", PositionError, "deck must hold each card of the pack once; look at AC 2C"),
        ("AC 2C", PositionError, "deck must hold each card of the pack once; look at 3C 4C"),
        (" ".join([*NAMES, "AC"]), CardError, "card AC comes twice"),
        (" ".join([*NAMES[1:], "KS"]), CardError, "card KS comes twice"),
        (" ".join([*NAMES[:-1], "8S"]), CardError, "8S"),
        (7, CardError, "7"),
        (None, CardError, "None"),
    ],
)
def test_what_is_no_deck(deck: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Game.from_deck("classic", deck)


def test_a_deck_of_other_rules() -> None:
    with pytest.raises(PositionError, match="deck must hold each card of the pack once; look at"):
        Game.from_deck("nano", " ".join(NAMES))


def test_views_are_the_actors_alone() -> None:
    game = position()
    before = game.to_json()
    views = game.views(np.array([9], np.uint64))
    assert (len(views), views.seeds.tolist(), views.rules) == (1, [9], game.rules)
    assert (views.observation[0] == game.observation(game.actor)).all()
    assert np.flatnonzero(views.mask[0]).tolist() == game.legal_actions()
    views.observation[:] = views.mask[:] = views.history[:] = views.hand[:] = 1
    assert game.to_json() == before


def test_state_of_an_unknown_seat() -> None:
    for seat in (2, -1, None, True):
        with pytest.raises(PositionError, match="seat must be 0 or 1"):
            Game().state(seat)  # type: ignore[arg-type]
        with pytest.raises(PositionError, match="seat must be 0 or 1"):
            Game().observation(seat, "history")  # type: ignore[arg-type]
