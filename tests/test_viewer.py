"""The replay page: what a browser shows of each position, to whom, and of whatever is noted."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conquian_env import Game, GameRecord, RuleSet, View
from conquian_env.actions import action_name
from conquian_env.cards import card_name
from conquian_env.errors import OptionError, RecordError
from conquian_env.record import replay
from conquian_env.rules import PRESETS
from conquian_env.viewer import Replay, to_html
from conquian_env.viewer.plies import plies
from tests.playing import random_actions
from training.analyse import Analyst

EVIL = "</script><img src=x onerror=\"document.title = 'owned'\"><!--<script>"
CARD = re.compile(r"(?<![A-Za-z0-9])[A2-7JQK][CDHS](?![A-Za-z0-9])")
NAMES = ("alice", "bob")


def record(rules: str, seed: int = 3, eager: bool = True) -> GameRecord:
    start = Game(RuleSet.from_text(rules), seed=seed)
    return GameRecord.of(start, random_actions(start, seed, eager), NAMES)


def known_cards() -> GameRecord:
    """A game from cards that no seed deals, broken off."""
    dealt = "AC 2C 3C 4C 5C", "AD 2D 3D 4D 5D", "6D 7C 7D"
    fresh = GameRecord(RuleSet(deal=5, stock=3), (), dealt=dealt, agents=NAMES)
    return replace(fresh, actions=tuple(random_actions(fresh.start(), 0, eager=True)[:3]))


def noted(played: GameRecord) -> GameRecord:
    """Notes at every decision, of the form that ``training.analyse`` writes, made up."""
    notes = []
    for game, action in zip(replay(played), played.actions, strict=False):
        names = [action_name(each) for each in game.legal_actions()]
        values = {name: (i % 3) - 1 for i, name in enumerate(names)}
        shares = {name: round(1 / len(names), 4) for name in names}
        notes.append(
            {
                "value": 1,
                "values": values,
                "means": {name: value / 2 for name, value in values.items()},
                "loss": 0.4 if action % 2 else 0.0,
                "agents": {"even": shares, EVIL: {names[0]: 1.0}},
            }
        )
    return replace(played, notes=tuple(notes))


@cache
def samples() -> dict[str, GameRecord]:
    """A game of every preset, and the kinds that have something of their own."""
    kinds = {name: record(name, eager=name != "classic-1.1") for name in PRESETS}
    kinds["redealt"] = record("mini,draw=double,max_deals=3", seed=4)
    kinds["known cards, in play"] = known_cards()
    kinds["nothing played"] = replace(record("classic"), actions=())
    kinds["noted"] = noted(record("mexican"))
    return kinds


KINDS = (*PRESETS, "redealt", "known cards, in play", "nothing played", "noted")


def test_the_samples_have_what_they_are_for() -> None:
    assert tuple(samples()) == KINDS
    phases = {str(game.phase) for played in samples().values() for game in replay(played)}
    assert phases == {"give", "turned", "offered", "meld", "force", "over"}
    assert {played.result for played in samples().values()} >= {"*", "0-0 stock"}
    assert any(game.redeal for game in replay(samples()["redealt"]))
    assert any(game.melds(0) is None for game in replay(samples()["classic"]))


# --- in a browser ---


WALK = """count => {
  const seen = [], names = cards => [...cards].map(card => card.dataset.card);
  for (let ply = 0; ply <= count; ply++) {
    const places = {};
    for (const place of document.querySelectorAll("[data-place]")) {
      const groups = [...place.querySelectorAll(".meld")];
      places[place.dataset.place] = place.matches(".laid")
        ? groups.map(group => names(group.querySelectorAll(".card")))
        : names(place.querySelectorAll(".card[data-card]"));
    }
    const marked = names(document.querySelectorAll(".card.marked"));
    const headline = document.querySelector(".headline").textContent;
    const main = document.querySelector("main").outerHTML;
    seen.push({ places, marked, headline, main, width: document.documentElement.scrollWidth });
    document.getElementById("forward").click();
  }
  return seen;
}"""


def named(ids: Any) -> list[str]:
    return list(map(card_name, ids))


def expected(game: Game, seat: int, opened: bool) -> dict[str, Any]:
    """What lies where, in the eyes of a seat or with both hands open."""
    view, other = game.view(seat), 1 - seat
    backs = ["back"] * (view.other_hand_size - len(view.known))
    return {
        "other-hand": list(game.hand(other)) if opened else named(view.known) + backs,
        "other-table": table(game, other),
        "stock": ["back"] if game.stock_count else [],
        "face-up": [game.face_up] if game.face_up else [],
        "dead": list(game.dead),
        "own-table": table(game, seat),
        "own-hand": list(game.hand(seat)),
    }


def table(game: Game, seat: int) -> Any:
    """Combinations, or the cards of one that is being laid."""
    melds = game.melds(seat)
    return sorted(game.table(seat)) if melds is None else [list(meld) for meld in melds]


def secret(view: View) -> set[str]:
    """The cards of which the seat does not know where they are."""
    return set(named(view.unseen)) - set(named(view.known))


@pytest.mark.parametrize("seat", ["0", "1", "open"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_position_is_drawn_as_who_looks_sees_it(open_tab: Any, kind: str, seat: str) -> None:
    played = samples()[kind]
    tab = open_tab(to_html([played], "open" if seat == "open" else int(seat)))
    assert tab.eyes() == seat
    bottom = 1 if seat == "1" else 0
    seen = tab.page.evaluate(WALK, len(played.actions))
    for game, drawn in zip(replay(played), seen, strict=True):
        places = drawn["places"]
        for name in ("own-table", "other-table"):
            if game.melds(bottom if name == "own-table" else 1 - bottom) is None:
                places[name] = sorted(card for group in places[name] for card in group)
        assert places == expected(game, bottom, seat == "open")
        assert drawn["width"] == 1280
        lays = {name[4:] for name in map(action_name, game.legal_actions()) if name[:4] == "lay "}
        if seat in ("open", str(game.actor)) and game.phase != "give":
            assert set(drawn["marked"]) - {game.face_up} == lays
        assert (f"Seat {game.actor} to act" == drawn["headline"]) == (not game.is_over)
        if seat != "open" and played.rules.draw == "end":
            assert not secret(game.view(bottom)) & set(CARD.findall(drawn["main"]))


def test_the_drawing_would_show_a_hidden_card(open_tab: Any) -> None:
    """What the test above looks for is there with both hands open."""
    played = samples()["noted"]
    (first, *_) = open_tab(to_html([played])).page.evaluate(WALK, 0)
    assert secret(played.start().view(0)) & set(CARD.findall(first["main"]))


@pytest.mark.parametrize("kind", ["noted", "redealt", "mini"])
def test_a_narrow_screen_needs_no_scrolling_aside(open_tab: Any, kind: str) -> None:
    played = samples()[kind]
    tab = open_tab(to_html([played]), width=390)
    for drawn in tab.page.evaluate(WALK, len(played.actions)):
        assert drawn["width"] == 390
    for card in tab.page.locator("[data-place$=hand] .card").all():
        assert card.bounding_box()["width"] >= 50


def test_the_keyboard_alone_suffices(open_tab: Any) -> None:
    played = samples()["classic"]
    count = len(played.actions)
    tab = open_tab(to_html([played]))
    visited = [tab.place()]
    for keys in ("ArrowRight", "ArrowRight ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home",
                 "ArrowLeft"):  # fmt: skip
        tab.press(keys)
        visited.append(tab.place())
    assert visited == [f"{ply} of {count}" for ply in (0, 1, 3, 2, count, count, 0, 0)]
    eyes = [tab.eyes()]
    for key in ("p", "p", "p", "2", "1", "3"):
        tab.press(key)
        eyes.append(tab.eyes())
    assert eyes == ["open", "0", "1", "open", "1", "0", "open"]
    tab.press("Control+ArrowRight Alt+2")
    assert (tab.place(), tab.eyes()) == (f"0 of {count}", "open")


def test_each_control_can_be_reached_and_says_what_it_is(open_tab: Any) -> None:
    tab = open_tab(to_html([samples()["classic"], samples()["noted"]]))
    reached = []
    for _ in range(11):
        tab.press("Tab")
        reached.append(
            tab.page.evaluate(
                "(e => e.ariaLabel || e.labels?.[0]?.textContent.trim().split(' ')[0] "
                "|| e.textContent)(document.activeElement)"
            )
        )
    assert reached[:9] == ["game", "first position", "back", "forward", "last position",
                           "actions played", "seat 0", "seat 1", "open"]  # fmt: skip
    assert reached[10].startswith("0seat 0 turns ") or reached[9].startswith("0seat 0 turns ")


def test_the_slider_moves_by_its_own_keys(open_tab: Any) -> None:
    tab = open_tab(to_html([samples()["classic"]]))
    tab.page.locator("#slider").focus()
    tab.press("ArrowRight ArrowRight")
    assert tab.place().startswith("2 of ")
    tab.press("End ArrowLeft")
    count = len(samples()["classic"].actions)
    assert tab.place() == f"{count - 1} of {count}"


def test_the_list_of_actions_leads_to_each_position(open_tab: Any) -> None:
    played = samples()["mexican"]
    tab = open_tab(to_html([played]))
    texts = tab.page.locator("#plies button").all_inner_texts()
    assert texts[0].split(None, 1) == ["0", "the cards are dealt"]
    for number, (text, ply) in enumerate(zip(texts[1:], plies(played), strict=True), 1):
        followed = f"; {ply['then']}" if ply["then"] else ""
        assert text.split(None, 1) == [
            str(number),
            f"seat {ply['seat']} {ply['words']}{followed}",
        ]
    tab.page.locator("#plies button").nth(7).click()
    assert tab.place().startswith("7 of ")
    assert tab.page.locator("#plies [aria-current=step]").inner_text() == texts[7]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_list_shows_the_position(open_tab: Any, width: int) -> None:
    tab = open_tab(to_html([samples()["noted"]]), width=width)
    for key in ("End", "ArrowLeft", "Home", *["ArrowRight"] * 20):
        tab.press(key)
        outer = tab.page.locator("#plies").bounding_box()
        inner = tab.page.locator("#plies [aria-current=step]").bounding_box()
        assert outer["y"] <= inner["y"]
        assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]
        assert tab.page.evaluate("scrollY") == 0


def test_a_seat_reads_what_happened_so_far_and_no_gift_it_was_not_given(open_tab: Any) -> None:
    tab = open_tab(to_html([samples()["mexican"]], 1))
    tab.press("ArrowRight ArrowRight")
    texts = [text.split(None, 1)[1] for text in tab.page.locator("#plies button").all_inner_texts()]
    assert texts[1] == "seat 0 gives a card"
    assert re.fullmatch(r"seat 1 gives [A2-7JQK][CDHS]; seat 0 turns ..", texts[2])
    assert set(texts[3:]) == {"…"}


def test_several_games_are_chosen_by_name_and_a_link_leads_to_a_position(
    browser: Any, open_tab: Any
) -> None:
    games = [samples()["classic"], samples()["nano"], samples()["known cards, in play"]]
    tab = open_tab(to_html(games))
    tab.page.select_option("#game", "1")
    assert tab.place() == f"0 of {len(games[1].actions)}"
    options = tab.page.locator("#game option").all_inner_texts()
    assert options == [f"{i}: alice – bob, {game.result}" for i, game in enumerate(games, 1)]
    tab.press("Home")  # is the chooser's, which has the focus
    assert tab.page.locator("#about").inner_text().startswith("result ")
    tab.page.locator("h1").click()
    tab.page.select_option("#game", "2")
    assert (
        "still in play · classic, deal=5, stock=3 · known cards"
        in tab.page.locator("#about").inner_text()
    )
    tab.page.locator("#forward").click()
    tab.page.locator("[data-seat='1']").click()
    tab.page.wait_for_url("**#3/1/1")

    other = browser.new_page()
    for hash_, place, eyes in (
        ("#3/2/1", "2 of 3", "1"),
        ("#3/99", "3 of 3", "open"),
        ("#99/1", f"1 of {len(games[0].actions)}", "open"),
        ("#<b>", f"0 of {len(games[0].actions)}", "open"),
    ):
        other.goto("about:blank")
        other.goto(tab.address + hash_)
        assert other.locator("#said b").inner_text() == place
        assert other.locator("[aria-pressed=true]").get_attribute("data-seat") == eyes
    other.evaluate("location.hash = '#2/5/0'")
    other.locator("#said b", has_text="5 of ").wait_for()
    other.close()


def test_one_game_needs_no_chooser(open_tab: Any) -> None:
    played = samples()["classic"]
    page = open_tab(to_html([played])).page
    assert not page.locator("#chooser").is_visible()
    assert page.locator("h1").inner_text() == "alice – bob"
    assert page.title() == "alice – bob: Conquian replay"
    assert page.locator("#about").inner_text() == (
        f"result {played.result} · classic · seed 3, deal 0 · version {played.version}"
    )


# --- notes ---


def test_an_annotated_record_shows_what_was_found(open_tab: Any) -> None:
    played = Analyst(worlds=5, agents=("greedy", "random")).annotate(record("nano", 5))
    ply = max(range(len(played.notes)), key=lambda i: len(played.notes[i].get("means", {})))
    notes = list(played.notes)
    notes[ply] |= {"loss": 0.25}
    tab = open_tab(to_html([replace(played, notes=tuple(notes))]))
    tab.page.locator("#plies button").nth(ply).click()
    note, seat = played.notes[ply], list(replay(played))[ply].actor
    sign = 1 if seat == 0 else -1

    def signed(number: float, digits: int) -> str:
        return f"{number:+.{digits}f}".replace("-", "−") if number else f"{number:.{digits}f}"

    rows = {
        name: [signed(mean, 2), signed(sign * note["values"][name], 0)]
        for name, mean in note["means"].items()
    }
    drawn = tab.page.locator("#notes tbody tr")
    for row in drawn.all():
        action = row.get_attribute("data-action")
        assert row.locator("td:not(.agents)").all_inner_texts() == rows.pop(action)
        shares = {agent: note["agents"][agent][action] for agent in ("greedy", "random")}
        likely = {agent: share for agent, share in shares.items() if share}
        lines = row.locator(".share").all()
        for line, (agent, share) in zip(lines, likely.items(), strict=True):
            assert line.inner_text().split("\n") == [agent, f"{100 * share:.0f} %"]
            whole, bar = line.bounding_box(), line.locator(".bar").bounding_box()
            assert bar["width"] / whole["width"] == pytest.approx(share, abs=0.01)
    assert not rows
    done = tab.page.locator("#notes tr.played")
    assert done.get_attribute("data-action") == action_name(played.actions[ply])
    assert "Gives away 0.25" in tab.page.locator("#notes").inner_text()
    badge = tab.page.locator("#plies button").nth(ply + 1).locator(".mistake")
    assert badge.inner_text() == "−0.25"


MANY = ("greedy", "expert", "magpie:Magpie", "ppo:runs/demo/policy.pt", "rollout:worlds=20")
SHORT = ("greedy", "expert", "Magpie", *MANY[3:])


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_the_choices_of_agents_fit_and_names_are_whole(
    open_tab: Any, count: int, width: int
) -> None:
    played = noted(record("classic"))
    shares = [note["agents"]["even"] for note in played.notes]
    notes = [
        note | {"agents": dict.fromkeys(MANY[:count], share)}
        for note, share in zip(played.notes, shares, strict=True)
    ]
    ply = max(range(len(shares)), key=lambda i: len(shares[i]))
    tab = open_tab(to_html([replace(played, notes=tuple(notes))]), width=width)
    tab.page.locator("#plies button").nth(ply).click()
    box = tab.page.locator("#notes .scroll")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    names = box.locator(".share bdi").all()
    assert len(names) == count * len(shares[ply]) > count
    for i, name in enumerate(names):
        assert name.inner_text() == SHORT[i % count]
        assert name.get_attribute("title") == MANY[i % count]
        if SHORT[i % count].isalpha():  # others may be broken where they have parts
            assert name.bounding_box()["height"] < 30


def test_two_classes_of_one_name_keep_their_modules(open_tab: Any) -> None:
    played = record("classic")
    name = action_name(played.actions[0])
    agents = {agent: {name: 0.5} for agent in ("one:Mine", "two:Mine", "three.x:Other")}
    notes = ({"agents": agents},) * len(played.actions)
    page = open_tab(to_html([replace(played, notes=notes)])).page
    names = page.locator(".played .share bdi").all_inner_texts()
    assert names == ["one:Mine", "two:Mine", "Other"]


def test_what_leaves_no_choice_is_said_so(open_tab: Any) -> None:
    played = noted(record("classic"))
    bare = [note if i % 2 else {} for i, note in enumerate(played.notes)]
    tab = open_tab(to_html([replace(played, notes=tuple(bare))]))
    for i, game in enumerate(list(replay(played))[:-1]):
        if i % 2 == 0:
            forced = len(game.legal_actions()) == 1
            words = list(plies(played))[i]["words"]
            said = " (no choice)." if forced else "; nothing is noted of it."
            assert tab.page.locator("#notes p").all_inner_texts() == [
                f"Seat {game.actor} {words}{said}"
            ]
        tab.press("ArrowRight")


def test_a_seat_is_told_nothing_of_the_others_choices_nor_of_open_cards(open_tab: Any) -> None:
    played = samples()["noted"]
    tab = open_tab(to_html([played], 0))
    for game in list(replay(played))[:-1]:
        text = tab.page.locator("#notes").inner_text()
        if game.actor == 0:
            heads = tab.page.locator("#notes thead th").all_inner_texts()
            assert heads == ["action", "mean", "who would"]
            assert "Open" not in text
        else:
            assert "What seat 1 can choose is hidden from seat 0." in text
        tab.press("ArrowRight")
    assert "No action is left." in tab.page.locator("#notes").inner_text()


def test_a_record_without_notes_has_no_place_for_them(open_tab: Any) -> None:
    page = open_tab(to_html([samples()["classic"]])).page
    assert not page.locator("#notes").is_visible()


# --- what is in a record is text ---


@pytest.mark.parametrize("width", [390, 1280])
def test_names_and_notes_stay_harmless(open_tab: Any, width: int) -> None:
    evil = GameRecord(**{
        name: getattr(noted(record("nano")), name) for name in ("rules", "actions", "seed", "notes")
    }, agents=(EVIL, "x" * 300), version=EVIL)  # fmt: skip
    page = open_tab(to_html([evil, evil]), width=width).page
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    assert page.title().endswith(": Conquian replay")
    assert page.locator("h1 bdi").first.inner_text() == EVIL
    assert EVIL in page.locator("#about").inner_text()
    assert EVIL in page.locator("#notes .share bdi").all_inner_texts()
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_script_would_not_run_if_one_came_in(browser: Any, tmp_path: Path) -> None:
    planted = "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    path = tmp_path / "page.html"
    path.write_text(to_html([record("nano")]).replace("<header>", planted + "<header>"))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.locator("script").count() == 4
    assert page.locator("#said b").inner_text().startswith("0 of ")
    assert page.evaluate("window.owned") is None
    page.close()


# --- when it cannot be drawn ---


def test_without_javascript_the_page_says_so(open_tab: Any) -> None:
    page = open_tab(to_html([record("nano")]), java_script_enabled=False).page
    assert "JavaScript draws this replay" in page.locator("#failed").inner_text()
    assert not page.locator("main").is_visible()


@pytest.mark.parametrize("broken", ['"games":}', '"games":[{"views":5}],"x":'])
def test_a_page_that_fails_says_so(browser: Any, tmp_path: Path, broken: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(to_html([record("nano")]).replace('"games":', broken))
    page = browser.new_page()
    page.goto(path.as_uri())
    assert "has failed here" in page.locator("#failed").inner_text()
    page.close()


def test_nothing_to_show_is_an_error() -> None:
    with pytest.raises(RecordError, match="no game"):
        to_html([])
    with pytest.raises(OptionError, match="seat must be"):
        to_html([record("nano")], "all")  # type: ignore[arg-type]


# --- in a notebook ---


@pytest.mark.parametrize("width", [390, 1000])
def test_a_notebook_shows_it_in_a_frame_of_its_own(open_tab: Any, width: int) -> None:
    cell = Replay(samples()["noted"], samples()["nano"])._repr_html_()
    html = f"<!DOCTYPE html><meta charset=utf-8><body style='margin: 0'><h1>mine</h1>{cell}"
    tab = open_tab(html, width=width)
    frame = tab.page.frame_locator("iframe")
    frame.locator("#forward").click()
    frame.locator("#forward").click()
    assert frame.locator("#said b").inner_text().startswith("2 of ")
    assert frame.locator("#failed").is_hidden()
    tab.page.wait_for_timeout(300)  # longer than the address waits
    colour = "getComputedStyle(document.body).backgroundColor"
    assert tab.page.evaluate(colour) == "rgba(0, 0, 0, 0)"
    assert tab.page.evaluate("document.documentElement.scrollWidth") == width
