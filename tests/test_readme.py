"""The snippets of the README run, in the order they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conquian_env.cli import main
from training.benchmark import leaderboard

README = Path("README.md").read_text(encoding="utf-8")


def snippets(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_snippets_and_console_sessions(capsys, monkeypatch, tmp_path):
    """The sessions after the snippets, in the folder where those have left their files."""
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    assert len(snippets("python")) >= 5
    for snippet in snippets("python"):
        exec(compile(snippet, "README.md", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "['pass', 'take']" in printed
    assert "(4096, 416) (4096, 83)" in printed
    assert "0.3857" in printed  # the exploitability of the OpenSpiel game
    assert "(64, 416) (64,)" in printed  # the vector environment
    assert "\n0\n{'pass': -1, 'take': 0}\n['take', 'lay KC', 'lay KD', 'discard 2H']\n" in printed
    score, low, high = map(float, re.search(r"([+-]\S+) \[(\S+), (\S+)\]", printed).groups())
    assert low < score < high < 0  # who never takes loses to greedy
    assert all(text in printed for text in snippets("text"))
    sessions = re.findall(r"^\$ (.*)\n([^$]*)", "".join(snippets("console")), flags=re.MULTILINE)
    assert len(sessions) >= 3
    for command, output in sessions:
        python, *words = shlex.split(command)
        assert (python, words[:2]) == ("python", ["-m", "conquian_env"])
        assert main(words[2:]) == 0
        printed = capsys.readouterr().out
        assert printed == output or (output.endswith("\n…\n") and printed.startswith(output[:-2]))


def test_the_leaderboard_is_what_the_cards_say():
    assert (
        "\n\n" + "\n".join(leaderboard(sorted(Path("docs/cards").glob("*.json")))) + "\n\n"
        in README
    )


def test_nothing_is_left_to_fill_in():
    assert not re.findall(r"^[A-Z_]{5,}$", README, flags=re.MULTILINE)


def test_make_targets_exist():
    for line in "".join(snippets("bash")).splitlines():
        if line.startswith("make"):
            target = shlex.split(line, comments=True)[1]
            subprocess.run(["make", "--dry-run", target], check=True, capture_output=True)


@pytest.mark.slow
def test_commands(tmp_path):
    """The commands of `training`, with a run of two rollouts in place of two minutes."""
    config = tmp_path / "tiny.toml"
    config.write_text("decisions = 512\nnum_games = 64\nrollout = 4\n", encoding="utf-8")
    for line in "".join(text for text in snippets("bash") if "-m training" in text).splitlines():
        words = shlex.split(line)
        if words[0] == "python":
            words = [sys.executable, *words[1:]]
            replaced = [str(config) if w.startswith("configs/") else w for w in words]
            replaced = [w.replace("runs/", f"{tmp_path}/") for w in replaced]
            if "training.exploit" in words:  # six minutes, if its own file had its way
                replaced += ["--config", str(config), "--pairs", "20"]
            subprocess.run(replaced, check=True, capture_output=True)
    assert (tmp_path / "mine" / "tournament.md").exists()
