"""Positions with known answers, each named after its rule; the last number is the situation's."""

import json

import numpy as np
import pytest

from conquian_env import (
    Batch,
    Game,
    Outcome,
    Phase,
    RuleSet,
    Termination,
    action_name,
    card,
    cards,
    parse_action,
)
from conquian_env.actions import DISCARD, FORCE, GAVE, LAY, PASS, TAKE, TURN
from conquian_env.cards import card_mask, card_name
from conquian_env.errors import CardError, IllegalActionError
from conquian_env.melds import combinations, legal_table
from tests import oracle

PACK = [rank + suit for suit in "CDHS" for rank in "A234567JQK"]
CLASSIC, STRICT = RuleSet.preset("classic"), RuleSet.preset("classic-1.1")
TEN_DOWN = "3H 4H 5H 6H QS QD QC AD 2D 3D"


def position(
    hand: str,
    table: str,
    face_up: str | None,
    *,
    seat: int = 0,
    phase: str = "turned",
    source: str | None = None,
    other_table: str = "",
    stock: str = "",
    rules: RuleSet = CLASSIC,
) -> Game:
    """``seat`` to act with ``hand``; the other seat holds the first cards not named."""
    named = f"{hand} {table} {face_up} {other_table} {stock}".split()
    other_hand = [name for name in PACK if name not in named][: 10 - len(other_table.split())]
    hands, tables = (hand, " ".join(other_hand)), (table, other_table)
    return Game.from_position(
        rules,
        hands=hands if seat == 0 else hands[::-1],
        tables=tables if seat == 0 else tables[::-1],
        face_up=face_up,
        stock=stock,
        actor=seat,
        phase=phase,
        source=source,
    )


def takes(game: Game) -> set[frozenset[str]]:
    """The sets of hand cards that can be laid in a take that ends with a discard or a win."""
    if TAKE not in game.legal_actions():
        return set()
    seat, hand = game.actor, set(game.hand(game.actor))
    game = after(game, "take")
    found, reached, todo = set(), {game.hand(seat)}, [game]
    while todo:
        state = todo.pop()
        actions = state.legal_actions()
        if state.is_over or any(action >= DISCARD for action in actions):
            found.add(frozenset(hand - set(state.hand(seat))))
        for action in actions:
            if LAY <= action < DISCARD:
                further = after(state, action_name(action))
                if further.hand(seat) not in reached:
                    reached.add(further.hand(seat))
                    todo.append(further)
    return found


def takes_anywhere(hand: str, table: str, face_up: str) -> set[frozenset[str]]:
    """``takes`` for either seat and for a turned, a passed and a discarded card: all the same."""
    answers = [
        takes(position(hand, table, face_up, seat=seat, phase=phase, source=source))
        for seat in (0, 1)
        for phase, source in (("turned", "turned"), ("offered", "passed"), ("offered", "discarded"))
    ]
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def laying(*texts: str) -> set[frozenset[str]]:
    return {frozenset(text.split()) for text in texts}


def after(game: Game, *names: str) -> Game:
    """A copy of the game after the actions named."""
    game = game.copy()
    for name in names:
        game.apply(parse_action(name))
    return game


def legal(game: Game) -> list[str]:
    return [action_name(action) for action in game.legal_actions()]


def refused(game: Game, name: str, why: str) -> None:
    """The action is refused, the message says why, and the state is unchanged."""
    before = game.to_json()
    with pytest.raises(IllegalActionError, match=f"^{name}: .*{why}"):
        game.apply(parse_action(name))
    assert game.to_json() == before


def combination(text: str, rules: RuleSet = CLASSIC) -> bool:
    """One combination or not; the test of whole tables must say the same of so few cards."""
    mask = card_mask(cards(text))
    found = mask in combinations(rules)
    assert legal_table(mask, rules) == (found or mask == 0)
    return found


# --- 1 Combinations ---


@pytest.mark.parametrize("text", ["7S JS QS", "6H 7H JH"])
def test_rule_1_3_the_seven_is_next_to_the_jack_01(text: str) -> None:
    assert combination(text)
    assert not combination(text, STRICT)


def test_rule_1_3_jack_queen_king_is_a_run_under_both_01() -> None:
    assert combination("JH QH KH")
    assert combination("JH QH KH", STRICT)


@pytest.mark.parametrize("rules", [CLASSIC, STRICT])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("QC KC AC", False),
        ("KD AD 2D", False),
        ("AS 2S 3S", True),
        ("KH JH QH", True),
        ("5S 6S JS", False),
        ("6S 7S QS", False),
    ],
)
def test_rule_1_2_the_line_of_ranks_02(text: str, expected: bool, rules: RuleSet) -> None:
    assert combination(text, rules) == expected


@pytest.mark.parametrize("rules", [CLASSIC, STRICT])
def test_rule_1_4_sets_have_one_rank_and_runs_one_suit_03(rules: RuleSet) -> None:
    assert combination("7S 7H 7D 7C", rules)
    assert not combination("5S 6H 7D", rules)


@pytest.mark.parametrize("text", ["4S 4S 4H", "4S 4S 4S"])
def test_rule_1_4_the_pack_has_one_of_each_03(text: str) -> None:
    with pytest.raises(CardError, match="4S"):
        card_mask(cards(text))
    with pytest.raises(CardError, match="4S"):
        position("AC 3D 5H 7C 2H 6D KC", text, "JH")


@pytest.mark.parametrize("text", ["4S 4H", "4S", "", "4S 4H 4D 5D"])
def test_rule_1_4_too_few_or_mixed_is_no_combination_04(text: str) -> None:
    assert not combination(text)


@pytest.mark.parametrize("text", ["8S", "9D", "TC", "joker", "7", "SS"])
def test_rule_1_1_cards_outside_the_pack_are_refused_by_name_05(text: str) -> None:
    with pytest.raises(CardError, match=f"'{text}'"):
        card(text)
    with pytest.raises(CardError, match=f"'{text}'"):
        position(f"{text} AC 3D 5H 7C 2H 6D KC QS JD", "", "JH")
    with pytest.raises(CardError, match=f"'{text}'"):
        parse_action(f"discard {text}")


def test_rule_1_5_a_whole_suit_is_a_table_that_nothing_extends_06() -> None:
    suit = cards("AH 2H 3H 4H 5H 6H 7H JH QH KH")
    assert legal_table(card_mask(suit), CLASSIC)
    for other in set(range(40)) - set(suit):
        assert not legal_table(card_mask((*suit, other)), CLASSIC)


# --- 2 and 3 Deal and turn ---


@pytest.mark.parametrize("number", range(40))
def test_rule_2_1_a_fresh_deal_07(number: int) -> None:
    game = Game("classic", seed=7, deal=number)
    assert [len(game.hand(seat)) for seat in (0, 1)] == [10, 10]
    assert [game.table(seat) for seat in (0, 1)] == [(), ()]
    assert (game.actor, game.phase, game.stock_count, game.dead) == (0, Phase.TURNED, 19, ())
    # Twenty in the stock and nothing face up before the first turn, which is an event, no action.
    assert game.face_up is not None
    assert game.history == (TURN + card(game.face_up),)
    window = {card(name) for name in (*game.hand(0), game.face_up)}
    runs_and_sets = oracle.combinations()
    useful = any(card(game.face_up) in combo <= window for combo in runs_and_sets)
    assert legal(game) == (["pass", "take"] if useful else ["pass"])


def test_rule_3_6_a_passed_card_is_offered_and_dies_when_declined_08() -> None:
    game = position("KS KD 2C AC 3D 5H 7C 2H 4S 6D", "", "JH", stock="QC 4C")
    passed = after(game, "pass")
    assert (passed.actor, passed.phase, passed.face_up) == (1, Phase.OFFERED, "JH")
    assert passed.dead == game.dead
    declined = after(passed, "pass")
    assert set(declined.dead) - set(game.dead) == {"JH"}
    assert (declined.actor, declined.phase, declined.face_up) == (1, Phase.TURNED, "QC")
    assert declined.stock_count == 1


def test_rule_3_2_a_take_is_one_meld_09() -> None:
    hand = "4S 5S 2H 2D 2C KD QC JD 7C AH"
    assert takes_anywhere(hand, "", "6S") == laying("4S 5S", "4S 5S 2H 2D 2C")
    taken = after(position(hand, "", "6S"), "take")
    assert not any(name.startswith("discard") for name in legal(taken))
    second = after(taken, "lay 2C", "lay 4S", "lay 2H", "lay 5S", "lay 2D")
    assert set(second.table(0)) == {"4S", "5S", "6S", "2H", "2D", "2C"}
    assert second.hand(0) == ("7C", "QC", "JD", "KD", "AH")
    assert legal(second) == [f"discard {name}" for name in second.hand(0)]
    discarded = after(second, "discard QC")
    assert discarded.hand(0) == ("7C", "JD", "KD", "AH")
    assert (discarded.actor, discarded.phase, discarded.face_up) == (1, Phase.OFFERED, "QC")


@pytest.mark.parametrize(
    ("hand", "expected"),
    [
        ("AC 2D 3H 4C 6H 7D JC QD KH 2C", laying()),
        ("AC 2D 3H 4C 5H 5D JC QD KH 2C", laying("5H 5D")),
    ],
)
def test_rule_3_4_nothing_is_added_to_the_other_table_10(
    hand: str, expected: set[frozenset[str]]
) -> None:
    assert takes_anywhere(hand, "", "5S") == expected
    for seat in (0, 1):
        game = position(hand, "", "5S", seat=seat, other_table="2S 3S 4S")
        assert takes(game) == expected


def test_rule_3_9_a_hand_meld_cannot_be_laid_without_the_face_up_card_11() -> None:
    game = position("KS KD KC AC 3D 5H 7C 2H 4S 6D", "", "JH")
    assert legal(game) == ["pass"]
    refused(game, "lay KS", "not in phase turned")
    refused(after(game, "pass"), "lay KS", "not in phase offered")


def test_rule_3_5_what_is_not_allowed_now_is_refused_12() -> None:
    offered = position("4S 5S 2H 2D KD QC JD 7C AH 3D", "", "6S", stock="KH")
    refused(offered, "discard 4S", "answer the face-up card")
    refused(offered, "lay 4S", "answer the face-up card")
    refused(offered, "force", "nothing to force")
    taken = after(offered, "take")
    refused(taken, "discard KD", "table is not legal")
    refused(taken, "lay KD", "no legal table")
    due = after(taken, "lay 4S", "lay 5S")
    refused(due, "take", "must lay or discard")
    refused(due, "pass", "must lay or discard")
    refused(due, "discard KH", "KH is not in the hand of seat 0")
    refused(due, "discard 4S", "4S is not in the hand of seat 0")
    refused(due, f"discard {due.hand(1)[0]}", "not in the hand of seat 0")
    done = after(due, "discard KD")
    refused(done, "discard QC", "not in phase offered")
    refused(done, "lay 2H", "not in phase offered")
    refused(done, "take", "no legal table of seat 1 holds KD")


def test_rule_4_1_who_is_asked_to_insist_cannot_take_12() -> None:
    asked = after(position("AC 3D 5H 7C KC JD", "2S 3S 4S 5S", "6S"), "pass")
    refused(asked, "take", "may only force or pass")
    refused(asked, "discard 7H", "not in phase force")


def test_rule_5_1_nothing_is_played_after_the_end_12() -> None:
    over = after(position("", TEN_DOWN, "7H"), "take")
    for action in range(83):
        refused(over, action_name(action), "the game is over")


@pytest.mark.parametrize("action", [-1, 83, True, 1.0, "pass", None])
def test_what_is_no_action_at_all_is_refused_12(action: object) -> None:
    game = position("4S 5S 2H 2D KD QC JD 7C AH 3D", "", "6S")
    before = game.to_json()
    with pytest.raises(IllegalActionError, match=f"unknown action {action!r}"):
        game.apply(action)  # type: ignore[arg-type]
    assert game.to_json() == before


def test_one_wrong_action_leaves_the_whole_batch_unchanged_12() -> None:
    batch = Batch(3, "classic", seed=5)
    before = [batch.game(row).to_json() for row in range(3)]
    with pytest.raises(IllegalActionError, match="row 1: discard 7D is not legal"):
        batch.step([PASS, parse_action("discard 7D"), PASS])
    with pytest.raises(IllegalActionError, match="row 2: action 83 is not legal"):
        batch.step([PASS, PASS, 83])
    assert [batch.game(row).to_json() for row in range(3)] == before


# --- 3.3 Rearranging ---


def test_rule_3_3_a_run_gives_its_end_away_13() -> None:
    hand = "JS JD AC 3C 2S 4D KC"
    assert takes_anywhere(hand, "6H 7H JH", "5H") == laying("", "JS JD")


def test_rule_3_3_a_set_of_four_gives_one_away_14() -> None:
    assert takes_anywhere("4H AC 2D 3S JC KD", "6S 6H 6D 6C", "5H") == laying("4H")
    assert takes_anywhere("4H AC 2D 3S JC KD QS", "6S 6H 6D", "5H") == laying()


def test_rule_3_3_a_set_gives_one_to_a_run_15() -> None:
    assert takes_anywhere("5H KC AD 2C QS 4D", "7S 7H 7D 7C", "6H") == laying("5H")


def test_rule_3_3_a_run_splits_around_a_set_16() -> None:
    answer = takes_anywhere("4S 4D KC", "AH 2H 3H 4H 5H 6H 7H", "4C")
    assert answer == laying("4S", "4D", "4S 4D")


@pytest.mark.parametrize(
    ("face_up", "expected"), [("5H", laying("")), ("2H", laying("")), ("3H", laying())]
)
def test_rule_3_3_two_runs_give_to_a_set_17(face_up: str, expected: set[frozenset[str]]) -> None:
    assert takes_anywhere("KC QH", "2S 3S 4S 5S 2D 3D 4D 5D", face_up) == expected


def test_rule_1_5_nine_in_line_are_two_runs_18() -> None:
    assert takes_anywhere("KC 2S", "AH 2H 3H 4H 5H 6H 7H JH", "QH") == laying("")


# --- 5 Winning ---


@pytest.mark.parametrize("seat", [0, 1])
def test_rule_5_3_ten_down_declining_the_last_card_draws_19(seat: int) -> None:
    game = position("", TEN_DOWN, "KD", seat=seat, phase="offered")
    assert legal(game) == ["pass"]
    game = after(game, "pass")
    assert game.outcome == Outcome(None, Termination.STOCK)
    assert game.returns() == (0.0, 0.0)


@pytest.mark.parametrize("seat", [0, 1])
def test_rule_5_1_the_eleventh_card_wins_and_nothing_is_discarded_19(seat: int) -> None:
    game = position("", TEN_DOWN, "7H", seat=seat, phase="offered")
    assert legal(game) == ["pass", "take"]
    game = after(game, "take")
    assert game.outcome == Outcome(seat, Termination.OUT)
    assert game.returns() == ((1.0, -1.0) if seat == 0 else (-1.0, 1.0))
    assert set(game.table(seat)) == {*TEN_DOWN.split(), "7H"}
    assert (game.hand(seat), game.face_up, legal(game)) == ((), None, [])


def test_rule_5_2_ten_down_and_an_empty_hand_play_on_20() -> None:
    game = position("KH", "2S 3S 4S 5S AD 2D 3D 4D 5D", "6S", stock="JC 6D")
    assert takes(game) == laying("")
    game = after(game, "take")
    assert legal(game) == ["discard KH"]
    game = after(game, "discard KH")
    assert (game.hand(0), len(game.table(0)), game.is_over) == ((), 10, False)
    game = after(game, "pass", "pass")  # the king declined, the jack turned and passed
    assert (game.actor, game.face_up, legal(game)) == (0, "JC", ["pass"])
    game = after(game, "pass")
    assert (game.phase, game.face_up, legal(game)) == (Phase.TURNED, "6D", ["pass", "take"])
    assert after(game, "take").outcome == Outcome(0, Termination.OUT)


def test_rule_5_1_all_remaining_hand_cards_or_a_discard_21() -> None:
    hand, table = "KH KC", "2S 3S 4S 5S AD 2D 3D 4D"
    assert takes_anywhere(hand, table, "KS") == laying("KH KC")
    assert after(position(hand, table, "KS"), "take", "lay KH", "lay KC").outcome == Outcome(
        0, Termination.OUT
    )
    assert takes_anywhere(hand, table, "6S") == laying("")
    assert legal(after(position(hand, table, "6S"), "take")) == ["discard KC", "discard KH"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("AH 2H 3H 4H 5H 6H 7H JH KS KD KC", id="8+3"),
        pytest.param("AH 2H 3H 4H 5H 6H 7H KS KD KC KH", id="7+4"),
        pytest.param("2S 3S 4S 5S 6S AD 2D 3D 4D 5D 6D", id="5+6"),
        pytest.param("QS QD QC 3H 4H 5H AC 2C 3C 4C 5C", id="3+3+5"),
        pytest.param("2S 2H 2D 2C 7S 7H 7D 7C JS QS KS", id="4+4+3"),
    ],
)
@pytest.mark.parametrize("seat", [0, 1])
def test_rule_5_1_all_five_shapes_win_22(text: str, seat: int) -> None:
    for last in text.split():
        hand = [name for name in text.split() if name != last]
        game = position(" ".join(hand), "", last, seat=seat)
        game = after(game, "take", *(f"lay {name}" for name in hand[:-1]))
        assert not game.is_over
        game = after(game, f"lay {hand[-1]}")
        assert game.outcome == Outcome(seat, Termination.OUT)


def test_rule_5_1_a_whole_suit_and_a_king_are_no_win_22() -> None:
    suit = "AH 2H 3H 4H 5H 6H 7H JH QH KH"
    assert takes_anywhere("", suit, "KS") == laying()
    assert takes_anywhere(suit, "", "KS") == laying()


@pytest.mark.parametrize("seat", [0, 1])
def test_rule_5_1_the_winner_is_whoever_took_23(seat: int) -> None:
    game = position(
        "KH KC", "2S 3S 4S 5S AD 2D 3D 4D", "KS", seat=seat, other_table="QS QD QC 5H 6H 7H"
    )
    other = (game.hand(1 - seat), game.table(1 - seat))
    game = after(game, "take", "lay KH", "lay KC")
    assert game.outcome == Outcome(seat, Termination.OUT)
    assert game.returns()[seat] == 1.0
    assert sum(game.returns()) == 0.0
    assert (game.hand(1 - seat), game.table(1 - seat)) == other


def test_rule_5_1_a_table_of_eleven_ends_the_deal_23() -> None:
    rng = np.random.default_rng(23)
    wins = 0
    for number in range(100):
        game = Game("classic", seed=23, deal=number)
        while not game.is_over:
            assert max(len(game.table(0)), len(game.table(1))) <= 10
            actions = game.legal_actions()
            eager = [action for action in actions if PASS < action < DISCARD]
            game.apply(int(rng.choice(eager or actions)))
        sizes = [len(game.table(seat)) for seat in (0, 1)]
        winner = game.outcome.winner if game.outcome else None
        assert (max(sizes) == 11) == (winner is not None)
        if winner is not None:
            wins += 1
            assert (sizes[winner], game.hand(winner)) == (11, ())
    assert wins > 10


# --- 4 Forcing ---

FORCED = "2S 3S 4S 5S"
HAND = "7S AC 3D 5H JC KD"


@pytest.mark.parametrize("seat", [0, 1])
def test_rule_4_1_a_turned_card_that_fits_can_be_forced_24(seat: int) -> None:
    game = position(HAND, FORCED, "6S", seat=seat, stock="KH")
    asked = after(game, "pass")
    assert (asked.actor, asked.phase, asked.face_up) == (1 - seat, Phase.FORCE, "6S")
    assert legal(asked) == ["pass", "force"]
    forced = after(asked, "force")
    assert (forced.actor, forced.phase, forced.face_up) == (seat, Phase.MELD, None)
    assert set(forced.table(seat)) == {*FORCED.split(), "6S"}
    discards = [f"discard {name}" for name in game.hand(seat)]
    assert legal(forced) == ["lay 7S", *discards]  # 4.3: more may be laid
    done = after(forced, "lay 7S", "discard KD")
    assert (done.actor, done.phase, done.face_up) == (1 - seat, Phase.OFFERED, "KD")


def test_rule_4_5_without_insisting_the_turned_card_is_offered_24() -> None:
    game = after(position(HAND, FORCED, "6S", stock="KH"), "pass", "pass")
    assert (game.actor, game.phase, game.face_up) == (1, Phase.OFFERED, "6S")
    assert game.table(0) == tuple(FORCED.split())


@pytest.mark.parametrize("source", ["passed", "discarded"])
@pytest.mark.parametrize("seat", [0, 1])
def test_rule_4_2_an_offered_card_that_fits_can_be_forced_25(seat: int, source: str) -> None:
    game = position(HAND, FORCED, "6S", seat=seat, phase="offered", source=source, stock="KH")
    asked = after(game, "pass")
    assert (asked.actor, asked.phase, asked.face_up) == (1 - seat, Phase.FORCE, "6S")
    forced = after(asked, "force")
    assert (forced.actor, forced.phase) == (seat, Phase.MELD)
    assert "6S" in forced.table(seat)
    stands = after(asked, "pass")  # 4.5: dead as in 3.7
    assert "6S" in stands.dead
    assert (stands.actor, stands.phase, stands.face_up) == (seat, Phase.TURNED, "KH")


def test_rule_4_2_an_own_discard_is_forced_on_its_decliner_25() -> None:
    game = position(
        "6S 2H 2D AC 3D 5H JC KD 7D QH", "", "2C", other_table=FORCED, seat=1, stock="KH"
    )
    game = after(game, "take", "lay 2H", "lay 2D", "discard 6S", "pass")
    assert (game.actor, game.phase) == (1, Phase.FORCE)
    game = after(game, "force")
    assert (game.actor, game.table(0)) == (0, (*FORCED.split(), "6S"))


@pytest.mark.parametrize(
    ("phase", "source"), [("turned", "turned"), ("offered", "passed"), ("offered", "discarded")]
)
def test_rule_4_2_an_empty_table_is_never_forced_26(phase: str, source: str) -> None:
    hand = "2S 3S 4S 5S AC 3D 5H JC KD 7D"
    for force in ("optional", "auto"):
        rules = RuleSet(force=force)
        game = position(hand, "", "6S", phase=phase, source=source, stock="KH", rules=rules)
        assert legal(game) == ["pass", "take"]
        assert after(game, "pass").phase != Phase.FORCE


@pytest.mark.parametrize(
    ("phase", "source"), [("turned", "turned"), ("offered", "passed"), ("offered", "discarded")]
)
def test_rule_6_force_off_never_asks_and_force_auto_leaves_no_pass_26(
    phase: str, source: str
) -> None:
    off, auto = (
        position(
            HAND, FORCED, "6S", phase=phase, source=source, stock="KH", rules=RuleSet(force=force)
        )
        for force in ("off", "auto")
    )
    assert legal(off) == ["pass", "take"]
    assert after(off, "pass").phase in (Phase.TURNED, Phase.OFFERED)
    assert legal(auto) == ["take"]
    refused(auto, "pass", "absorbs 6S, which must be taken")


def test_rule_6_force_auto_leaves_the_pass_where_hand_cards_are_needed_26() -> None:
    rules = RuleSet(force="auto")
    game = position("JH QH AC 3D 5H JC", FORCED, "KH", rules=rules)
    assert takes(game) == laying("JH QH")
    assert legal(game) == ["pass", "take"]
    assert after(game, "pass").phase == Phase.OFFERED


@pytest.mark.parametrize(
    ("phase", "source", "asked"),
    [("turned", "turned", False), ("offered", "passed", False), ("offered", "discarded", True)],
)
def test_rule_6_force_source_discard_asks_for_a_discard_only_27(
    phase: str, source: str, asked: bool
) -> None:
    rules = RuleSet(force_source="discard")
    game = position(HAND, FORCED, "6S", phase=phase, source=source, stock="KH", rules=rules)
    assert (after(game, "pass").phase == Phase.FORCE) == asked
    must = RuleSet(force_source="discard", force="auto")
    game = position(HAND, FORCED, "6S", phase=phase, source=source, stock="KH", rules=must)
    assert legal(game) == (["take"] if asked else ["pass", "take"])


def test_rule_6_force_source_discard_follows_how_the_card_came_27() -> None:
    rules = RuleSet(force_source="discard")
    hand = "6S 2H 2D AC 3D 5H JC KD 7D QH"
    game = position(hand, "", "2C", other_table=FORCED, stock="KH", rules=rules)
    discarded = after(game, "take", "lay 2H", "lay 2D", "discard 6S")
    assert after(discarded, "pass").phase == Phase.FORCE
    game = position("2H 2D AC 3D 5H JC KD 7D QH KC", "", "6S", other_table=FORCED, rules=rules)
    passed = after(game, "pass")
    assert legal(passed) == ["pass", "take"]
    assert after(passed, "pass").phase == Phase.OVER


@pytest.mark.parametrize(("face_up", "asked"), [("5H", True), ("3H", False)])
def test_rule_4_1_rearranging_counts_28(face_up: str, asked: bool) -> None:
    game = position("KC QH", "2S 3S 4S 5S 2D 3D 4D 5D", face_up, phase="offered", stock="JC")
    assert (after(game, "pass").phase == Phase.FORCE) == asked


def test_rule_4_1_a_card_that_needs_hand_cards_cannot_be_forced() -> None:
    game = position("JH QH AC 3D 5H JC", FORCED, "KH", phase="offered", stock="JD")
    assert takes(game) == laying("JH QH")
    assert after(game, "pass").phase == Phase.TURNED


def test_rule_3_3_a_card_that_fits_twice_is_one_take_29() -> None:
    hand, table = "KD AH JS QH", "5S 5H 5D 2C 3C 4C"
    assert takes_anywhere(hand, table, "5C") == laying("")
    game = position(hand, table, "5C", stock="KS 6C")
    taken = after(game, "take")
    assert set(taken.table(0)) == {*table.split(), "5C"}
    assert after(game, "pass", "force").table(0) == taken.table(0)
    # Both readings stay open: the run can grow at either end, and the set can give its 5C.
    later = after(taken, "discard KD", "pass", "pass", "pass")
    assert (later.actor, later.face_up) == (0, "6C")
    assert takes(later) == laying("")
    assert takes_anywhere("AH JS QH", " ".join(taken.table(0)), "AC") == laying("")


@pytest.mark.parametrize("seat", [0, 1])
def test_rule_4_4_a_forced_card_that_completes_eleven_wins_for_the_forced(seat: int) -> None:
    game = after(position("", TEN_DOWN, "7H", seat=seat, stock="KH"), "pass", "force")
    assert game.outcome == Outcome(seat, Termination.OUT)
    assert game.returns()[seat] == 1.0
    hand_too = position("KS KC", "2S 3S 4S 5S AD 2D 3D 4D", "5D", seat=seat, stock="KH")
    forced = after(hand_too, "pass", "force")
    assert (forced.is_over, len(forced.table(seat))) == (False, 9)


# --- 5.3 End ---


@pytest.mark.parametrize("seat", [0, 1])
def test_rule_5_3_the_last_stock_card_is_offered_to_both_30(seat: int) -> None:
    game = after(position("KS KD 2C AC 3D 5H 7C 2H 4S 6D", "", "JH", seat=seat), "pass")
    assert (game.stock_count, game.actor, game.phase) == (0, 1 - seat, Phase.OFFERED)
    game = after(game, "pass")
    assert game.outcome == Outcome(None, Termination.STOCK)
    assert game.returns() == (0.0, 0.0)
    assert "JH" in game.dead


def test_rule_5_3_a_discard_after_the_last_stock_card_is_offered_30() -> None:
    game = position("6S 2H 2D AC 3D 5H JC KD 7D QH", "", "2C", other_table=FORCED)
    taken = after(game, "take", "lay 2H", "lay 2D")
    useless = after(taken, "discard KD")
    assert (useless.stock_count, useless.actor, useless.phase) == (0, 1, Phase.OFFERED)
    assert after(useless, "pass").outcome == Outcome(None, Termination.STOCK)


def test_rule_5_3_the_last_card_can_still_be_forced_before_the_draw_30() -> None:
    game = position("6S 2H 2D AC 3D 5H JC KD 7D QH", "", "2C", other_table=FORCED)
    asked = after(game, "take", "lay 2H", "lay 2D", "discard 6S", "pass")
    assert (asked.stock_count, asked.actor, asked.phase) == (0, 0, Phase.FORCE)
    assert after(asked, "force").phase == Phase.MELD
    assert after(asked, "pass").outcome == Outcome(None, Termination.STOCK)


@pytest.mark.parametrize("rules", [CLASSIC, STRICT])
@pytest.mark.parametrize("number", range(10))
def test_rule_5_3_everybody_passes_everything_31(rules: RuleSet, number: int) -> None:
    game = Game(rules, seed=31, deal=number)
    turned = [game.face_up]
    while not game.is_over:
        game.apply(PASS)
        if game.phase == Phase.TURNED:
            turned.append(game.face_up)
    assert (len(set(turned)), game.ply, game.stock_count) == (20, 40, 0)
    assert set(game.dead) == set(turned)
    assert game.outcome == Outcome(None, Termination.STOCK)
    assert game.returns() == (0.0, 0.0)
    assert json.loads(game.to_json())["winner"] is None


@pytest.mark.parametrize("skip_forced", [False, True])
def test_rule_5_3_everybody_passes_everything_in_a_batch_31(skip_forced: bool) -> None:
    batch = Batch(20, "classic", seed=31, skip_forced=skip_forced, autoreset=False)
    for _ in range(40):
        assert batch.mask[:, PASS].all()
        batch.step(np.full(20, PASS))
        assert not batch.reward.any()
    assert batch.done.all()
    assert (batch.ply == 40).all()
    for row in range(20):
        assert batch.game(row).outcome == Outcome(None, Termination.STOCK)


def test_rule_5_3_a_batch_deals_again_after_a_draw_31() -> None:
    batch = Batch(4, "classic", seed=31)
    for step in range(80):
        assert batch.deal.tolist() == [row + 4 * (step // 40) for row in range(4)]
        batch.step(np.zeros(4, np.int64))
        assert batch.done.tolist() == 4 * [step % 40 == 39]
    assert not batch.reward.any()


def test_rule_3_8_nobody_is_offered_what_he_discarded_or_passed() -> None:
    rng = np.random.default_rng(38)
    for number in range(100):
        game = Game("classic", seed=38, deal=number)
        refused_by: dict[int, set[str]] = {0: set(), 1: set()}
        while not game.is_over:
            seat, action, face_up = game.actor, int(rng.choice(game.legal_actions())), game.face_up
            if game.phase in (Phase.TURNED, Phase.OFFERED):
                assert face_up not in refused_by[seat]
            if action == PASS and game.phase != Phase.FORCE and face_up is not None:
                refused_by[seat].add(face_up)
            if action >= DISCARD:
                refused_by[seat].add(action_name(action).split()[1])
            assert action != FORCE or game.phase == Phase.FORCE
            game.apply(action)


# --- variants (section 6) ---


def test_rule_6_hand_melds_11_the_kings_can_be_laid_before_passing() -> None:
    game = Game.from_position(
        "bicycle",
        hands=("KS KD KC AH 3H 5H 7C 2D 4D 6D", "AC AD 2S 3C 3D 4H 5D 6H 7H JS"),
        face_up="QC",
        stock="4S 5S",
    )
    lays = {action_name(action) for action in game.legal_actions()}
    assert lays == {"pass", "lay KC", "lay KD", "lay KS"}
    game.apply(parse_action("lay KC"))
    assert {action_name(a) for a in game.legal_actions()} == {"lay KD", "lay KS"}
    game.apply(parse_action("lay KD"))
    game.apply(parse_action("lay KS"))
    assert game.melds(0) == (("KC", "KD", "KS"),)
    assert [action_name(action) for action in game.legal_actions()] == ["pass"]
    game.apply(parse_action("pass"))
    assert (game.phase, game.actor, game.face_up) == ("offered", 1, "QC")


def test_rule_6_exchange_each_gives_one_card_unseen() -> None:
    game = Game("mexican", seed=4)
    first, second = game.hand(0)[0], game.hand(1)[-1]
    assert (game.phase, game.face_up, game.stock_count) == ("give", None, 24)
    seen = game.view(1)
    game.apply(parse_action(f"discard {first}"))
    assert (game.phase, game.actor) == ("give", 1)
    assert first in game.hand(0)
    assert game.view(1).history == (GAVE,)
    assert game.view(1).unseen == seen.unseen
    assert game.view(1).received is None
    game.apply(parse_action(f"discard {second}"))
    assert (game.phase, game.actor, game.stock_count) == ("turned", 0, 23)
    assert first in game.hand(1)
    assert second in game.hand(0)
    assert [card_name(c) for c in game.view(0).known] == [first]
    assert [card_name(c) for c in game.view(1).known] == [second]
    assert (game.view(0).given, game.view(0).received) == (card(first), card(second))
    assert (game.view(1).given, game.view(1).received) == (card(second), card(first))


def test_rule_6_first_card_dealt_the_non_dealer_turns_after_both_refuse() -> None:
    for rules, turns_next in ((RuleSet(), 1), (RuleSet(first_card="dealt"), 0)):
        game = Game(rules, seed=2)
        game.apply(PASS)
        game.apply(PASS)
        assert (game.phase, game.actor) == ("turned", turns_next)
        game.apply(PASS)
        game.apply(PASS)
        assert game.actor == 1 - turns_next


def test_rule_6_no_hand_melds_on_a_dealt_first_card() -> None:
    hands = ("KS KD KC AH 3H 5H 7C 2D 4D 6D", "AC AD 2S 3C 3D 4H 5D 6H 7H JS")
    rest = "QH QD QS JC JD JH 2C 4C 5C 6C AS 2H 3S 4S 5S 6S 7D 7S KH"
    rules = RuleSet(first_card="dealt", hand_melds=True)
    first = Game.from_position(rules, hands=hands, face_up="QC", stock=rest)
    assert first.legal_actions() == [PASS]
    later = Game.from_position(rules, hands=hands, face_up="QC", stock=rest[3:])
    assert {action_name(a) for a in later.legal_actions()} >= {"pass", "lay KC"}


def test_rule_6_small_packs_remove_cards_unseen() -> None:
    rules = RuleSet(suits=3, ranks=5, deal=4, stock=3)
    game = Game(rules, seed=1)
    removed = json.loads(game.to_json())["removed"].split()
    assert len(removed) == 4
    assert {name[0] for name in removed} <= set("A2345")
    assert set(removed) <= {card_name(c) for c in game.view(0).unseen}
    assert len(game.view(0).unseen) == 4 + 2 + 4
