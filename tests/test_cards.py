"""Cards by name, by id and by bit (rules 1.1 and 1.2)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conquian_env import card, card_name, cards
from conquian_env.cards import PACK, bit, card_ids, card_mask, card_names, count, lowest
from conquian_env.errors import CardError
from conquian_env.jit import jit

ALL = [rank + suit for suit in "CDHS" for rank in "A234567JQK"]


def test_rule_1_1_forty_cards_are_numbered_suit_by_suit() -> None:
    assert [card_name(card_id) for card_id in range(40)] == ALL
    assert [card(name) for name in ALL] == list(range(40))
    assert bin(PACK) == "0b" + 40 * "1"


@pytest.mark.parametrize(("name", "card_id"), [("AC", 0), ("7D", 16), ("JH", 27), ("KS", 39)])
def test_rule_1_1_card_id_is_ten_times_suit_plus_rank(name: str, card_id: int) -> None:
    assert card(name) == card_id
    assert card_name(card_id) == name


def test_cards_keep_the_order_written() -> None:
    assert cards("KS  AC\n7D") == (39, 0, 16)
    assert cards("") == ()


@pytest.mark.parametrize(
    "text", ["8S", "9D", "TC", "10H", "joker", "7", "SS", "S7", "7d", "7D ", "", "7DD"]
)
def test_rule_1_1_what_is_no_card_is_refused_by_name(text: str) -> None:  # situation 5
    with pytest.raises(CardError, match=f"unknown card '{text}'"):
        card(text)


def test_one_wrong_word_among_cards_is_refused_by_name() -> None:
    with pytest.raises(CardError, match="'8S'"):
        cards("7S 8S JS")


@pytest.mark.parametrize("card_id", [-1, 40])
def test_what_is_no_card_id_is_refused_by_name(card_id: int) -> None:
    with pytest.raises(CardError, match=f"unknown card id {card_id}:"):
        card_name(card_id)


def test_a_card_that_comes_twice_is_refused_by_name() -> None:
    with pytest.raises(CardError, match="4S"):
        card_mask(cards("4S 4H 4S"))


def test_card_errors_are_value_errors() -> None:
    with pytest.raises(ValueError, match="8S"):
        card("8S")


@settings(derandomize=True, deadline=None)
@given(st.sets(st.integers(0, 39)))
def test_masks_and_ids_are_inverse(ids: set[int]) -> None:
    mask = card_mask(ids)
    assert mask == sum(2**card_id for card_id in ids)
    assert card_ids(mask) == card_ids(np.int64(mask)) == tuple(sorted(ids))  # type: ignore[arg-type]
    assert card_names(mask) == tuple(ALL[card_id] for card_id in sorted(ids))


@jit
def compiled(mask: int) -> tuple[int, int]:
    """Where ``count`` and ``lowest`` are instructions of the processor."""
    return count(mask), lowest(mask)


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 2**62 - 1))
def test_how_many_bits_and_the_place_of_the_lowest(mask: int) -> None:
    expected = mask.bit_count(), min(place for place in range(62) if mask >> place & 1)
    assert (count(mask), lowest(mask)) == compiled(mask) == expected
    assert compiled(np.int64(mask)) == compiled(np.uint64(mask)) == expected  # type: ignore[arg-type]


def test_count_and_lowest_of_every_single_bit_and_every_prefix() -> None:
    for place in range(1, 62):
        assert compiled(1 << place) == (1, place)
        assert compiled((1 << place) - 1) == (place, 0)
    assert count(0) == 0


@pytest.mark.parametrize("card_id", range(40))
def test_bit_does_not_overflow_small_integers(card_id: int) -> None:
    assert bit(card_id) == bit(np.int8(card_id)) == 2**card_id  # type: ignore[arg-type]
