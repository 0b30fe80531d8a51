"""``python -m training.play`` in a terminal: what is typed, what is shown, and how it is left."""

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents import make_agent
from conquian_env import Game, RuleSet
from conquian_env.actions import DISCARD, LAY, TAKE
from conquian_env.cards import card
from conquian_env.errors import ConquianError
from conquian_env.record import read_records
from training.play.__main__ import main
from training.play.session import PERSON, Named, Session, Setting
from training.play.terminal import parse, play

pty = pytest.importorskip("pty")

ROOT = Path(__file__).parents[1]
SECONDS = 60.0  # in which anything must be answered, compiling included
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
PROMPT = "> "
TAKEN = "take lay KC KD discard JC"  # what seat 0 can do at first in deal 0 of seed 1


class Typist:
    """A program in a terminal of its own.

    Attributes:
        text: all that it printed so far.
    """

    def __init__(self, arguments: list[str], folder: Path, **environment: str) -> None:
        self.keys, self._screen = pty.openpty()
        inside = (
            'exec "$@" < "$0" > "$0" 2>&1'  # the first terminal that a session opens is its own
        )
        program = [sys.executable, "-m", "training.play", *arguments]
        kept = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        settings = {"PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "100"}
        self.process = subprocess.Popen(
            ["sh", "-c", inside, os.ttyname(self._screen), *program],
            cwd=folder,
            env=kept | settings | environment,
            start_new_session=True,
        )
        self.text = ""

    def read(self, wanted: str = PROMPT) -> str:
        """What is printed until ``wanted`` comes at its end."""
        start, end = len(self.text), time.monotonic() + SECONDS
        while not self.text[start:].endswith(wanted):
            assert self.more(end), f"{wanted!r} did not come: {self.text[start:]}"
        return self.text[start:]

    def more(self, end: float) -> bool:
        """Read what comes next; whether something came."""
        ready, _, _ = select.select([self.keys], [], [], max(0.0, end - time.monotonic()))
        try:
            new = os.read(self.keys, 1 << 16) if ready else b""
        except OSError:  # the program has ended
            new = b""
        if self._screen is not None and new:  # the program has opened it
            os.close(self._screen)
            self._screen = None
        self.text += new.decode(errors="replace")
        return bool(new)

    def type(self, line: str) -> str:
        """What is printed after a line, until the next prompt."""
        os.write(self.keys, f"{line}\n".encode())
        return self.read(PROMPT)

    def end(self, keys: str) -> tuple[int, str]:
        """Exit status after the last keys, and all that was printed."""
        os.write(self.keys, keys.encode())
        return self.wait()

    def wait(self) -> tuple[int, str]:
        end = time.monotonic() + SECONDS
        while self.more(end):
            pass
        return self.process.wait(SECONDS), self.text

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.keys)
        if self._screen is not None:
            os.close(self._screen)


@contextmanager
def typist(folder: Path, *arguments: str, **environment: str) -> Iterator[Typist]:
    given = ["--against", "greedy", "--seed", "1", "--seat", "0", *arguments]
    made = Typist(given, folder, **environment)
    try:
        yield made
    finally:
        made.close()


# --- a program in a terminal ---


def test_a_game_is_played_to_its_end(tmp_path: Path) -> None:
    with typist(tmp_path, "--out", "mine.jsonl") as person:
        start = person.read()
        assert "\x1b[1;31m" in start  # red cards
        assert "K♥" in ESCAPE.sub("", start)
        while "saved: " not in person.text:
            if person.text.endswith(PROMPT):  # what is typed earlier is echoed into what is printed
                os.write(person.keys, b"1\n")
            assert person.more(time.monotonic() + SECONDS)
        status, text = person.wait()
    assert status == 0
    (record,) = read_records(tmp_path / "mine.jsonl")
    assert record.agents == (PERSON, "greedy")
    assert record.outcome is not None
    shown = ESCAPE.sub("", text)
    assert "greedy held" in shown
    end = {0: "A draw", 1: "You win", -1: "greedy wins"}[int(record.returns[0])]
    assert shown.count(end) == 1
    assert 0 < shown.find("seed 1, deal 0\r\n") < shown.find("saved: mine.jsonl, line 1\r\n")
    assert "python -m conquian_env show mine.jsonl --line 1 --html game.html" in shown
    assert "Traceback" not in shown


def test_ctrl_c_leaves_with_the_game_saved(tmp_path: Path) -> None:
    with typist(tmp_path) as person:
        person.read()
        person.type(TAKEN)
        status, text = person.end("\x03")
    assert status == 130
    assert "saved: games.jsonl, line 1" in text
    assert "Traceback" not in text
    (record,) = read_records(tmp_path / "games.jsonl")
    assert record.outcome is None
    taken = [TAKE, LAY + card("KC"), LAY + card("KD"), DISCARD + card("JC")]
    assert list(record.actions[8:12]) == taken


@pytest.mark.parametrize(("keys", "said"), [("\x04", "end of input"), ("quit\n", "saved")])
def test_the_end_of_input_and_quit_leave_with_the_game_saved(
    tmp_path: Path, keys: str, said: str
) -> None:
    with typist(tmp_path, NO_COLOR="1") as person:
        start = person.read()
        status, text = person.end(keys)
    assert status == 0
    assert said in text
    assert "\x1b" not in start
    assert len(read_records(tmp_path / "games.jsonl")) == 1


def test_a_request_to_end_leaves_with_the_game_saved(tmp_path: Path) -> None:
    with typist(tmp_path) as person:
        person.read()
        person.process.send_signal(signal.SIGTERM)
        status, text = person.wait()
    assert status == 128 + signal.SIGTERM
    assert "Traceback" not in text
    assert len(read_records(tmp_path / "games.jsonl")) == 1


def test_wrong_input_says_what_is_possible_and_changes_nothing(tmp_path: Path) -> None:
    with typist(tmp_path, "--undo", "--hints", "random", NO_COLOR="1") as person:
        person.read()
        for wrong in ("9", "0", "dance", "lay 7D", "lay", "lay 9X", "KS", "1 2", "take take", "♥"):
            answer = person.type(wrong)
            assert "1 pass" in answer, wrong
            assert "Traceback" not in answer
        assert "help" in person.type("?")
        assert "'dance' is nothing that can be done (type help)" in person.type("dance")
        assert "pass 50%, take 50%" in person.type("hint")
        assert "there is nothing to undo" in person.type("undo")
        assert "K♣ K♦ K♥" in person.type("take lay K♣")
        assert "lay Q♠: Q♠ is not in your hand" in person.type("lay qs")
        assert "Take K♥?" in person.type("undo")
        status, _ = person.end("q\n")
    assert status == 0
    (record,) = read_records(tmp_path / "games.jsonl")
    assert len(record.actions) == 8


def test_a_terminal_without_the_signs_of_suits_has_letters(tmp_path: Path) -> None:
    with typist(tmp_path, PYTHONIOENCODING="ascii", NO_COLOR="1") as person:
        start = person.read()
        assert start.isascii()
        assert "Take KH?" in start
        assert "KC KD KH" in person.type("take lay KC")


def test_a_hint_that_is_certain_has_no_percentage(tmp_path: Path) -> None:
    with typist(tmp_path, "--hints", "greedy", NO_COLOR="1") as person:
        person.read()
        assert person.type("hint").splitlines()[-2].strip() == "greedy would: take"


def test_a_game_may_have_no_hints(tmp_path: Path) -> None:
    with typist(tmp_path, "--hints", "none") as person:
        person.read()
        assert "there are no hints in this game" in person.type("hint")


def test_answers_from_a_file_stand_at_their_prompts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "training.play", "--seed", "1", "--seat", "0"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input="hint\ndance\n",
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    prompts = [i for i, line in enumerate(lines) if line.startswith(">")]
    assert [lines[i] for i in prompts] == ["> hint", "> dance", "> "]
    said = [lines[i + 1] for i in prompts]
    assert said[0].startswith("  expert would: ")
    assert said[1:] == ["'dance' is nothing that can be done (type help)", "end of input"]


# --- what is typed ---


def view() -> Any:
    game = Game("classic", seed=1)
    while len(game.legal_actions()) < 2 or game.actor != 0:
        game.apply(game.legal_actions()[-1])
    return game.view(0)


def test_a_line_names_actions() -> None:
    here = view()
    take = [TAKE]
    assert parse("2", here) == parse("take", here) == parse("TAKE", here) == take
    assert parse("kh", here) == parse("K♥", here) == take  # all that can be done with it
    assert parse("take lay 7D 6d discard K♠", here) == [
        TAKE,
        LAY + card("7D"),
        LAY + card("6D"),
        DISCARD + card("KS"),
    ]
    assert parse("insist", here) == parse("force", here) == [2]
    assert parse("decline", here) == [0]
    assert parse("give AS", here) == [DISCARD + card("AS")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("3", "there is no choice 3: they run from 1 to 2"),
        ("7S", "7S: nothing can be done with it now"),
        ("take KH", "'kh' is nothing that can be done"),
        ("lay", "lay which card"),
        ("lay 8D", "unknown card"),
        ("²", "nothing that can be done"),
    ],
)
def test_a_line_that_names_none_says_why(line: str, said: str) -> None:
    with pytest.raises(ConquianError, match=re.escape(said)):
        parse(line, view())


def test_a_card_alone_with_two_uses_asks_which() -> None:
    game = Game.from_position(
        "classic",
        hands=("4S JD QD 2C 2D 3H", "4C 5C 6C 7C 2S 3S AS AH AC KH"),
        tables=("5S 6S 7S JS QS", ""),
        actor=0,
        phase="meld",
        stock="KD KC",
    )
    with pytest.raises(ConquianError, match="4S: lay 4S or discard 4S\\?"):
        parse("4S", game.view(0))
    assert parse("2C", game.view(0)) == [DISCARD + card("2C")]


# --- wrong options ---


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--against", "nobody"], "error: agent nobody: unknown agent 'nobody': known are random,"),
        (["--hints", "nobody"], "error: agent nobody: unknown agent 'nobody': known are random,"),
        (
            ["--against", "tests.rogues:Nope"],
            "error: agent tests.rogues:Nope: AttributeError: module",
        ),
        (["--rules", "chess"], "chess"),
        (["--seed", "-1"], "seed"),
        (["--deal", "3"], "--deal needs --seed"),
        (["--seed", "1", "--deal", "-3"], "deal"),
        (["--out", "."], "is a folder"),
        (["--out", "no/where.jsonl"], "there is no folder no"),
        (["--port", "80"], "--port is of --web"),
        (["--against", "ppo:baseline", "--rules", "nano"], "plays"),
    ],
)
def test_wrong_options_are_refused_in_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert said in captured.err


def test_an_agent_of_others_plays_in_a_process_and_its_failure_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "1")
    monkeypatch.chdir(tmp_path)
    agent = "tests.test_play_terminal:Broken"
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert main(["--against", agent, "--seed", "1", "--seat", "0"]) == 1
    out = capsys.readouterr().out
    assert f"broken off: agent {agent}: it raised" in " ".join(out.split())
    (record,) = read_records("games.jsonl")
    assert record.outcome is None


class Broken:
    def act(self, views: object) -> object:
        raise ValueError("no idea")


def test_a_game_that_cannot_be_saved_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "games" / "mine.jsonl"
    out.parent.mkdir()

    def leave(_: str) -> str:
        out.parent.rmdir()
        raise EOFError

    monkeypatch.setattr("builtins.input", leave)
    assert main(["--against", "greedy", "--seed", "1", "--seat", "0", "--out", str(out)]) == 1
    said, line = capsys.readouterr().err.splitlines()
    assert "could not be saved" in said
    (tmp_path / "kept.jsonl").write_text(line)
    assert read_records(tmp_path / "kept.jsonl")[0].agents == (PERSON, "greedy")


@pytest.mark.parametrize("rules", ["mexican", "bicycle", "classic,draw=double", "nano"])
def test_every_kind_of_game_can_be_played(
    rules: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    greedy = Named("greedy", make_agent("greedy"))
    setting = Setting(greedy, greedy, RuleSet.from_text(rules), tmp_path / "games.jsonl")
    game = Session(setting, 3, 0, 1)
    monkeypatch.setattr("builtins.input", lambda _: str(len(game.legal)))
    play(game)
    assert game.over
    shown = capsys.readouterr().out
    assert "greedy held" in shown
    if rules == "mexican":
        assert "Choose a card to give away" in shown
        assert " in hand, " in shown  # with the card that it was given
