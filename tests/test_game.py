"""`Game`: properties, actions, copies, positions and saved games."""

import copy
import json
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conquian_env import Batch, Game, Outcome, Phase, RuleSet, Source, Termination, card, cards
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
from conquian_env.errors import ConquianError, IllegalActionError, PositionError, SeedError
from conquian_env.game import JSON_FORMAT
from conquian_env.state import MAX_EVENTS
from tests.oracle import COMBINATIONS, legal_table
from tests.playing import choose, play, playthroughs, random_actions

PRESETS = ("classic", "classic-1.1")
RULES = (
    RuleSet(),
    RuleSet(seven_jack_adjacent=False),
    RuleSet(force="off"),
    RuleSet(force="auto"),
    RuleSet(force_source="discard"),
    RuleSet(deal=4),
)
HAND_0 = "4S 5S 2H 2D 2C KD QC JD 7C AH"
HAND_1 = "AC AD AS 3C 3D 4H 5D 6H 7H JS"


def position(**changes: Any) -> Game:
    """Seat 0 has turned 6S with 4S 5S in hand; `changes` make another position of it."""
    values: dict[str, Any] = {"hands": (HAND_0, HAND_1), "face_up": "6S", "stock": "KC KH"}
    rules = changes.pop("rules", "classic")
    return Game.from_position(rules, **values | changes)


def offered(**changes: Any) -> Game:
    """Seat 1, with a table that could absorb 6S, is offered it by seat 0."""
    values: dict[str, Any] = {
        "hands": ("4H 5H 2H 2D 2C KD QC JD 7C AH", "AC AD AS 3C 3D 4D"),
        "tables": ("", "2S 3S 4S 5S"),
        "actor": 1,
        "phase": "offered",
    }
    return position(**values | changes)


def force(**changes: Any) -> Game:
    """Seat 0 may insist that seat 1 takes 6S."""
    return offered(**{"actor": 0, "phase": "force"} | changes)


def meld(**changes: Any) -> Game:
    """Seat 1 has taken 6S and has 4S 5S to lay."""
    values: dict[str, Any] = {
        "hands": (HAND_1, HAND_0),
        "tables": ("", "6S"),
        "face_up": None,
        "actor": 1,
        "phase": "meld",
    }
    return position(**values | changes)


def won() -> Game:
    """Seat 1 has ten down and takes the eleventh."""
    game = position(
        hands=(HAND_0, ""),
        tables=("", "3H 4H 5H 6H QS QD QH AD AC AS"),
        face_up="7H",
        stock="",
        phase="offered",
        actor=1,
    )
    game.apply(TAKE)
    return game


def drawn() -> Game:
    """The last card is declined."""
    game = position(stock="", phase="offered", source="passed")
    game.apply(PASS)
    return game


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


@pytest.mark.parametrize("rules", RULES, ids=str)
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


@pytest.mark.parametrize("rules", RULES, ids=str)
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


REFUSED = [
    (won, PASS, "pass: the deal is over"),
    (drawn, DISCARD, "discard AC: the deal is over"),
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
]


@pytest.mark.parametrize(("make", "action", "why"), REFUSED, ids=[why for *_, why in REFUSED])
def test_a_refusal_says_why(make: Callable[[], Game], action: int, why: str) -> None:
    game = make()
    before = game.to_json()
    with pytest.raises(IllegalActionError, match="^" + re.escape(why)):
        game.apply(action)
    assert game.to_json() == before


# --- the end ---


@pytest.mark.parametrize("rules", RULES, ids=str)
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
        assert winners == [seat for seat in (0, 1) if game.returns()[seat] == 1]
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


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_state_has_a_legal_action_until_the_end(rules: RuleSet) -> None:
    for game in playthroughs(rules, 10, seed=7):
        assert bool(game.legal_actions()) != game.is_over


@pytest.mark.parametrize("preset", PRESETS)
def test_at_most_60_offers_a_deal(preset: str) -> None:
    most = offers = 0
    for game in playthroughs(preset, 40, seed=8):
        offers = 0 if game.ply == 0 else offers
        offers += game.phase in (Phase.TURNED, Phase.OFFERED)
        most = max(most, offers)
    assert 40 <= most <= 60


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


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_card_is_in_one_place(rules: RuleSet) -> None:
    for game in playthroughs(rules, 4, seed=12):
        stock = json.loads(game.to_json())["stock"].split()
        places = [*game.hand(0), *game.hand(1), *game.table(0), *game.table(1), *game.dead, *stock]
        places += [game.face_up] if game.face_up else []
        assert sorted(places) == sorted(NAMES)
        assert len(stock) == game.stock_count
        for seat in (0, 1):
            taking = game.phase == Phase.MELD and game.actor == seat
            has_won = game.is_over and game.returns()[seat] == 1
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
@pytest.mark.parametrize("rules", [RuleSet(), RuleSet(False, force="auto")], ids=str)
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


# --- positions ---


def test_from_position_of_a_turned_card() -> None:
    game = position()
    assert (game.phase, game.actor, game.face_up, game.stock_count) == (Phase.TURNED, 0, "6S", 2)
    assert game.hand(0) == tuple(sorted(HAND_0.split(), key=NAMES.index))
    assert (game.table(0), game.history, game.ply) == ((), (), 0)
    named = {*HAND_0.split(), *HAND_1.split(), "6S", "KC", "KH"}
    assert set(game.dead) == set(NAMES) - named
    assert game.view(0).source == Source.TURNED
    assert game.legal_actions() == [PASS, TAKE]


def test_from_position_defaults_the_source_to_discarded() -> None:
    assert offered().view(0).source == Source.DISCARDED
    assert force().view(0).source == Source.DISCARDED
    assert meld().view(0).source is None


@pytest.mark.parametrize("source", [Source.TURNED, Source.PASSED, Source.DISCARDED])
def test_from_position_force_of_every_source(source: Source) -> None:
    game = force(source=source)
    assert game.view(0).source == source
    assert game.legal_actions() == [PASS, FORCE]
    game.apply(FORCE)
    assert (game.phase, game.actor, game.table(1)) == (
        Phase.MELD, 1, ("2S", "3S", "4S", "5S", "6S"),
    )  # fmt: skip


def test_from_position_allows_an_unfinished_table_in_meld() -> None:
    game = meld()
    assert game.legal_actions() == [LAY + card_id for card_id in cards("2C 2D 2H 4S 5S")]


def test_from_position_takes_the_dead_as_given() -> None:
    dead = " ".join(position().dead)
    assert position(dead=dead).to_json() == position().to_json()
    with pytest.raises(PositionError, match=f"card {position().dead[0]} is missing"):
        position(dead=dead[3:])


def test_from_position_turns_the_stock_in_the_order_written() -> None:
    game = position(stock="KH KC")
    game.apply(PASS)
    game.apply(PASS)
    assert (game.face_up, game.stock_count) == ("KH", 1)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_from_position_rebuilds_every_state(rules: RuleSet) -> None:
    for game in playthroughs(rules, 2, seed=18):
        if game.is_over:
            continue
        view = game.view(0)
        again = Game.from_position(
            rules,
            hands=(" ".join(game.hand(0)), " ".join(game.hand(1))),
            tables=(" ".join(game.table(0)), " ".join(game.table(1))),
            face_up=game.face_up,
            stock=json.loads(game.to_json())["stock"],
            actor=game.actor,
            phase=game.phase,
            source=view.source,
        )
        assert again.dead == game.dead
        assert again.legal_actions() == game.legal_actions()
        assert again.returns() == (0, 0)


BAD_POSITIONS: list[tuple[Callable[..., Game], dict[str, Any], str]] = [
    (position, {"hands": (HAND_0.replace("AH", "4S"), HAND_1)}, "hands: card 4S comes twice"),
    (position, {"hands": (HAND_0.replace("AH", "JS"), HAND_1)}, "hand 1: JS is also"),
    (position, {"face_up": "4S"}, "face_up: 4S is also"),
    (position, {"stock": "KC 4S"}, "stock: 4S is also"),
    (position, {"stock": "KC KC"}, "stock: card KC comes twice"),
    (position, {"stock": "6S"}, "face_up: 6S is also"),
    (offered, {"dead": "2S"}, "dead: 2S is also"),
    (offered, {"tables": ("2S 3S 4S", "2S 3S 4S 5S")}, "table 1: 2S is also"),
    (position, {"dead": "4C"}, "card 5C is missing"),
    (position, {"hands": (HAND_0, HAND_1.replace("JS", "8S"))}, "hands: unknown card '8S'"),
    (position, {"tables": ("", "10H")}, "tables: unknown card '10H'"),
    (position, {"face_up": "S6"}, "unknown card 'S6'"),
    (position, {"face_up": ""}, "unknown card ''"),
    (position, {"stock": "kc"}, "unknown card 'kc'"),
    (position, {"dead": "joker"}, "dead: unknown card 'joker'"),
    (position, {"hands": (HAND_0[3:], HAND_1)}, "seat 0 has 9 cards .* needs 10"),
    (position, {"hands": (HAND_0, HAND_1 + " JC")}, "seat 1 has 11 cards .* needs 10"),
    (meld, {"hands": (HAND_1, HAND_0[:-3])}, "seat 1 has 10 cards .* needs 11"),
    (meld, {"actor": 0}, "seat 0 has 10 cards .* needs 11"),
    (position, {"rules": RuleSet(deal=9)}, "seat 0 has 10 cards .* needs 9"),
    (position, {"hands": (HAND_0[9:], HAND_1), "tables": ("4S 5S 2H", "")},
     "table 0: 2H 4S 5S are no separate combinations"),
    (offered, {"tables": ("", "2S 3S 4S JS")}, "table 1: 2S 3S 4S JS are no separate"),
    (meld, {"tables": ("", "KH"), "stock": "KC"}, "table 1 can not be made legal with the hand"),
    (meld, {"tables": ("", ""), "hands": (HAND_1, HAND_0 + " 6S")}, "table 1 can not be made"),
    (meld, {"tables": ("", HAND_0 + " 6S"), "hands": (HAND_1, "")}, "table 1 has 11 cards"),
    (position, {"phase": "give"}, "phase give is not played"),
    (position, {"phase": "start"}, "phase must be one of give, turned, .*, not 'start'"),
    (position, {"phase": None}, "phase must be one of"),
    (position, {"phase": "meld"}, "face_up: phase meld needs no face-up card"),
    (position, {"phase": "over"}, "face_up: phase over needs no face-up card"),
    (position, {"face_up": None}, "face_up: phase turned needs a face-up card"),
    (offered, {"face_up": None}, "face_up: phase offered needs a face-up card"),
    (force, {"face_up": None}, "face_up: phase force needs a face-up card"),
    (position, {"source": "passed"}, "source: phase turned needs one of turned, not passed"),
    (offered, {"source": "turned"}, "source: phase offered needs one of passed, discarded, not t"),
    (meld, {"source": "turned"}, "source: phase meld needs one of none, not turned"),
    (position, {"source": "stolen"}, "source must be one of turned, .*, not 'stolen'"),
    (force, {"face_up": "JS", "stock": "6S"}, "phase force: JS cannot be forced on seat 1"),
    (force, {"hands": ("AC AD AS 3C 3D 4D", "4H 5H 2H 2D 2C KD QC JD 7C AH"),
             "tables": ("2S 3S 4S 5S", "")}, "phase force: 6S cannot be forced on seat 1"),
    (force, {"rules": RuleSet(force="off")}, "phase force: 6S cannot be forced on seat 1"),
    (force, {"rules": RuleSet(force_source="discard"), "source": "turned"}, "phase force: 6S"),
    (position, {"actor": 2}, "actor must be a whole number from 0 to 1, not 2"),
    (position, {"actor": -1}, "actor must be .*, not -1"),
    (position, {"actor": True}, "actor must be .*, not True"),
    (position, {"actor": "0"}, "actor must be .*, not '0'"),
    (position, {"hands": (HAND_0, HAND_1, "")}, "hands must be two texts"),
    (position, {"tables": ("",)}, "tables must be two texts"),
    (position, {"rules": "modern"}, "unknown preset 'modern'"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "changes", "message"), BAD_POSITIONS)
def test_bad_position(make: Callable[..., Game], changes: dict[str, Any], message: str) -> None:
    make()
    with pytest.raises(ConquianError, match="^" + message):
        make(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"hands": None},
        {"hands": (None, HAND_1)},
        {"hands": HAND_0},
        {"tables": (5, "")},
        {"face_up": 5},
        {"stock": None},
        {"dead": 5},
    ],
    ids=repr,
)
def test_a_position_of_what_is_no_text(changes: dict[str, Any]) -> None:
    with pytest.raises(PositionError, match=f"^{next(iter(changes))} must be"):
        position(**changes)


# --- saved games ---


def midgame() -> Game:
    """A dealt game with something in every field."""
    for game in playthroughs("classic", 20, seed=19):
        values = json.loads(game.to_json())
        fields = (*values["tables"], *values["declined"], *values["discarded"], values["dead"])
        if all(fields) and values["face_up"] and values["phase"] == "offered":
            return game
    raise AssertionError


SAVED: dict[str, Callable[[], Game]] = {
    "turned": lambda: Game("classic", 20),
    "offered": midgame,
    "meld": meld,
    "force": force,
    "won": won,
    "drawn": drawn,
}
FIELDS = tuple(json.loads(Game().to_json()))
WRONG: tuple[Any, ...] = (None, "", [], 5, "x", {}, True, -1, 1.5, [None, None], [5, 5], [[], []])
FREE = {  # reachability is not checked: these may be anything of their kind
    "history": ([], [5, 5]),
    "ply": (5,),
    "seed": (5,),
    "deal": (5,),
}


def test_midgame_has_something_in_every_field() -> None:
    assert midgame().actor in (0, 1)


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", SAVED)
def test_a_saved_game_with_a_wrong_field_is_refused(kind: str, field: str) -> None:
    saved = SAVED[kind]().to_json()
    for wrong in WRONG:
        values = json.loads(saved)
        if wrong == values[field] and type(wrong) is type(values[field]):
            continue
        if field == "rules" and wrong == {}:
            continue  # has a test of its own
        text = json.dumps(values | {field: wrong})
        if any(wrong == free and type(wrong) is type(free) for free in FREE.get(field, ())):
            assert json.loads(Game.from_json(text).to_json())[field] == wrong
        else:
            with pytest.raises(ConquianError):
                Game.from_json(text)


@pytest.mark.parametrize("field", FIELDS)
def test_a_saved_game_without_a_field_is_refused(field: str) -> None:
    values = json.loads(midgame().to_json())
    del values[field]
    with pytest.raises(ConquianError, match="format" if field == "format" else field):
        Game.from_json(json.dumps(values))


@pytest.mark.parametrize("field", ["hands", "tables", "declined", "discarded"])
@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("wrong", [None, [], 5, "x", {}, "8S", "4S 4S", ["4S"]], ids=repr)
def test_a_saved_game_with_a_wrong_card_text_is_refused(field: str, seat: int, wrong: Any) -> None:
    values = json.loads(midgame().to_json())
    values[field][seat] = wrong
    with pytest.raises(ConquianError, match=field):
        Game.from_json(json.dumps(values))


RULE_FIELDS = tuple(RuleSet().to_dict())


@pytest.mark.parametrize("field", RULE_FIELDS)
def test_a_saved_game_without_a_rule_is_refused(field: str) -> None:
    """A missing rule must not become that of classic."""
    values = json.loads(Game("classic-1.1").to_json())
    del values["rules"][field]
    with pytest.raises(ConquianError, match=field):
        Game.from_json(json.dumps(values))


@pytest.mark.parametrize("field", RULE_FIELDS)
@pytest.mark.parametrize("wrong", [None, "", [], 5, "x", {}, 10.0, 1 << 80], ids=repr)
def test_a_saved_game_with_a_wrong_rule_is_refused(field: str, wrong: Any) -> None:
    values = json.loads(Game().to_json())
    values["rules"][field] = wrong
    with pytest.raises(ConquianError):  # five cards each is a rule set, but not that of the hands
        Game.from_json(json.dumps(values))


def edited(**changes: Any) -> str:
    """A saved game with some fields changed by functions of their value."""
    values = json.loads(midgame().to_json())
    for field, change in changes.items():
        values[field] = change(values[field])
    return json.dumps(values)


BAD_SAVES = [
    ("", "not a saved game: Expecting value"),
    ("{", "not a saved game: "),
    ("[]", "not a saved game: format 'conquian-game-1' expected"),
    ("null", "not a saved game: format"),
    ('"conquian-game-1"', "not a saved game: format"),
    ("{}", "not a saved game: format"),
    ('{"format": "conquian-game-1"}', "rules must be a table of fields, not None"),
    ('{"format": "chess", "rules": {}}', "not a saved game: format"),
    (edited(format=lambda _: "conquian-game-2"), "not a saved game: format"),
    (edited(rules=lambda rules: rules | {"jokers": 2}), "unknown rule field 'jokers'"),
    (edited(rules=lambda rules: rules | {"deal": 9}), "seat 0 has 10 cards"),
    (edited(dead=lambda text: text + " 8S"), "dead: unknown card '8S'"),
    (edited(stock=lambda text: text + " " + text[:2]), "stock: card .. comes twice"),
    (edited(stock=lambda text: text[3:]), "card .. is missing"),
    (edited(stock=lambda text: text + " 8S"), "unknown card '8S'"),
    (edited(hands=lambda hands: [hands[0], hands[0]]), "hand 1: .. is also somewhere else"),
    (edited(history=lambda history: history * 20), "history of .* is too long"),
    (edited(history=lambda history: [str(event) for event in history]), "history must be"),
    (edited(history=lambda _: [256]), "history holds 256, which is no event"),
    (edited(history=lambda _: [-1]), "history holds -1, which is no event"),
    (edited(history=lambda _: [-128]), "history holds -128, which is no event"),
    (edited(history=lambda _: [TURN + 40]), "history holds 123, which is no event"),
    (edited(history=lambda _: [True]), "history must be a list of whole numbers"),
    (edited(ply=lambda _: MAX_EVENTS + 1), "ply must be a whole number from 0 to 200, not 201"),
    (edited(ply=lambda _: MAX_EVENTS), "ply 200 is too late for this position"),
    (edited(seed=lambda _: 1 << 64), "seed 18446744073709551616 is outside"),
    (edited(deal=lambda _: 1 << 58), "deal .* is outside"),
    (edited(phase=lambda _: "meld"), "face_up: phase meld needs no face-up card"),
    (edited(winner=lambda _: 0), "winner: nobody has won in phase offered"),
    (edited(winner=lambda _: 2), "winner must be a whole number from 0 to 1, not 2"),
    (midgame().to_json().replace("}", ', "dealer": 1}'), "unknown rule field 'dealer'"),
    (midgame().to_json()[:-1] + ', "dealer": 1}', "saved game: dealer is unknown"),
]


@pytest.mark.parametrize(("text", "message"), BAD_SAVES)
def test_a_bad_save_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConquianError, match="^" + message):
        Game.from_json(text)


def test_a_winner_with_cards_left_is_refused() -> None:
    values = json.loads(won().to_json())
    values["hands"], values["tables"] = [HAND_0, "AS"], ["", "3H 4H 5H 6H 7H QS QD QH AD AC"]
    with pytest.raises(PositionError, match=r"^hand 1: the winner holds no card"):
        Game.from_json(json.dumps(values))


def test_a_draw_with_stock_left_is_refused() -> None:
    values = json.loads(drawn().to_json())
    values["stock"], values["dead"] = values["dead"][:2], values["dead"][3:]
    with pytest.raises(PositionError, match=r"^stock: a draw needs an empty stock"):
        Game.from_json(json.dumps(values))


def test_a_winner_on_a_table_of_no_combinations_is_refused() -> None:
    text = won().to_json()
    swapped = text.replace("7H", "x").replace("KD", "7H").replace("x", "KD")
    with pytest.raises(PositionError, match=r"^table 1: .* are no separate combinations"):
        Game.from_json(swapped)


def test_every_truncated_save_is_refused() -> None:
    text = midgame().to_json()
    for end in range(len(text)):
        with pytest.raises(ConquianError):
            Game.from_json(text[:end])


@pytest.mark.parametrize("text", ["[" * 100_000, None, 5, {}], ids=["deep", "None", "5", "{}"])
def test_what_is_no_saved_text_at_all_is_refused(text: Any) -> None:
    with pytest.raises(ConquianError, match="not a saved game"):
        Game.from_json(text)


def test_a_garbled_save_is_refused_or_is_a_game() -> None:
    """One character changed: either an error of ours, or a game that can be played and saved."""
    rng = np.random.default_rng(21)
    letters = '0123456789ACDHSJQK "[]{},:-.enullx'
    loaded = 0
    for make in SAVED.values():
        text = make().to_json()
        for _ in range(300):
            at, letter = int(rng.integers(len(text))), letters[rng.integers(len(letters))]
            try:
                game = Game.from_json(text[:at] + letter + text[at + 1 :])
            except ConquianError:
                continue
            loaded += 1
            assert Game.from_json(game.to_json()).to_json() == game.to_json()
            while not game.is_over:
                game.apply(choose(game, rng, eager=True))
    assert 0 < loaded < 900


def test_refused_saves_leave_nothing_behind() -> None:
    text = midgame().to_json()
    for bad, _ in BAD_SAVES:
        with pytest.raises(ConquianError):
            Game.from_json(bad)
    assert Game.from_json(text).to_json() == text
    assert json.loads(text)["format"] == JSON_FORMAT
