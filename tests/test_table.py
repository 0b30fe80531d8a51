"""The table that pages draw: what can be done is a button in its place, and says what it does."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from conquian_env import Game
from conquian_env.actions import action_name
from conquian_env.viewer import asset, picture, sprite
from tests.playing import playthroughs


def board(game: Game, script: str) -> str:
    view = json.dumps(picture(game.view(game.actor)))
    return (
        f"<!DOCTYPE html><meta charset=utf-8><style>{asset('table.css')}</style>{sprite()}"
        f"<main></main><script>{asset('table.js')}</script>"
        f"<script>const view = {view}, chosen = [];{script}</script>"
    )


CHOICES = """
const draw = () => drawTable(document.querySelector("main"), view, null,
  { actions: view.legal_actions, choose: id => { chosen.push(id); draw(); } });
draw();"""


def states(rules: str, wanted: Callable[[Game], bool]) -> Game:
    return next(game for game in playthroughs(rules, 30, seed=1) if wanted(game))


@pytest.mark.parametrize("phase", ["give", "turned", "offered", "meld", "force"])
def test_each_legal_action_is_a_button_named_in_words(open_tab: Any, phase: str) -> None:
    game = states("mexican", lambda game: game.phase == phase and len(game.legal_actions()) > 1)
    page = open_tab(board(game, CHOICES)).page
    buttons = page.locator("button").all()
    legal = game.legal_actions()
    assert sorted(int(button.get_attribute("data-action")) for button in buttons) == legal
    for button in buttons:
        name = action_name(int(button.get_attribute("data-action")))
        words = {
            "take": f"take {game.face_up}", "force": f"insist on {game.face_up}",
        }.get(name, name.replace("discard", "give") if phase == "give" else name)  # fmt: skip
        assert button.get_attribute("aria-label") == words
        assert button.get_attribute("data-verb") == words.split()[0].replace("insist", "force")
        slot = button.locator("xpath=ancestor::*[contains(@class, 'slot')]")
        assert slot.count() == (" " in name)
        button.click()
    assert sorted(page.evaluate("chosen")) == legal
    page.locator("button").first.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")  # the focus is kept though all was drawn anew
    assert len(page.evaluate("chosen")) == len(legal) + 2


def test_a_card_that_can_be_laid_or_discarded_has_a_button_for_each(open_tab: Any) -> None:
    def both(game: Game) -> bool:
        names = {action_name(action).split()[-1] for action in game.legal_actions()}
        return game.phase == "meld" and len(names) < len(game.legal_actions())

    game = states("classic", both)
    page = open_tab(board(game, CHOICES)).page
    legal = [action_name(action) for action in game.legal_actions()]
    card = next(name[4:] for name in legal if name[:4] == "lay " and f"discard {name[4:]}" in legal)
    slot = page.locator(f"[data-place=own-hand] .slot[data-card='{card}']")
    assert [button.inner_text() for button in slot.locator("button").all()] == ["lay", "discard"]
    slot.locator(".card").click()
    assert page.evaluate("chosen") == []  # which of the two is not said
    single = page.locator(".slot.usable .card").first
    single.click()
    assert len(page.evaluate("chosen")) == 1


@pytest.mark.parametrize("rules", ["classic", "mexican"])
def test_a_picture_has_the_values_of_the_view(rules: str) -> None:
    for game in playthroughs(rules, 1, seed=4):
        view = game.view(1)
        drawn, saved = json.loads(json.dumps(picture(view))), json.loads(view.to_json())
        assert {name: drawn[name] for name in saved} == saved
        for table, melds, loose in (
            ("table", "melds", "loose"), ("other_table", "other_melds", "other_loose"),
        ):  # fmt: skip
            laid = [card for group in [*drawn[melds], drawn[loose]] for card in group]
            assert sorted(laid) == saved[table]
        assert drawn["names"] == {str(a): action_name(a) for a in view.legal_actions}
