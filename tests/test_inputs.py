"""What a network is given, against a slow count in plain Python; its symmetries."""

import itertools
import math
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from agents.inputs import input_size, network_inputs, number_size, row_size
from agents.symmetry import ACTION_PLACES, OBSERVATION_PLACES
from conquian_env import Batch, Game, RuleSet
from conquian_env.actions import LAY, NUM_ACTIONS, TAKE
from conquian_env.cards import card_mask
from conquian_env.melds import combinations, legal_table
from conquian_env.observation import LAYOUT, OBSERVATION_SIZE, PIECES
from tests.playing import playthroughs
from tests.positions import HAND_0, HAND_1, meld, position
from tests.test_ways import slow_ways

CARD_PIECES = [piece.name for piece in PIECES if piece.size == 40]
CARDS_END = 10 * 40
WAY_PIECES = [f"{kind} {k}" for kind in ("now", "taking") for k in range(4)]
WAY_PIECES += ["laid", "left", "near laid", "near left", "links", "absorbed"]
PLACES = {name: k for k, name in enumerate([*CARD_PIECES, *WAY_PIECES])}
ROW = 240
NUMBERS = 4 * ROW  # where they begin
TOTALS = NUMBERS + 16  # of ways now and taking, and the best hope
WORTH = (4.0, 2.0, 0.45, 0.15)


def inputs_of(game: Game, ways: bool = True) -> NDArray[np.uint8]:
    observation, mask = game.observation(game.actor)[None], game.legal_mask()[None]
    return network_inputs(observation, mask, game.rules, ways)[0]


def by_card(inputs: NDArray[np.uint8], piece: str) -> list[int]:
    """Forty numbers, one a card, of a piece."""
    return inputs[:NUMBERS].reshape(4, 24, 10)[:, PLACES[piece]].flatten().tolist()


def logarithm(count: float) -> int:
    return min(255, round(16 * math.log2(1 + count)))


def slow_inputs(game: Game, ways: bool) -> list[int]:
    """The layout of the docstring, card by card."""
    observation = game.observation(game.actor).tolist()
    pieces = [observation[LAYOUT[name]] for name in CARD_PIECES]
    more, totals = way_inputs(game) if ways else ([], [])
    rows = [
        piece[10 * suit + rank]
        for suit in range(4)
        for piece in pieces + more
        for rank in range(10)
    ]
    return rows + observation[CARDS_END:] + totals


def way_inputs(game: Game) -> tuple[list[list[int]], list[int]]:
    """What is counted of each card, and of all ways."""
    rules, view, may_take = game.rules, game.view(game.actor), TAKE in game.legal_actions()
    own, table, unseen = {*view.hand, *view.table}, set(view.table), set(view.unseen)
    face_up = {view.face_up} - {None}
    now = slow_ways(rules, own, table, unseen)
    taking = slow_ways(rules, own | face_up, table | face_up, unseen) if may_take else {}
    after = taking if may_take else {} if face_up else now
    down = card_mask(table | face_up if may_take else table)
    turns = list(possible_turns(rules, down, view.hand, after))
    stock_left = int(game.observation(game.actor)[LAYOUT["stock_left"]][0])
    chance = (stock_left + 1) / (len(unseen) + 1)
    counted = [
        [logarithm(len([m for m in holding(some, c).values() if m == missing])) for c in range(40)]
        for some in (now, taking)
        for missing in range(4)
    ]
    laid = [best((ways for laid, _, ways in turns if c in laid), chance) for c in range(40)]
    left = [best((ways for _, discard, ways in turns if discard == c), chance) for c in range(40)]
    top = best((ways for *_, ways in turns), chance)
    counted += [[logarithm(64 * hope) for hope in hopes] for hopes in (laid, left)]
    counted += [[nearness(hope, top) for hope in hopes] for hopes in (laid, left)]
    live = {*view.hand, *unseen, *face_up}
    numbers = [links(rules, c, own, unseen) if c in live else 0 for c in range(40)]
    counted.append([logarithm(n) for n in numbers])
    theirs = card_mask(view.other_table)
    counted.append(
        [int(c in live and theirs > 0 and legal_table(theirs | 1 << c, rules)) for c in range(40)]
    )
    totals = [
        logarithm(len([m for m in some.values() if m == missing]))
        for some in (now, taking)
        for missing in range(4)
    ]
    return counted, [*totals, logarithm(64 * top)]


def nearness(hope: float, top: float) -> int:
    """64 for the best; nothing below 84 % of it."""
    return max(0, 64 - round(256 * math.log2(top / hope))) if hope else 0


def holding(ways: dict[int, int], card: int) -> dict[int, int]:
    return {way: missing for way, missing in ways.items() if way >> card & 1}


def possible_turns(
    rules: RuleSet, down: int, hand: tuple[int, ...], ways: dict[int, int]
) -> Iterator[tuple[set[int], int, dict[int, int]]]:
    """What is laid, what is discarded, and the ways that are left."""
    for laid in itertools.chain.from_iterable(
        itertools.combinations(hand, k) for k in range(len(hand) + 1)
    ):
        table = down | card_mask(laid)
        if legal_table(table, rules):
            for discard in set(hand) - set(laid):
                left = {w: m for w, m in ways.items() if table & ~w == 0 and not w >> discard & 1}
                yield set(laid), discard, left


def best(turns: Iterable[dict[int, int]], chance: float) -> float:
    """The hope in the ways that the best turn leaves."""
    return max((sum(WORTH[m] * chance**m for m in left.values()) for left in turns), default=0.0)


def links(rules: RuleSet, card: int, own: set[int], unseen: set[int]) -> int:
    total = 0
    for combo in combinations(rules):
        rest = {c for c in range(40) if combo >> c & 1} - {card}
        if combo.bit_count() == 3 and combo >> card & 1 and rest <= own | unseen:
            total += (1, 6, 25)[len(rest & own)]
    return total


@pytest.mark.parametrize(("name", "every"), [("classic", 11), ("mexican", 7), ("micro", 2)])
def test_the_inputs_are_as_described_in_every_phase(name, every):
    seen = set()
    for number, game in enumerate(playthroughs(name, games=12, seed=3)):
        if number % every == 0 and not game.is_over:
            assert inputs_of(game).tolist() == slow_inputs(game, ways=True)
            assert inputs_of(game, ways=False).tolist() == slow_inputs(game, ways=False)
            seen.add((str(game.phase), TAKE in game.legal_actions()))
    assert seen >= {("turned", True), ("turned", False), ("offered", False), ("meld", False)}


def test_sizes():
    assert (row_size(False), row_size(True)) == (100, ROW)
    assert (number_size(False), number_size(True)) == (16, 25)
    assert (input_size(False), input_size(True)) == (416, TOTALS + 9)


def test_ways_of_a_position_counted_by_hand():
    """Of five cards 6S 4S 5S are on the table or at hand; 2H 2D 2C make six with them."""
    rules = RuleSet(deal=5)
    hands = ("AC AD AS 3C 3D", "4S 5S 2H 2D 2C")
    game = meld(rules=rules, hands=hands, stock="KC KH")
    inputs = inputs_of(game)
    assert by_card(inputs, "now 0") == [16 * (c in {1, 11, 21, 33, 34, 35}) for c in range(40)]
    assert not any(any(by_card(inputs, f"now {k}")) for k in (1, 2, 3))


def test_what_a_turn_leaves_counted_by_hand():
    """4S 5S 6S and two of three twos, which cannot be laid: with the king gone the way stays.

    Two of seven unseen cards are in the stock, and one will be discarded: the chance that the
    third two comes is 3 in 8, the hope 2 x 3 / 8.
    """
    hands = ("AC AD AS 3C 3D", "4S 5S 2H 2D KC")
    inputs = inputs_of(meld(rules=RuleSet(deal=5), hands=hands, stock="2C KH"))
    laid, king, hope = {33, 34}, 9, logarithm(64 * 2 * 3 / 8)
    assert by_card(inputs, "left") == [hope * (c == king) for c in range(40)]
    assert by_card(inputs, "laid") == [hope * (c in laid) for c in range(40)]
    assert by_card(inputs, "near left") == [64 * (c == king) for c in range(40)]
    assert by_card(inputs, "near laid") == [64 * (c in laid) for c in range(40)]
    assert inputs[TOTALS:].tolist() == [0, 16, 0, 0] + [0] * 4 + [hope]


def test_the_best_discard_leaves_most_ways():
    """Without 2H there are AD 2D 3D and 2D 3D 4D, without 3D only 2C 2D 2H."""
    hands = ("KC KD KH QC QD", "4S 5S 2H 2D 3D")
    inputs = inputs_of(meld(rules=RuleSet(deal=5), hands=hands, stock="2C AD 4D"))
    one = 64 * 2 * 4 / 9  # four in nine is the chance
    left, near = by_card(inputs, "left"), by_card(inputs, "near left")
    expected = [logarithm(2 * one), logarithm(one), 0, 0, 0]
    assert [left[c] for c in (21, 12, 11, 33, 34)] == expected
    assert [near[c] for c in (21, 12, 11, 33, 34)] == [64, 0, 0, 0, 0]
    assert inputs[TOTALS:].tolist() == [0, 32, 0, 0] + [0] * 4 + [logarithm(2 * one)]


def test_taking_counts_with_the_card_on_offer():
    rules = RuleSet(deal=5)
    hands = ("4S 5S 2H 2D 2C", "AC AD AS 3C 3D")
    inputs = inputs_of(position(rules=rules, hands=hands, stock="KC KH"))
    assert not any(by_card(inputs, "now 0"))
    assert [c for c, n in enumerate(by_card(inputs, "taking 0")) if n] == [1, 11, 21, 33, 34, 35]


def test_what_may_not_be_taken_has_no_ways():
    game = position(hands=(HAND_0.replace("5S", "5C"), HAND_1))
    assert TAKE not in game.legal_actions()
    assert not any(any(by_card(inputs_of(game), f"taking {k}")) for k in range(4))


def test_a_card_that_the_other_table_takes_in_is_absorbed():
    hands = ("3H 5S 2H 2D 2C KD QC JD 7C AH", "AC AD AS 3C 3D JS")
    game = position(hands=hands, tables=("", "4H 5H 6H 7H"), stock="JH KH QH")
    absorbed = [c for c, n in enumerate(by_card(inputs_of(game), "absorbed")) if n]
    assert absorbed == [22, 27]  # 3H and JH


@pytest.fixture(scope="module")
def decisions() -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    batch, rng = Batch(64, seed=4, skip_forced=True), np.random.default_rng(0)
    for _ in range(12):
        batch.step(batch.sample_actions(rng))
    return batch.observation.copy(), batch.mask.copy()


def places(size: int, start: int, end: int, suits: tuple[int, ...]) -> NDArray[np.int64]:
    """Places 0..size-1 with every block of 4 x 10 from start to end in another order of suits."""
    out = np.arange(size)
    out[start:end] = out[start:end].reshape(-1, 4, 10)[:, list(suits)].ravel()
    return out


def test_permuting_the_suits_moves_the_rows_only(decisions):
    observation, mask = decisions
    plain = network_inputs(observation, mask, RuleSet(), True)
    for suits in itertools.permutations(range(4)):
        seen = observation[:, places(OBSERVATION_SIZE, 0, CARDS_END, suits)]
        may = mask[:, places(NUM_ACTIONS, LAY, NUM_ACTIONS, suits)]
        moved = network_inputs(seen, may, RuleSet(), True)
        rows = plain[:, :NUMBERS].reshape(-1, 4, ROW)[:, list(suits)].reshape(-1, NUMBERS)
        np.testing.assert_array_equal(moved, np.concatenate([rows, plain[:, NUMBERS:]], 1))


def test_reversing_the_ranks_reverses_each_piece(decisions):
    observation, mask = decisions
    plain = network_inputs(observation, mask, RuleSet(), True)
    turned = network_inputs(
        observation[:, OBSERVATION_PLACES], mask[:, ACTION_PLACES], RuleSet(), True
    )
    backwards = plain[:, :NUMBERS].reshape(-1, 10)[:, ::-1].reshape(-1, NUMBERS)
    np.testing.assert_array_equal(turned, np.concatenate([backwards, plain[:, NUMBERS:]], 1))


def test_it_writes_to_what_it_is_given(decisions):
    out = np.full((64, input_size(False)), 77, np.uint8)
    assert network_inputs(*decisions, RuleSet(), False, out) is out
    np.testing.assert_array_equal(out[:, CARDS_END:], decisions[0][:, CARDS_END:])
