"""The 83 actions and the public events, by id and by name."""

import pytest

from conquian_env import action_name, card_name, parse_action
from conquian_env.actions import (
    DISCARD,
    FORCE,
    LAY,
    NUM_ACTIONS,
    PASS,
    SEAT_FLAG,
    TAKE,
    TURN,
    event_text,
)
from conquian_env.errors import CardError, IllegalActionError


def test_the_83_ids_are_pinned() -> None:
    assert (PASS, TAKE, FORCE, LAY, DISCARD, NUM_ACTIONS) == (0, 1, 2, 3, 43, 83)


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (0, "pass"),
        (1, "take"),
        (2, "force"),
        (3, "lay AC"),
        (19, "lay 7D"),
        (42, "lay KS"),
        (43, "discard AC"),
        (59, "discard 7D"),
        (82, "discard KS"),
    ],
)
def test_names_of_actions(action: int, name: str) -> None:
    assert action_name(action) == name
    assert parse_action(name) == action


def test_every_action_has_its_own_name_that_parses_back() -> None:
    names = [action_name(action) for action in range(83)]
    assert len(set(names)) == 83
    assert [parse_action(name) for name in names] == list(range(83))
    assert names[3:43] == [f"lay {card_name(card_id)}" for card_id in range(40)]
    assert names[43:] == [f"discard {card_name(card_id)}" for card_id in range(40)]


@pytest.mark.parametrize("action", [-1, 83, 1000])
def test_what_is_no_action_id_is_refused_by_name(action: int) -> None:
    with pytest.raises(IllegalActionError, match=f"unknown action {action}:"):
        action_name(action)


@pytest.mark.parametrize(
    "text", ["fold", "Pass", "pass 7D", "take 7D", "lay", "discard", "lay 7D JD", "7D", "16"]
)
def test_what_is_no_action_name_is_refused_by_name(text: str) -> None:
    with pytest.raises(IllegalActionError, match=f"unknown action '{text}'"):
        parse_action(text)


@pytest.mark.parametrize("text", ["lay 8S", "discard joker"])
def test_a_known_verb_with_no_card_is_refused_by_the_card(text: str) -> None:
    with pytest.raises(CardError, match=text.split()[1]):
        parse_action(text)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (PASS, "seat 0 pass"),
        (SEAT_FLAG + FORCE, "seat 1 force"),
        (SEAT_FLAG + DISCARD + 16, "seat 1 discard 7D"),
        (LAY + 39, "seat 0 lay KS"),
        (TURN, "seat 0 turn AC"),
        (SEAT_FLAG + TURN + 39, "seat 1 turn KS"),
    ],
)
def test_an_event_is_told_in_words(event: int, text: str) -> None:
    assert event_text(event) == text
    assert 0 <= event <= 255
