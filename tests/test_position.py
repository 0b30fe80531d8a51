"""Positions and saved games: what is built, and what is refused by name (position.py)."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from conquian_env import Batch, Game, Phase, RuleSet, Source, card, cards
from conquian_env.actions import (
    FORCE,
    GAVE,
    LAY,
    PASS,
    SEAT_FLAG,
    TAKE,
)
from conquian_env.cards import NAMES
from conquian_env.errors import ConquianError, PositionError
from conquian_env.game import JSON_FORMAT
from conquian_env.position import check_states
from conquian_env.rules import rule_set
from conquian_env.state import MAX_EVENTS, STATE
from tests.playing import choose, playthroughs
from tests.positions import HAND_0, HAND_1, RULES, drawn, force, meld, offered, position, won

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


WRONG_RULES = [None, "", [], 5, "x", {}, 10.0, 1 << 80]


@pytest.mark.parametrize(
    ("field", "wrong"),
    [(f, w) for f in RULE_FIELDS for w in WRONG_RULES if (f, w) != ("stock", None)],
    ids=repr,
)
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
    ("[]", "not a saved game: format 'conquian-game-2' expected"),
    ("null", "not a saved game: format"),
    ('"conquian-game-2"', "not a saved game: format"),
    ("{}", "not a saved game: format"),
    ('{"format": "conquian-game-2"}', "rules must be a table of fields, not None"),
    ('{"format": "chess", "rules": {}}', "not a saved game: format"),
    (edited(format=lambda _: "conquian-game-1"), "saved game of another version of conquian-env"),
    (edited(format=lambda _: "conquian-game-"), "not a saved game: format"),
    (edited(format=lambda _: "conquian-record-1"), "not a saved game: format"),
    (edited(redeal=lambda _: 1), "redeal must be a whole number from 0 to 0, not 1"),
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
    (edited(history=lambda _: [GAVE + 1]), "history holds 124, which is no event"),
    (edited(history=lambda _: [True]), "history must be a list of whole numbers"),
    (edited(ply=lambda _: MAX_EVENTS + 1), "ply must be a whole number from 0 to 200, not 201"),
    (edited(ply=lambda _: MAX_EVENTS), "ply 200 is too late for this position"),
    (edited(seed=lambda _: 1 << 64), "seed 18446744073709551616 is outside"),
    (edited(deal=lambda _: 1 << 58), "deal .* is outside"),
    (edited(phase=lambda _: "meld"), "face_up: phase meld needs no face-up card"),
    (edited(winner=lambda _: 0), "winner: nobody has won in phase offered"),
    (edited(winner=lambda _: 2), "winner must be a whole number from 0 to 1, not 2"),
    (midgame().to_json()[:-1] + ', "seed": 5}', "not a saved game: seed comes twice"),
    (edited(history=lambda _: [GAVE]), "history: seat 0 gave a card, given names none"),
    (midgame().to_json().replace("}", ', "dealer": 1}'), "unknown rule field 'dealer'"),
    (midgame().to_json()[:-1] + ', "dealer": 1}', "saved game: dealer is unknown"),
]


@pytest.mark.parametrize(("text", "message"), BAD_SAVES)
def test_a_bad_save_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConquianError, match="^" + message):
        Game.from_json(text)


def test_a_table_that_only_earlier_cards_could_finish_is_refused() -> None:
    game = meld(rules=RuleSet(lay_order="ascending"))
    values = json.loads(game.to_json())
    values["history"] = [LAY + card("5S") | SEAT_FLAG]
    values["hands"][1] = values["hands"][1].replace(" 5S", "")
    values["tables"][1] = "5S 6S"  # 4S is in hand, and comes too late
    with pytest.raises(PositionError, match=r"^table 1 can not be made legal with the hand"):
        Game.from_json(json.dumps(values))
    values["history"] = [LAY + card("3S") | SEAT_FLAG]
    with pytest.raises(PositionError, match=r"^history: 3S is not on the table of seat 1"):
        Game.from_json(json.dumps(values))


def test_a_card_laid_last_that_is_not_on_the_table_is_refused() -> None:
    game = meld(rules=RuleSet(lay_order="ascending"))
    game.apply(LAY + card("4S"))
    values = json.loads(game.to_json())
    assert Game.from_json(json.dumps(values)) == game
    values["history"][-1] -= card("4S") - card("AC")  # AC, which seat 0 has in hand
    with pytest.raises(PositionError, match=r"^history: AC is not on the table of seat 1"):
        Game.from_json(json.dumps(values))


def test_a_history_leaves_room_for_all_that_can_follow() -> None:
    values = json.loads(Game().to_json())
    longest = values | {"history": [PASS] * 41}  # 159 of 200 events can follow a fresh deal
    assert len(Game.from_json(json.dumps(longest)).history) == 41
    with pytest.raises(PositionError, match=r"^history of 42 events is too long"):
        Game.from_json(json.dumps(values | {"history": [PASS] * 42}))


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
    swapped = text.replace("7H", "#").replace("KD", "7H").replace("#", "KD")
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


# --- states of unknown origin ---

VARIANTS = ["classic", "mexican", "bicycle", "nano", "classic,draw=double,lay_order=ascending"]


@pytest.mark.parametrize("rules", VARIANTS)
def test_every_state_that_is_reached_is_taken(rules: str) -> None:
    batch, rng = Batch(8, rule_set(rules), seed=5, skip_forced=True), np.random.default_rng(0)
    for _ in range(60):
        states = batch.states()
        check_states(states, batch.rules)
        batch.step(batch.sample_actions(rng))


@pytest.mark.parametrize("rules", VARIANTS)
def test_what_is_taken_of_damaged_states_can_be_played_on(rules: str) -> None:
    """A byte is another one; most such states are refused."""
    batch, rng = Batch(1, rule_set(rules), seed=5), np.random.default_rng(0)
    taken = 0
    for _ in range(200):
        batch.step(batch.sample_actions(rng))
        states, other = batch.states(), Batch(1, batch.rules)
        states.view(np.uint8)[rng.integers(STATE.itemsize)] = rng.integers(256)
        try:
            check_states(states, batch.rules)
        except PositionError:
            continue
        taken += 1
        other.restore(states)
        for _ in range(30):
            other.step(other.sample_actions(rng))
    assert 0 < taken < 150


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phase", -1), ("phase", 6), ("actor", 2), ("actor", -1), ("face_up", -2), ("face_up", 40),
        ("given", -2), ("source", -2), ("source", 3), ("winner", -2), ("winner", 0), ("redeal", 1),
        ("stock_next", -20), ("stock_next", 41), ("stock_end", 41), ("stock", -1), ("stock", 50),
        ("events", -1), ("events", 201), ("history", 127), ("ply", -1), ("ply", 201), ("deal", -1),
        ("hand", -1), ("table", 1 << 40), ("dead", 1), ("pack", 0), ("removed", 1),
        ("declined", -1), ("discarded", 1 << 40), ("known", 1),
    ],
)  # fmt: skip
def test_a_state_outside_its_ranges_is_refused(field: str, value: int) -> None:
    states = Batch(3).states()
    check_states(states, RuleSet())
    states[field][1] = value
    with pytest.raises(PositionError, match=r"^state 1"):
        check_states(states, RuleSet())


def test_a_state_of_other_rules_is_refused() -> None:
    with pytest.raises(PositionError, match=r"^state 0"):
        check_states(Batch(3, "nano").states(), RuleSet())
