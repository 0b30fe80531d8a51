"""Combinations and tables: the numbers of rule 1.6, and three other ways to reach them.

The numbers are computed from the package's combinations; what the engine says of single tables is
compared with unions of combinations made here and with ``tests/oracle.py``.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conquian_env import RuleSet
from conquian_env.cards import PACK, card_ids, card_mask, cards
from conquian_env.melds import (
    can_complete,
    combinations,
    is_legal_table,
    legal_table,
    meldable,
    reach,
    rulebook,
    split,
    split_most,
)
from tests import oracle

CLASSIC, STRICT = RuleSet.preset("classic"), RuleSet.preset("classic-1.1")
BOTH = pytest.mark.parametrize("rules", [CLASSIC, STRICT], ids=["classic", "classic-1.1"])
RULES = st.sampled_from([CLASSIC, STRICT])


@cache
def tables(rules: RuleSet, size: int) -> NDArray[np.int64]:
    """All legal tables of ``size`` cards, as unions of separate combinations, ascending."""
    found = np.zeros(1, np.int64)
    for combo in combinations(rules):
        grown = found[found & combo == 0] | combo
        found = np.union1d(found, grown[np.bitwise_count(grown) <= 11])
    chosen: NDArray[np.int64] = found[np.bitwise_count(found) == size]
    return chosen


def ids(mask: int) -> frozenset[int]:
    return frozenset(card_ids(mask))


def oracle_says(mask: int, rules: RuleSet) -> bool:
    return oracle.legal_table(ids(mask), rules.seven_jack_adjacent)


def unions_inside(window: int, rules: RuleSet) -> set[int]:
    """Every legal table of the cards of ``window``, by adding one combination after another."""
    found = {0}
    for combo in combinations(rules):
        if combo & ~window == 0:
            found |= {table | combo for table in found if table & combo == 0}
    return found


@st.composite
def windows(draw: st.DrawFn) -> int:
    """Up to three combinations and some more cards: 0 to 20 in all."""
    combos = draw(st.lists(st.sampled_from(combinations(CLASSIC)), max_size=3))
    window = card_mask(draw(st.sets(st.integers(0, 39), max_size=8)))
    for combo in combos:
        if (window | combo).bit_count() <= 20:
            window |= combo
    return window


# --- rule 1.6 ---


def test_rule_1_6_182_combinations() -> None:
    masks = combinations(CLASSIC)
    assert len(masks) == len(set(masks)) == 182
    one_suit = [mask for mask in masks if len({card // 10 for card in card_ids(mask)}) == 1]
    sets = [mask for mask in masks if len({card % 10 for card in card_ids(mask)}) == 1]
    assert Counter(mask.bit_count() for mask in sets) == {3: 40, 4: 10}
    assert Counter(mask.bit_count() for mask in one_suit) == dict(
        zip(range(3, 9), (32, 28, 24, 20, 16, 12), strict=True)
    )


@BOTH
def test_rule_1_4_the_combinations_are_the_oracles(rules: RuleSet) -> None:
    assert {ids(mask) for mask in combinations(rules)} == set(
        oracle.combinations(rules.seven_jack_adjacent)
    )


def test_rule_1_6_without_the_seven_jack_step_114_combinations() -> None:
    assert len(set(combinations(STRICT))) == len(combinations(STRICT)) == 114
    step = card_mask(cards("7H JH"))
    over_it = {mask for mask in combinations(CLASSIC) if mask & step == step}
    assert 4 * len(over_it) == 182 - 114
    assert over_it.isdisjoint(combinations(STRICT))


@pytest.mark.parametrize(("rules", "number"), [(CLASSIC, 43_344), (STRICT, 17_472)])
def test_rule_1_6_winning_tables(rules: RuleSet, number: int) -> None:
    winning = tables(rules, 11).tolist()
    assert len(winning) == number
    assert all(legal_table(table, rules) for table in winning)


def test_rule_1_6_ten_card_tables_by_the_cards_that_extend_them() -> None:
    ten = tables(CLASSIC, 10).tolist()
    assert len(ten) == 45_176
    assert all(legal_table(table, CLASSIC) for table in ten)
    extensions = dict.fromkeys(ten, 0)
    for table in ten:
        for card in card_ids(PACK & ~table):
            extensions[table] += legal_table(table | 1 << card, CLASSIC)
    how_often = Counter(extensions.values())
    assert (how_often[0], how_often[1]) == (4, 624)
    closed = [table for table, cards_left in extensions.items() if cards_left == 0]
    assert closed == [1023 << 10 * suit for suit in range(4)]
    # The other way round: a winning table less a card is one of these or no table at all.
    taken_off = np.array([w & ~(1 << c) for w in tables(CLASSIC, 11).tolist() for c in card_ids(w)])
    known = np.isin(taken_off, tables(CLASSIC, 10))
    assert int(known.sum()) == sum(extensions.values())


# --- one table at a time ---


@BOTH
@pytest.mark.parametrize("size", [10, 11])
def test_rule_1_5_the_oracle_calls_every_union_legal(rules: RuleSet, size: int) -> None:
    for table in tables(rules, size).tolist():
        assert oracle_says(table, rules), card_ids(table)


@BOTH
def test_rule_1_5_one_card_changed_agrees_with_the_oracle(rules: RuleSet) -> None:
    rng = np.random.default_rng(15)
    verdicts: Counter[bool] = Counter()
    for table in rng.choice(tables(rules, 11), 3000).tolist():
        gone, come = rng.choice(card_ids(table)), rng.choice(card_ids(PACK & ~table))
        changed = table & ~(1 << int(gone)) | 1 << int(come)
        legal = legal_table(changed, rules)
        assert legal == oracle_says(changed, rules), card_ids(changed)
        assert legal == (changed in tables(rules, 11)), card_ids(changed)
        verdicts[legal] += 1
    assert min(verdicts[True], verdicts[False]) > 50


@settings(derandomize=True, deadline=None, max_examples=500)
@given(windows(), RULES)
def test_rule_1_5_random_cards_agree_with_the_oracle(cards_: int, rules: RuleSet) -> None:
    assert legal_table(cards_, rules) == oracle_says(cards_, rules)
    assert legal_table(cards_, rules) == (cards_ in unions_inside(cards_, rules))


def test_rule_1_5_no_cards_are_a_legal_table() -> None:
    assert legal_table(0, CLASSIC)
    assert split(0, CLASSIC) == ()


@pytest.mark.parametrize("length", range(1, 11))
def test_rule_1_5_any_three_or_more_cards_in_line(length: int) -> None:
    line = (1 << length) - 1
    assert legal_table(line, CLASSIC) == (length >= 3)
    assert (line in combinations(CLASSIC)) == (3 <= length <= 8)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(windows(), RULES)
def test_split_cuts_a_table_into_combinations(table: int, rules: RuleSet) -> None:
    groups = split(table, rules)
    assert (groups is None) == (table not in unions_inside(table, rules))
    if groups is not None:
        assert sorted(card for group in groups for card in group) == list(card_ids(table))
        assert {card_mask(group) for group in groups} <= set(combinations(rules))
        assert all(group == tuple(sorted(group)) for group in groups)


@BOTH
def test_split_finds_a_way_for_winning_tables(rules: RuleSet) -> None:
    for table in tables(rules, 11)[::20].tolist():
        groups = split(table, rules)
        assert groups is not None
        assert sorted(card for group in groups for card in group) == list(card_ids(table))
        assert {card_mask(group) for group in groups} <= set(combinations(rules))


@settings(derandomize=True, deadline=None, max_examples=300)
@given(windows(), RULES)
def test_split_most_covers_what_can_be_covered(table: int, rules: RuleSet) -> None:
    groups, loose = split_most(table, rules)
    assert sorted([*loose, *(card for group in groups for card in group)]) == list(card_ids(table))
    assert all(card_mask(group) in combinations(rules) for group in groups)
    most = max(union.bit_count() for union in unions_inside(table, rules))
    assert sum(map(len, groups)) == most
    if not loose:
        assert groups == split(table, rules)


# --- what can become a table ---


@settings(derandomize=True, deadline=None, max_examples=500)
@given(windows(), RULES)
def test_meldable_is_the_union_of_the_combinations_inside(window: int, rules: RuleSet) -> None:
    union = 0
    for combo in combinations(rules):
        if combo & ~window == 0:
            union |= combo
    assert meldable(window, int(rulebook(rules)["run_starts"][0])) == union


@settings(derandomize=True, deadline=None, max_examples=1000)
@given(windows(), st.sets(st.integers(0, 39), max_size=3), st.booleans(), RULES)
def test_rule_3_2_reach_is_the_union_of_the_tables_that_hold_the_core(
    window: int, wanted: set[int], largest: bool, rules: RuleSet
) -> None:
    inside = unions_inside(window, rules)
    core = card_mask(wanted) & window | (max(inside) if largest else 0)
    union = -1
    for table in inside:
        if core & ~table == 0:
            union = max(union, 0) | table
    assert reach(core, window, rulebook(rules)[0]) == union
    assert can_complete(core, window & ~core, rules) == (union >= 0)
    assert is_legal_table(core, rulebook(rules)[0]) == (core in inside)
    assert oracle.can_grow(ids(core), ids(window & ~core), rules.seven_jack_adjacent) == (
        union >= 0
    )


@BOTH
def test_a_rulebook_lists_for_each_card_the_combinations_that_hold_it(rules: RuleSet) -> None:
    book = rulebook(rules)
    for card in range(40):
        listed = [mask for mask in book["melds_with"][0, card].tolist() if mask]
        assert sorted(listed) == sorted(m for m in combinations(rules) if m >> card & 1)
        assert book["melds_with"][0, card, len(listed)] == 0
    assert not book.flags.writeable
