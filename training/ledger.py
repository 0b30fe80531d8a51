"""What a tournament has played so far, in a file that a killed process leaves readable.

The first line says what is played; each other line is one part, written when it is over. A line
that was cut off is dropped, and its part played again.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from agents.process import Fault
from conquian_env import GameRecord
from conquian_env.errors import ConquianError, shown
from training.backends import Setting
from training.match import GIVEN_UP, Forfeit, MatchResult
from training.schedule import Part
from training.toml import STRICT, first_fault

FORMAT = "conquian-ledger-2"
KINDS = {*map(str, Fault), GIVEN_UP}

Plies = Annotated[int, Field(ge=0, le=np.iinfo(np.int16).max)]


class LedgerError(ConquianError):
    """A ledger that cannot be gone on with; names the file."""


@dataclass(frozen=True, config=STRICT)
class _Line:
    """A part as it is written; ``head`` is a digest of the line that says what is played."""

    head: str
    part: tuple[int, int, int, int]
    payoff: tuple[tuple[float, float], ...]
    plies: tuple[tuple[Plies, Plies], ...]
    forfeits: tuple[Forfeit, ...]
    records: tuple[str, ...]


_LINE = TypeAdapter(_Line)


class Ledger:
    """Parts that have been played.

    Args:
        path: the file; made if it is not there.
        content: what is played, as JSON has it; a file of another tournament is refused.
        setting: of the games.
        todo: all parts that there are.

    Attributes:
        played: the result of each part.

    Raises:
        LedgerError: the file is no ledger, or one of another tournament, or cannot be written.
    """

    def __init__(
        self, path: Path, content: dict[str, Any], setting: Setting, todo: Sequence[Part]
    ) -> None:
        self.path, self.setting, self.todo = path, setting, frozenset(todo)
        self.content, self.head = content, _line({"format": FORMAT, "tournament": content})
        self.digest = hashlib.sha256(self.head).hexdigest()[:16]
        self.played: dict[Part, MatchResult] = {}
        if path.exists() and not self.head.startswith(path.read_bytes()):
            self._read()
        else:
            path.write_bytes(b"")
            self._append(self.head)

    def add(self, part: Part, result: MatchResult) -> None:
        """Write down a part, for good.

        Raises:
            LedgerError: it cannot be written.
        """
        line = {
            "head": self.digest,
            "part": list(part),
            "payoff": result.payoff.tolist(),
            "plies": result.plies.tolist(),
            "forfeits": [asdict(forfeit) for forfeit in result.forfeits],
            "records": [record.to_json() for record in result.records],
        }
        self._append(_line(line))
        self.played[part] = result

    def _append(self, line: bytes) -> None:
        try:
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise LedgerError(f"{self.path}: {error.strerror}") from None

    def _read(self) -> None:
        """Take over what is there; what was cut off at the end goes."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = whole.splitlines() or [b""]
        if head != self.head.rstrip():
            raise LedgerError(f"{self.path} {_other(head, self.content)}")
        for number, text in enumerate(lines, 2):
            try:
                line = _LINE.validate_json(text, strict=True)
                part = Part(*line.part)
                self.played[part] = self._result(part, line)
            except ValidationError as error:
                raise self._refused(number, first_fault(error)) from None
            except (ValueError, RecursionError) as error:
                raise self._refused(number, str(error)) from None
        if len(whole) < len(data):
            os.truncate(self.path, len(whole))

    def _refused(self, number: int, why: str) -> LedgerError:
        return LedgerError(f"{self.path} is no ledger: line {number}: {why}")

    def _result(self, part: Part, line: _Line) -> MatchResult:
        if line.head != self.digest:
            raise ValueError("it is a part of another tournament")
        if part not in self.todo or part in self.played:
            raise ValueError(f"part {list(part)} comes twice, or is none of this tournament")
        payoff, plies = np.array(line.payoff, np.float32), np.array(line.plies, np.int16)
        if payoff.shape != (part.stop - part.start, 2) or plies.shape != payoff.shape:
            raise ValueError(f"part {list(part)} has {payoff.shape} payoffs, {plies.shape} plies")
        stakes = 2 ** np.arange(self.setting.rules.highest_stake.bit_length())
        if not np.isin(np.abs(payoff), [0, *stakes]).all():
            raise ValueError("there are payoffs that no game has")
        first, second = (self.setting.specs[number] for number in part[:2])
        for forfeit in line.forfeits:
            _check_forfeit(forfeit, part, (first, second))
        records = tuple(map(GameRecord.from_json, line.records))
        return MatchResult(first, second, payoff, plies, line.forfeits, records)


def _check_forfeit(forfeit: Forfeit, part: Part, agents: tuple[str, str]) -> None:
    if not (
        part.start <= forfeit.deal < part.stop
        and forfeit.game in (0, 1)
        and forfeit.agent in agents
        and forfeit.kind in KINDS
    ):
        raise ValueError(f"there is no such forfeit: {shown(forfeit)}")


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _other(head: bytes, ours: dict[str, Any]) -> str:
    """What is the matter with a first line that should say what we play."""
    try:
        found = json.loads(head)
        named, theirs = found["format"], found["tournament"]
        keys = [key for key in {**ours, **theirs} if theirs.get(key) != ours.get(key)]
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return f"is no ledger of format {FORMAT}"
    if named != FORMAT:
        return f"is of format {shown(named)}, not {FORMAT}"
    differing = (f"{key} was {theirs.get(key)!r}, and is {ours.get(key)!r}" for key in keys)
    return f"is of another tournament: {', '.join(differing)}"
