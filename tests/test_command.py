"""Commands end with one line on stderr and a status, whatever went wrong."""

from argparse import ArgumentParser
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from conquian_env.errors import OptionError
from training.command import StoppedError

FOUND = Path("training").glob("*.py")
COMMANDS = sorted(path.stem for path in FOUND if "sys.exit(main())" in path.read_text("utf-8"))


@pytest.fixture(params=COMMANDS)
def main(request: pytest.FixtureRequest) -> Callable[[list[str]], int]:
    return import_module(f"training.{request.param}").main


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (OptionError("worlds must be at least 1"), 2, "error: worlds must be at least 1\n"),
        (OSError(28, "No space left on device"), 2, "error: [Errno 28] No space left on device\n"),
        (MemoryError("8 GiB"), 2, "error: 8 GiB\n"),
        (StoppedError("stopped after 3 decisions"), 130, "\nstopped after 3 decisions\n"),
    ],
    ids=["ours", "files", "memory", "stopped"],
)
def test_every_command_ends_its_errors_alike(error, status, said, main, monkeypatch, capsys):
    def parse_args(*_: object) -> None:
        raise error

    monkeypatch.setattr(ArgumentParser, "parse_args", parse_args)
    assert main([]) == status
    assert capsys.readouterr().err == said


def test_there_are_commands() -> None:
    assert {"train", "exploit", "exact", "analyse", "luck"} <= set(COMMANDS)
