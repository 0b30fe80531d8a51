"""The commands of the pages in docs/ run, in the order they stand, only with less to play."""

import importlib
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conquian_env import Game, GameRecord
from conquian_env.record import write_records
from tests.playing import random_actions
from training.config import Config, load_config

PAGES = sorted(Path("docs").glob("*.md"))
FEWER: dict[str, list[str]] = {  # options that are put behind a command
    "training.analyse": ["--worlds", "2"],
    "training.exploit": ["--pairs", "4"],
    "training.luck": ["--pairs", "20"],
    "training.tournament": ["--pairs", "4"],
}
MAINS = {"conquian_env": "conquian_env.cli"}
OTHER_TESTS = {  # programs and modules that other tests run
    "training.play": "waits for a person: test_play_terminal, test_play_web",
    "torchrun": "test_ranks, with a smaller run",
    "pip": "installs: test_recipes compares versions",
    "jupyter": "opens a browser: test_notebooks runs the notebooks",
}


def commands(path: Path) -> list[list[str]]:
    blocks = re.findall(r"```bash\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    return [shlex.split(line, comments=True) for line in "".join(blocks).splitlines()]


def smaller(path: Path) -> Config:
    """The configuration of that file, with two small rollouts."""
    config = load_config(path)
    evaluation = replace(config.evaluation, pairs=2)
    return replace(config, decisions=512, num_games=64, rollout=4, evaluation=evaluation)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages suppose to be there."""
    for name in ("configs", "agents"):
        (tmp_path / name).symlink_to(Path(name).resolve())
    actions = random_actions(Game("classic", seed=1), 0)
    record = GameRecord.of(Game("classic", seed=1), actions, ("a", "b"))
    write_records(tmp_path / "games.jsonl", [record] * 3)
    (package := tmp_path / "package").mkdir()
    (package / "module.py").write_text(
        "class Class:\n    def act(self, views):\n        return views.mask.argmax(axis=1)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for module in ("training.train", "training.exploit"):
        monkeypatch.setattr(f"{module}.load_config", smaller)
    anchors = dict.fromkeys(importlib.import_module("training.benchmark").ANCHORS, 2)
    monkeypatch.setattr("training.benchmark.ANCHORS", anchors)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("path", [path.resolve() for path in PAGES], ids=lambda path: path.name)
def test_commands_run(path: Path, desk: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name, content in zip(
        ["mine.toml"], re.findall(r"```toml\n(.*?)```", text, re.S), strict=False
    ):
        (desk / name).write_text(content, encoding="utf-8")
    for words in commands(path):
        if {words[0], *words[2:3]} & OTHER_TESTS.keys():
            continue
        python, flag, module, *rest = words
        assert (python, flag) == ("python", "-m")
        main: Callable[[list[str]], Any] = importlib.import_module(MAINS.get(module, module)).main
        assert main([*rest, *FEWER.get(module, [])]) == 0, words


def test_there_are_commands() -> None:
    programs = {words[2] for path in PAGES for words in commands(path) if words[0] == "python"}
    assert programs >= {
        f"training.{name}"
        for name in ("analyse", "benchmark", "exploit", "luck", "sprt", "tournament", "train")
    }
