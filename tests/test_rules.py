"""Rule sets: presets, impossible fields, plain values."""

import dataclasses
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conquian_env
from conquian_env import Game, RuleSet
from conquian_env.errors import RuleSetError
from conquian_env.melds import combinations
from conquian_env.rules import PRESETS, rule_set

RULE_SETS = st.builds(
    RuleSet,
    seven_jack_adjacent=st.booleans(),
    deal=st.integers(2, 19),
    force=st.sampled_from(["optional", "off", "auto"]),
    force_source=st.sampled_from(["any", "discard"]),
)


def test_rule_6_the_defaults_are_classic() -> None:
    classic = RuleSet.preset("classic")
    assert classic == RuleSet()
    assert classic.seven_jack_adjacent is True
    assert (classic.deal, classic.force, classic.force_source) == (10, "optional", "any")


def test_rule_1_3_classic_1_1_lacks_the_seven_jack_step_and_nothing_else() -> None:
    assert RuleSet.preset("classic-1.1") == RuleSet(seven_jack_adjacent=False)


def test_every_preset_builds_and_no_two_are_equal() -> None:
    assert {"classic", "classic-1.1"} <= set(PRESETS)
    assert len({RuleSet.preset(name) for name in PRESETS}) == len(PRESETS)


@pytest.mark.parametrize(("deal", "target", "stock"), [(10, 11, 20), (8, 9, 24), (19, 20, 2)])
def test_rule_2_2_target_is_deal_plus_one(deal: int, target: int, stock: int) -> None:
    rules = RuleSet(deal=deal)
    assert (rules.target, rules.stock_size) == (target, stock)


def test_a_rule_set_is_frozen_and_hashable() -> None:
    rules = RuleSet()
    with pytest.raises(dataclasses.FrozenInstanceError):
        rules.deal = 9  # type: ignore[misc]
    assert len({rules, RuleSet(deal=10), RuleSet(deal=9)}) == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deal", 25),
        ("deal", 20),
        ("deal", 1),
        ("deal", 0),
        ("deal", -10),
        ("deal", True),
        ("deal", 10.0),
        ("deal", "10"),
        ("deal", None),
        ("force", "x"),
        ("force", "Auto"),
        ("force", True),
        ("force", None),
        ("force_source", "turned"),
        ("force_source", ""),
        ("seven_jack_adjacent", 1),
        ("seven_jack_adjacent", "yes"),
        ("seven_jack_adjacent", None),
    ],
)
def test_an_impossible_field_is_refused_by_name(field: str, value: object) -> None:
    values: dict[str, Any] = {field: value}
    with pytest.raises(RuleSetError, match=rf"^{field}\b.*{value}"):
        RuleSet(**values)
    with pytest.raises(RuleSetError, match=rf"^{field}\b"):
        RuleSet.from_dict(values)


@pytest.mark.parametrize("value", [True, 10.0, "10", None])
def test_a_deal_that_is_no_whole_number_is_refused_as_such(value: Any) -> None:
    with pytest.raises(RuleSetError, match=f"^deal must be a whole number, not {value!r}$"):
        RuleSet(deal=value)


def test_deals_from_two_cards_to_nineteen_are_accepted_and_no_others() -> None:
    for deal in range(-50, 51):
        if 2 <= deal <= 19:
            assert RuleSet(deal=deal).target == deal + 1
            continue
        with pytest.raises(RuleSetError, match=f"^deal={deal}: "):
            RuleSet(deal=deal)
        with pytest.raises(RuleSetError, match=f"^deal={deal}: "):
            RuleSet.from_text(f"classic,deal={deal}")


def test_an_unknown_preset_is_refused_and_the_known_are_named() -> None:
    with pytest.raises(RuleSetError, match=r"'clasic'.*classic, classic-1\.1"):
        RuleSet.preset("clasic")


def test_rule_set_takes_a_rule_set_or_its_text() -> None:
    rules = RuleSet(deal=9)
    assert rule_set(rules) is rules
    assert rule_set("classic-1.1") == RuleSet.preset("classic-1.1")
    assert Game("nano,force=off").rules == dataclasses.replace(rule_set("nano"), force="off")
    with pytest.raises(RuleSetError, match="11"):
        rule_set(11)  # type: ignore[arg-type]


@settings(derandomize=True, deadline=None)
@given(RULE_SETS)
def test_plain_values_round_trip_also_through_json(rules: RuleSet) -> None:
    values = rules.to_dict()
    assert set(values) == {field.name for field in dataclasses.fields(RuleSet)}
    assert RuleSet.from_dict(values) == rules
    assert RuleSet.from_dict(json.loads(json.dumps(values))) == rules


def test_missing_values_are_the_defaults() -> None:
    assert RuleSet.from_dict({}) == RuleSet()
    assert RuleSet.from_dict({"deal": 9}) == RuleSet(deal=9)


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(RuleSetError, match="'jokers'"):
        RuleSet.from_dict({"deal": 9, "jokers": 2})


@pytest.mark.parametrize("values", [None, 10, "classic", [("deal", 9)]])
def test_what_is_no_table_of_fields_is_refused(values: Any) -> None:
    with pytest.raises(RuleSetError, match="table of fields"):
        RuleSet.from_dict(values)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"suits": 5}, "suits=5 is outside 1 to 4"),
        ({"suits": 0}, "suits=0 is outside 1 to 4"),
        ({"ranks": 11}, "ranks=11 is outside 1 to 10"),
        ({"ranks": True}, "ranks must be a whole number, not True"),
        ({"suits": 2, "ranks": 5, "deal": 5}, "deal=5: two hands of 5 leave no stock in 10 cards"),
        ({"suits": 4, "ranks": 3, "deal": 4}, "deal=4: no table has the 5 cards needed to win"),
        (
            {"suits": 2, "ranks": 2, "deal": 1},
            "deal=1: a combination has three cards, so deal two or more",
        ),
        ({"stock": 0}, "stock must be from 1 to the 20 left, not 0"),
        ({"stock": 21}, "stock must be from 1 to the 20 left, not 21"),
        ({"stock": 2.0}, "stock must be from 1 to the 20 left, not 2.0"),
        ({"hand_melds": 1}, "hand_melds must be true or false, not 1"),
        ({"exchange": None}, "exchange must be true or false, not None"),
        ({"draw": "triple"}, "draw must be one of end, double, not 'triple'"),
        ({"lay_order": None}, "lay_order must be one of any, ascending, not None"),
        ({"max_deals": 3}, "max_deals=3 has no meaning without draw='double'"),
        (
            {"max_deals": 1, "draw": "double"},
            "max_deals must be a whole number from 2 to 7, not 1",
        ),
        (
            {"max_deals": 8, "draw": "double"},
            "max_deals must be a whole number from 2 to 7, not 8",
        ),
        (
            {"max_deals": 4.0, "draw": "double"},
            "max_deals must be a whole number from 2 to 7, not 4.0",
        ),
        ({"first_card": "open"}, "first_card must be one of turned, dealt, not 'open'"),
    ],
)
def test_what_cannot_be_played_is_refused_by_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(RuleSetError, match=f"^{message}$"):
        RuleSet(**fields)


def test_the_sizes_a_table_can_have_are_those_of_some_table() -> None:
    """Against every union of separate combinations in packs small enough to list them."""
    for suits, ranks, adjacent in itertools.product((1, 2, 3, 4), (2, 3, 4, 5), (True, False)):
        rules = RuleSet(suits=4, ranks=10, seven_jack_adjacent=adjacent)
        object.__setattr__(rules, "suits", suits)
        object.__setattr__(rules, "ranks", ranks)
        unions = {0}
        for combo in combinations(rules):
            unions |= {union | combo for union in unions if not union & combo}
        assert rules._table_sizes() == {union.bit_count() for union in unions}


def test_the_rules_tell_how_long_a_game_can_be() -> None:
    text = (Path(conquian_env.__file__).parent / "RULES.md").read_text()
    rows = re.findall(r"^\| `(\S+)` \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    bounds = [(name, RuleSet.preset(name)) for name in PRESETS]
    assert rows == [(name, str(r.max_offers), str(r.max_plies)) for name, r in bounds]
    assert RuleSet(draw="double").max_plies == 4 * 132


def test_the_presets_are_what_the_tables_play() -> None:
    assert RuleSet.preset("bicycle") == RuleSet(hand_melds=True, force_source="discard")
    assert RuleSet.preset("mexican") == RuleSet(deal=8, exchange=True, hand_melds=True)
    assert RuleSet.preset("nine") == RuleSet(deal=9)
    assert RuleSet.preset("mexican").stock_size == 24
    assert RuleSet(suits=3, ranks=4, deal=5, stock=2).stock_size == 2
