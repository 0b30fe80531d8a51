"""The command line: what it prints, and one line on stderr for whatever is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from conquian_env import Game, GameRecord, RuleSet
from conquian_env.cli import main
from conquian_env.perft import perft
from conquian_env.record import replay, write_records
from conquian_env.render import text
from tests.playing import random_actions

Printed = pytest.CaptureFixture[str]


def won() -> GameRecord:
    """A game with an exchange and hand melds that is won."""
    start = Game("mexican", seed=7, deal=1)
    return GameRecord.of(start, random_actions(start, 1, eager=True), agents=("alice", "bob"))


def drawn() -> GameRecord:
    start = Game("nano", seed=7)
    return GameRecord.of(start, random_actions(start, 0))


@pytest.fixture
def games(tmp_path: Path) -> Path:
    path = tmp_path / "games.jsonl"
    write_records(path, [won(), drawn()])
    return path


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-W", "error", "-m", "conquian_env", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# --- replay ---


def test_replay_prints_every_state_of_every_game(games: Path, capsys: Printed) -> None:
    assert main(["replay", str(games)]) == 0
    printed = capsys.readouterr().out
    place = 0
    for record in (won(), drawn()):
        for game in replay(record):
            place = printed.index(text(game.view(0), game.view(1)), place)
        assert printed.count(f"{record.heading}\n") == 1
        assert printed.index(f"\n{record.result}\n", place) > 0
    assert "\n1. discard 3H\n" in printed


def test_replay_of_one_line(games: Path, capsys: Printed) -> None:
    assert main(["replay", str(games), "--line", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{drawn().heading}\n")
    assert won().heading not in printed


def test_a_bad_record_is_one_line_and_nothing_is_printed(games: Path, capsys: Printed) -> None:
    games.write_text(games.read_text().replace('"seed": 7', '"seed": 8', 1))
    assert main(["replay", str(games)]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"conquian_env: {games}, line 1: ply ")
    assert printed.err.count("\n") == 1
    assert main(["replay", str(games), "--line", "2"]) == 0


# --- perft, show ---


def test_perft_prints_a_count_for_each_depth(capsys: Printed) -> None:
    assert main(["perft", "--rules=bicycle", "--seed=3", "--deal=2", "--depth=6"]) == 0
    lines = [line.replace(",", "").split() for line in capsys.readouterr().out.splitlines()]
    counts = perft(Game("bicycle", 3, 2), 6)
    assert lines == [[str(depth), str(count)] for depth, count in enumerate(counts, 1)]


@pytest.mark.parametrize("seat", ["0", "1", "open"])
def test_show_prints_what_a_seat_sees(seat: str, capsys: Printed) -> None:
    assert main(["show", "--rules", "classic,deal=8", "--deal", "4", "--seat", seat]) == 0
    printed = capsys.readouterr().out
    game = Game(RuleSet(deal=8), deal=4)
    for owner in (0, 1):
        assert (" ".join(game.hand(owner)) in printed) == (seat in (str(owner), "open"))
    assert ("(8 hidden)" in printed) == (seat != "open")


def test_the_defaults(capsys: Printed) -> None:
    assert main(["show"]) == 0
    assert capsys.readouterr().out == text(Game("classic").view(0)) + "\n"
    assert main(["perft"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10


# --- what is wrong ---


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("replay missing.jsonl", "No such file"),
        ("replay .", "Is a directory"),
        ("perft --depth 0", "depth must be a whole number from 1 to 200, not 0"),
        ("perft --seed -1", "seed -1 is outside"),
        ("show --rules tarot", "unknown preset 'tarot'"),
        ("show --rules classic,deal=25", "deal=25: two hands of 25"),
        ("show --deal -3", "deal -3 is outside"),
    ],
)
def test_an_error_is_one_line_and_status_1(words: str, message: str, capsys: Printed) -> None:
    assert main(words.split()) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("conquian_env: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", ["", "play", "replay", "show --seat 2", "perft --depth ten", "replay f --line x"]
)
def test_wrong_usage_is_status_2(words: str, capsys: Printed) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 2
    assert "usage: python -m conquian_env" in capsys.readouterr().err


# --- as a program ---


def test_it_runs_as_a_program(games: Path) -> None:
    done = run("replay", games, "--line", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(won().heading)
    done = run("replay", games, "--line", 3)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"conquian_env: {games}, line 3: the file has 2 lines\n"


def test_a_reader_that_stops_early_is_no_error(games: Path) -> None:
    games.write_text(games.read_text() * 50)  # more than a pipe holds
    command = [sys.executable, "-m", "conquian_env", "replay", str(games)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
