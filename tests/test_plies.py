"""The plies of a record in words, and what of their notes is understood."""

from itertools import pairwise
from typing import Any

import pytest

from conquian_env import Game, RuleSet, parse_action
from conquian_env.rules import PRESETS
from conquian_env.viewer.plies import MISTAKE, consequences, deed, rating
from tests import positions
from tests.playing import playthroughs

# --- notes ---


@pytest.mark.parametrize(
    "note",
    [
        {"unknown": "to the page"},
        {"means": 5, "values": [1], "agents": "x", "loss": "x", "value": "x"},
        {"means": {"take": "x", "no action": 1}, "values": {}, "agents": {"a": 3, "b": {"x": 1}}},
        {"agents": {"a": {"pass": 7}, "b": {"pass": True}, "c": {"pass": -1}}},
    ],
)
def test_notes_of_another_form_are_left_out(note: dict[str, Any]) -> None:
    game = Game("classic", seed=9)
    assert rating(game, 0, note) is None


def test_of_a_note_what_can_be_read_is_kept() -> None:
    game = Game("classic", seed=9)
    note = {"agents": {"me": {"pass": 0.25, "take": 0.75}, "it": None}, "means": {"take": 0.5}}
    assert rating(game, 1, note | {"value": None, "loss": MISTAKE}) == {
        "rows": [
            {"action": "pass", "played": False, "mean": None, "open": None, "agents": [0.25]},
            {"action": "take", "played": True, "mean": 0.5, "open": None, "agents": [0.75]},
        ],
        "agents": ["me"],
        "value": None,
        "loss": MISTAKE,
        "mistake": True,
    }


def test_values_are_told_from_the_actors_side() -> None:
    game = positions.offered()
    assert game.actor == 1
    rated = rating(game, 0, {"values": {"pass": 1, "take": -1}, "value": -1, "means": {}})
    assert rated is not None
    assert [row["open"] for row in rated["rows"]] == [-1, 1]
    assert rated["value"] == 1


# --- words ---


@pytest.mark.parametrize("rules", [*PRESETS, "classic,draw=double,deal=4", "classic,force=auto"])
def test_each_action_is_told_in_words_and_what_followed_too(rules: str) -> None:
    for before, after in pairwise(playthroughs(RuleSet.from_text(rules), 4, seed=2)):
        if after.ply != before.ply + 1:
            continue  # the next game
        new = after.history[len(before.history) :] if after.redeal == before.redeal else ()
        told = "; ".join(consequences(before, after))
        turns = [f"seat {event >> 7} turns" for event in new if 83 <= event & 127 < 123]
        assert all(turn in told for turn in turns)
        assert ("seat" in told or "draw" in told) == (
            bool(turns) or after.is_over or after.redeal > before.redeal
        )


def test_the_words_of_every_phase() -> None:
    assert deed(positions.position(), 0) == "passes 6S on"
    assert deed(positions.offered(), 0) == "declines 6S"
    assert deed(positions.offered(), 1) == "takes 6S"
    assert deed(positions.force(), 0) == "does not insist on 6S"
    assert deed(positions.force(), 2) == "insists on 6S"
    game = positions.meld()
    assert deed(game, parse_action("lay 4S")) == "lays 4S"
    gift = Game("mexican", seed=7)
    assert deed(gift, gift.legal_actions()[0]) == f"gives {gift.hand(0)[0]}"
