"""The command line: what it prints, and one line on stderr for whatever is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from conquian_env import Game, GameRecord, RuleSet
from conquian_env.cli import main
from conquian_env.perft import perft
from conquian_env.record import read_records, replay, write_records
from conquian_env.render import text
from conquian_env.viewer import to_html
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


def test_show_with_a_file_prints_its_games(games: Path, capsys: Printed) -> None:
    assert main(["replay", str(games)]) == 0
    replayed = capsys.readouterr().out
    assert main(["show", str(games)]) == 0
    assert capsys.readouterr().out == replayed
    assert main(["show", str(games), "--line", "2", "--seat", "1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{drawn().heading}\n")
    for game in replay(drawn()):
        assert text(game.view(1)) in printed
        assert text(game.view(0), game.view(1)) not in printed


def test_a_seat_is_not_shown_what_the_other_gave(games: Path, capsys: Printed) -> None:
    assert main(["show", str(games), "--line", "1", "--seat", "1"]) == 0
    printed = capsys.readouterr().out
    assert "\n1. give\n" in printed
    assert "\n2. discard " in printed


def test_show_writes_a_page(games: Path, tmp_path: Path, capsys: Printed) -> None:
    page, records = tmp_path / "out.html", read_records(games)
    assert main(["show", str(games), "--html", str(page)]) == 0
    assert page.read_text() == to_html(records)
    assert main(["show", str(games), "--line", "2", "--html", str(page), "--seat", "1"]) == 0
    assert page.read_text() == to_html(records[1:], 1)
    assert capsys.readouterr().out == f"replay: {page}\n" * 2
    assert sorted(tmp_path.iterdir()) == [games, page]


def test_a_page_that_cannot_be_made_leaves_what_was_there(games: Path, capsys: Printed) -> None:
    page, folder = games.with_name("out.html"), games.parent
    page.write_text("mine")
    good = games.read_text()
    for bad, said in (
        (good.replace("conquian-record-2", "conquian-record-9", 1), f"{games}, line 1: "),
        (good.replace('"seed": 7', '"seed": 8'), f"{games}, line 1: ply "),
        (good.replace('"deal": 8', '"dael": 8', 1), f"{games}, line 1: unknown rule field 'dael'"),
        (good + "{", f"{games}, line 3: "),
        ("", "no game"),
    ):
        games.write_text(bad)
        assert main(["show", str(games), "--html", str(page)]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("conquian_env: ")
        assert said in printed.err
        assert printed.err.count("\n") == 1
        assert page.read_text() == "mine"
    games.write_text(good)
    for target, said in (
        (folder / "none" / "x.html", f"there is no folder {folder / 'none'}"),
        (folder, "is a folder"),
        (games, "would take the place of the records"),
        (Path("/dev/null/x.html"), "there is no folder /dev/null"),
    ):
        assert main(["show", str(games), "--html", str(target)]) == 1
        assert said in capsys.readouterr().err
    assert games.read_text() == good
    assert sorted(folder.iterdir()) == [games, page]


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
    "words",
    [
        *["", "play", "replay", "show --seat 2", "perft --depth ten", "replay f --line x"],
        *["show f --seed 9", "show f --rules nano", "show f --deal 0 --html x", "show f g"],
        *["show --html x", "show --line 1", "show --seed 9 --html x", "show f --html"],
    ],
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
