"""The page of a game: what it is told and when, what is refused, and how it is played."""

import copy
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from werkzeug.test import Client, TestResponse

from agents import make_agent
from conquian_env import Game, RuleSet
from conquian_env.record import GameRecord, read_records, replay
from conquian_env.viewer import picture
from tests.test_play_session import CARD, Raises, seen_cards
from training.play.__main__ import main
from training.play.room import Room, shown
from training.play.session import Named, Session, Setting
from training.play.web import application

ROOT = Path(__file__).parents[1]
SEED, DEAL = 7316551882260071, 90213  # the deals from this one on are lost, won and drawn
ENDS = ["greedy wins", "You win", "A draw"]
SECONDS = 60.0
ADDRESS = "http://127.0.0.1:5001"


# --- requests ---


def room(out: Path, agent: Any = "greedy", undo: bool = False, rules: str = "classic") -> Room:
    """Where games of seat 0 are played, those of deals 0, 1, … of seed 1."""
    opponent = Named(agent, make_agent(agent)) if isinstance(agent, str) else Named("it", agent)
    setting = Setting(opponent, opponent, RuleSet.from_text(rules), out / "games.jsonl", undo)
    made = Room(Session(setting, 1, deal, 0) for deal in count())
    Thread(target=made.run, daemon=True).start()
    return made


class Visitor:
    """Asks the server what a page would."""

    def __init__(self, made: Room) -> None:
        self.client = Client(application(made, {"127.0.0.1:5001", "localhost:5001"}))

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, base_url=ADDRESS, headers=headers)

    @property
    def state(self) -> dict[str, Any]:
        return self.get("/state").get_json()  # type: ignore[no-any-return]

    def decide(self, what: object, version: object = None, **options: Any) -> TestResponse:
        version = self.state["version"] if version is None else version
        body = {"json": {"version": version, "what": what}} | options
        return self.client.post("/decide", **{"base_url": ADDRESS, **body})

    def play(self) -> dict[str, Any]:
        """The state at the end of the game."""
        while actions := self.state["actions"]:
            assert self.decide(actions[-1]).status_code == 200
        return self.state


def refused(response: TestResponse, status: int, why: str) -> None:
    assert response.status_code == status
    assert response.mimetype == "application/json"
    assert why in response.get_json()["error"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html"),
        ("/play.js", "text/javascript"),
        ("/play.css", "text/css"),
        ("/table.js", "text/javascript"),
        ("/table.css", "text/css"),
        ("/state", "application/json"),
    ],
)
def test_the_page_and_its_parts_are_given_out(tmp_path: Path, path: str, kind: str) -> None:
    response = Visitor(room(tmp_path)).get(path)
    assert (response.status_code, response.mimetype) == (200, kind)
    assert response.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_a_name_that_was_made_to_lead_here_is_refused(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path))
    for host in ("evil.example:5001", "127.0.0.1:5002", "127.0.0.1", "[::1]:5001", ""):
        for path in ("/", "/state", "/table.js"):
            response = visitor.client.get(path, environ_overrides={"HTTP_HOST": host})
            refused(response, 403, "another name")
    assert visitor.client.get("/state", base_url="http://localhost:5001").status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:80"])
def test_a_page_of_another_site_is_refused(tmp_path: Path, origin: str) -> None:
    visitor = Visitor(room(tmp_path))
    before = visitor.state
    refused(visitor.decide(0, headers={"Origin": origin}), 403, "another site")
    refused(visitor.get("/state", Origin=origin), 403, "another site")
    form = {"json": None, "data": {"version": before["version"], "what": "0"}}
    refused(visitor.decide(0, **form), 415, "application/json")
    assert visitor.state == before
    assert visitor.decide(0, headers={"Origin": ADDRESS}).status_code == 200


def test_what_was_decided_on_an_earlier_state_is_refused(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path))
    first = visitor.state
    assert visitor.decide(1, first["version"]).status_code == 200
    later = visitor.state
    for what in (1, "hint", "undo", "new"):
        refused(visitor.decide(what, first["version"]), 409, "decided already")
    for version in (None, "", first["version"] + 100, [1], {}):
        response = visitor.decide(1, json={"version": version, "what": 1})
        refused(response, 409, "decided already")
    assert visitor.state == later


def test_tabs_that_decide_at_once_play_one_action(tmp_path: Path) -> None:
    made = room(tmp_path)
    visitor = Visitor(made)
    version, statuses = visitor.state["version"], []
    threads = [
        Thread(target=lambda: statuses.append(Visitor(made).decide(1, version).status_code))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, 409, 409, 409, 409]
    assert visitor.state["story"][-1] == ["You", "took KH"]


@pytest.mark.parametrize("what", [2, 82, 83, -1, "dance", None, True, 1.5, [1], {"a": 1}, 10**30])
def test_what_is_not_legal_is_refused(tmp_path: Path, what: object) -> None:
    visitor = Visitor(room(tmp_path))
    before = visitor.state
    refused(visitor.decide(what), 400, "")
    assert visitor.state == before


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"1", b'{"version": 1}', b'"what"', b"[" * 900, b"\xff"]
)
def test_what_is_no_decision_is_refused(tmp_path: Path, body: bytes) -> None:
    visitor = Visitor(room(tmp_path))
    sent = {"json": None, "data": body, "content_type": "application/json"}
    refused(visitor.decide(0, **sent), 400, "are expected")
    long = {"json": None, "data": b" " * 100_000, "content_type": "application/json"}
    refused(visitor.decide(0, **long), 413, "")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path))
    refused(visitor.get("/../games.jsonl"), 404, "there is no")
    refused(visitor.get("/decide"), 404, "there is no GET /decide")
    refused(visitor.client.post("/state", base_url=ADDRESS), 404, "there is no POST /state")


def test_before_the_end_there_is_no_record_and_no_next_game(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path))
    refused(visitor.get("/record"), 403, "not over")
    refused(visitor.get("/replay"), 403, "not over")
    refused(visitor.decide("new"), 400, "not over")
    assert visitor.state["after"] is None


def test_after_the_end_the_deal_is_open_and_kept(tmp_path: Path) -> None:
    made = room(tmp_path)
    visitor = Visitor(made)
    state = visitor.play()
    (record,) = read_records(tmp_path / "games.jsonl")
    *_, last = replay(record)
    assert state["after"]["other"] == json.loads(json.dumps(picture(last.view(1))))
    assert state["after"]["saved"] == f"Saved in {tmp_path / 'games.jsonl'}, line 1"
    decisions = [n for n in record.notes if n]
    assert [shares for _, shares in state["after"]["thoughts"]] == [
        note["agents"]["greedy"] for note in decisions
    ]
    assert GameRecord.from_json(visitor.get("/record").get_data(as_text=True)) == record
    assert "attachment" in visitor.get("/record").headers["Content-Disposition"]
    assert "greedy" in visitor.get("/replay").get_data(as_text=True)
    refused(visitor.decide(0), 400, "no choice")
    refused(visitor.decide("hint"), 400, "no choice")

    assert visitor.decide("new").status_code == 200
    assert visitor.state["after"] is None
    visitor.play()
    assert [each.deal for each in read_records(tmp_path / "games.jsonl")] == [0, 1]


def test_hints_and_undo_are_in_the_state(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path, undo=True))
    first = visitor.state
    assert (first["hint"], first["undo"]) == ({}, False)
    visitor.decide("hint")
    assert visitor.state["hint"] == {"pass": 0.0, "take": 1.0}
    visitor.decide(1)
    assert (visitor.state["hint"], visitor.state["undo"]) == ({}, True)
    visitor.decide("undo")  # but what was told stays told
    expected = {**first, "hint": {"pass": 0.0, "take": 1.0}, "version": 0}
    assert {**visitor.state, "version": 0} == expected
    refused(visitor.decide("undo"), 400, "nothing to undo")
    strict = Visitor(room(tmp_path))
    assert strict.state["undo"] is None
    refused(strict.decide("undo"), 400, "--undo")


def test_an_agent_that_fails_is_said_and_the_game_is_kept(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path, Raises()))
    after = visitor.state["after"]
    assert after["result"] == "The game is broken off: agent it failed: ValueError('no idea')"
    assert read_records(tmp_path / "games.jsonl")[0].outcome is None
    assert visitor.decide("new").status_code == 200


def test_a_game_that_cannot_be_saved_is_said_and_not_left_behind(tmp_path: Path) -> None:
    visitor = Visitor(room(tmp_path / "gone"))
    assert "could not be saved" in visitor.play()["after"]["saved"]
    refused(visitor.decide("new"), 400, "the last game could not be saved")
    (tmp_path / "gone").mkdir()
    assert visitor.decide("new").status_code == 200
    assert len(read_records(tmp_path / "gone" / "games.jsonl")) == 1


# --- what is told before the end ---


def check_state(state: dict[str, Any], record: GameRecord) -> None:
    """A state says what the person knows after some of the actions of a game, and no more."""
    seat, seen = state["view"]["seat"], set[str]()
    for game in replay(record):
        seen |= seen_cards(game.view(seat))
        if json.loads(json.dumps(picture(game.view(seat)))) == state["view"]:
            break
    else:
        raise AssertionError("the state is none of the game")
    assert state["actions"] == state["view"]["legal_actions"]
    assert set(CARD.findall(json.dumps({**state, "view": None}))) <= seen


@pytest.mark.parametrize("rules", ["classic", "mexican", "bicycle", "classic,draw=double"])
def test_the_state_holds_what_the_person_knows(tmp_path: Path, rules: str) -> None:
    made, rng = room(tmp_path, rules=rules), np.random.default_rng(0)
    visitor = Visitor(made)
    states = []
    while (state := visitor.state)["after"] is None:
        other = copy.copy(made.session)  # the same to the person
        other._game = other._game.resample_hidden(0, rng)
        assert shown(other) == shown(made.session)
        visitor.decide("hint")
        states += [state, visitor.state]
        visitor.decide(state["actions"][len(states) % len(state["actions"])])
    record = made.session.record()
    for state in states:
        check_state(state, record)
    assert len(states) > 4


# --- the program ---


@contextmanager
def server(folder: Path, *arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a program that serves, and the program."""
    given = ["--web", "--against", "greedy", "--seat", "0", *arguments]
    program = subprocess.Popen(
        [sys.executable, "-m", "training.play", *given],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert program.stdout is not None
        line = program.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert found, line + program.stdout.read()
        yield found[0], program
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_server_stops_with_the_game_saved(tmp_path: Path, number: int, status: int) -> None:
    with server(tmp_path, "--seed", "1") as (_, program):
        program.send_signal(number)
        said, _ = program.communicate(timeout=SECONDS)
    assert program.returncode == status
    assert "saved: games.jsonl, line 1" in said
    assert "Traceback" not in said
    assert read_records(tmp_path / "games.jsonl")[0].outcome is None


def test_a_port_in_use_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        out = str(tmp_path / "games.jsonl")
        assert main(["--web", "--port", str(port), "--against", "random", "--out", out]) == 2
    assert capsys.readouterr().err == f"error: port {port}: Address already in use\n"
    assert main(["--web", "--port", "70000", "--against", "random", "--out", out]) == 2
    assert "port must be 0 to 65535" in capsys.readouterr().err


# --- in a browser ---


def lettered(words: str) -> str:
    """Words of the page with letters for the signs of suits."""
    return words.replace("\ufe0e", "").translate(str.maketrans("♣♦♥♠", "CDHS"))


class Tab:
    """A page of a game.

    Attributes:
        bodies: all that the page was sent, by address.
        troubles: what the browser complained of.
    """

    def __init__(self, browser: Any, address: str, width: int = 1280, height: int = 900) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height})
        self.page = self.context.new_page()
        self.page.set_default_timeout(SECONDS * 1000)
        self.address, self.width = address, width
        self.bodies: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self.troubles: list[str] = []
        self.context.on("console", lambda message: self.troubles.append(message.text))
        self.context.on("weberror", lambda error: self.troubles.append(str(error.error)))
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page.on("response", lambda got: self.bodies.append((got.url, got.text())))
        self.page.goto(address)
        self.page.wait_for_selector(".felt")

    @property
    def actions(self) -> list[int]:
        found = self.page.evaluate(
            "[...document.querySelectorAll('[data-action]')].map(b => Number(b.dataset.action))"
        )
        return sorted(found)

    def settled(self) -> None:
        self.page.wait_for_selector("body:not(.busy)")

    def choose(self, action: int) -> None:
        self.page.locator(f"[data-action='{action}']").click()
        self.settled()

    def play(self) -> Iterator[int]:
        """Each choice is given, then the highest is clicked, to the end of the game."""
        while actions := self.actions:
            yield actions[-1]
            self.choose(actions[-1])

    def shown(self) -> set[str]:
        """The cards that are drawn or named anywhere in the page."""
        drawn = self.page.evaluate(
            "[...document.querySelectorAll('[data-card]')].map(c => c.dataset.card)"
        )
        source = self.page.evaluate(
            "(document.querySelectorAll('body > svg').forEach(s => s.remove()),"
            "document.documentElement.outerHTML)"
        )
        return {*drawn, *CARD.findall(lettered(source))} - {"back"}

    def fits(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth") <= self.width)

    def close(self) -> None:
        self.context.close()
        assert self.troubles == []
        assert all(url.startswith(self.address) for url in self.asked)


def known(actions: Sequence[int], deal: int) -> set[str]:
    """What seat 0 has seen after some actions."""
    record = GameRecord.of(Game("classic", SEED, deal), actions)
    return set().union(*(seen_cards(game.view(0)) for game in replay(record)))


def prefix(record: GameRecord, view: dict[str, Any]) -> tuple[int, ...]:
    """The actions of a game until the person sees a view."""
    for ply, game in enumerate(replay(record)):
        if json.loads(json.dumps(picture(game.view(0)))) == view:
            return record.actions[:ply]
    raise AssertionError("no state of the game")


@pytest.mark.parametrize("width", [390, 1280])
def test_games_are_lost_won_and_drawn_and_nothing_hidden_is_told(
    browser: Any, tmp_path: Path, width: int
) -> None:
    with server(tmp_path, "--seed", str(SEED), "--deal", str(DEAL)) as (address, _):
        tab = Tab(browser, address, width)
        for number, end in enumerate(ENDS):
            moments = []
            for _ in tab.play():
                assert tab.fits()
                state = tab.page.evaluate("fetch('/state').then(r => r.json())")
                moments.append((state, tab.shown()))
            assert tab.page.locator("#result").inner_text().startswith(end)
            assert tab.fits()
            record = read_records(tmp_path / "games.jsonl")[number]
            assert (record.seed, record.deal) == (SEED, DEAL + number)
            for state, shown in moments:
                assert state["after"] is None
                check_state(state, record)
                assert shown <= known(prefix(record, state["view"]), record.deal)
            *_, last = replay(record)
            held = tab.page.locator("[data-place=other-hand] [data-card]")
            assert {c.get_attribute("data-card") for c in held.all()} == set(last.hand(1))
            thoughts = tab.page.locator("#thoughts > ol > li")
            assert thoughts.count() == sum(1 for note in record.notes if note)
            if number < 2:
                tab.page.locator("#new").click()
                tab.page.wait_for_selector("#after", state="hidden")
        for url, body in tab.bodies:
            assert str(SEED) not in body, url
            assert str(DEAL)[:-1] not in body, url
        with tab.page.expect_popup() as opened:
            tab.page.get_by_role("link", name="Replay").click()
        opened.value.wait_for_selector(".felt")
        with tab.page.expect_download() as download:
            tab.page.get_by_role("link", name="Record").click()
        (kept,) = read_records(download.value.path())
        assert kept == record
        tab.close()


def test_cards_have_the_signs_of_suits_in_words_and_what_is_certain_no_number(
    browser: Any, tmp_path: Path
) -> None:
    with server(tmp_path, "--seed", "1") as (address, _):
        tab = Tab(browser, address)
        for place in ("#news", "#story > ol", ".turn"):
            words = tab.page.locator(place).text_content()
            assert "K♥\ufe0e" in words
            assert not CARD.search(words)
        tab.page.locator("#hint").click()
        tab.page.wait_for_selector("#advice p")
        assert tab.page.locator("#advice").inner_text().split() == ["greedy", "would", "take"]
        for _ in tab.play():
            pass
        thoughts = tab.page.locator("#thoughts").inner_text()
        assert "%" not in thoughts
        assert not CARD.search(thoughts)
        tab.close()


def test_without_hints_there_is_no_button_for_them(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1", "--hints", "none") as (address, _):
        tab = Tab(browser, address)
        assert tab.page.locator("#hint").is_hidden()
        tab.page.keyboard.press("h")
        assert tab.page.locator("#advice").text_content() == ""
        tab.close()


def test_a_chance_has_a_number(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1", "--hints", "random") as (address, _):
        tab = Tab(browser, address)
        tab.page.locator("#hint").click()
        tab.page.wait_for_selector("#advice li")
        assert tab.page.locator("#advice li").all_inner_texts() == ["pass\n50 %", "take\n50 %"]
        tab.close()


def test_the_keyboard_alone_plays_a_game(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", str(SEED), "--deal", str(DEAL + 1)) as (address, _):
        tab = Tab(browser, address)
        keys = tab.page.keyboard
        keys.press("h")
        tab.page.wait_for_selector("#advice p")
        while actions := tab.actions:
            if actions[-1] == 1:
                keys.press("t")
            else:
                keys.press("ArrowLeft")  # to the last choice: Tab would go through them all
                keys.press("Enter")
            tab.settled()
        assert tab.page.locator("#result").inner_text().startswith("You win")
        keys.press("n")
        tab.page.wait_for_selector("#after", state="hidden")
        tab.close()


def test_tab_goes_through_all_choices_and_the_tools(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1", "--undo") as (address, _):
        tab = Tab(browser, address)
        labels = []
        focused = "document.activeElement.getAttribute('aria-label') || document.activeElement.id"
        for _ in range(3):
            labels.append(tab.page.evaluate(focused))
            tab.page.keyboard.press("Tab")
        assert labels == ["pass", "take KH", "hint"]
        tab.close()


def test_cards_are_dragged(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1") as (address, _):
        tab = Tab(browser, address)
        place = "[data-place={}]".format
        drag = tab.page.drag_and_drop
        drag(f"{place('face-up')} .card", place("dead"))  # nowhere: nothing happens
        assert tab.actions == [0, 1]
        for source, target, words in (
            (f"{place('face-up')} .card", place("own-table"), "took K♥"),
            (".slot[data-card=KC] .card", place("own-table"), "laid K♣"),
            (".slot[data-card='7H'] .card", place("face-up"), "discarded 7♥"),
        ):
            drag(source, target)
            tab.page.wait_for_function(
                "words => document.getElementById('news').textContent.includes(words)",
                arg=words,
            )
            tab.settled()
        tab.close()


def test_tabs_show_the_same_game(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1") as (address, _):
        one, other = Tab(browser, address), Tab(browser, address)
        one.page.bring_to_front()
        one.choose(1)
        other.page.bring_to_front()
        other.page.wait_for_selector("text=Lay a card")
        assert other.actions == one.actions
        other.choose(other.actions[0])
        assert "laid" in other.page.locator("#news").inner_text()
        one.close()
        other.close()


def test_a_double_click_plays_one_action(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1") as (address, _):
        tab = Tab(browser, address)
        tab.page.locator("[data-verb=take]").dblclick()
        tab.settled()
        assert lettered(tab.page.locator("#story li").last.text_content()) == "You took KH"
        tab.close()


def test_the_page_says_that_the_server_has_stopped(browser: Any, tmp_path: Path) -> None:
    with server(tmp_path, "--seed", "1") as (address, program):
        tab = Tab(browser, address)
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=SECONDS)
        tab.page.wait_for_selector("text=The server has stopped")
        tab.context.close()  # of which the browser complains
