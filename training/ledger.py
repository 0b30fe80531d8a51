"""What a tournament has played so far, in a file that a killed process leaves readable.

The first line says what is played; each other line is one part, written when it is over. A line
that was cut off is dropped, and its part played again.
"""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from conquian_env import GameRecord
from conquian_env.errors import ConquianError
from training.match import Forfeit, MatchResult
from training.schedule import Part

FORMAT = "conquian-ledger-1"


class LedgerError(ConquianError):
    """A ledger that cannot be gone on with; names the file."""


class Ledger:
    """Parts that have been played.

    Args:
        path: the file; made if it is not there.
        head: what is played, as JSON has it; a file with another is refused.

    Attributes:
        played: the result of each part.

    Raises:
        LedgerError: the file is no ledger, or one of another tournament.
    """

    def __init__(self, path: Path, head: dict[str, Any]) -> None:
        self.path, self.head = path, {"format": FORMAT, **head}
        self.played: dict[Part, MatchResult] = {}
        if path.exists() and not _line(self.head).startswith(path.read_bytes()):
            self._read()
        else:
            path.write_bytes(_line(self.head))

    def add(self, part: Part, result: MatchResult) -> None:
        """Write down a part, for good."""
        self._append(
            {
                "part": list(part),
                "payoff": result.payoff.tolist(),
                "plies": result.plies.tolist(),
                "forfeits": [asdict(forfeit) for forfeit in result.forfeits],
                "records": [record.to_json() for record in result.records],
            }
        )
        self.played[part] = result

    def _append(self, content: dict[str, Any]) -> None:
        with self.path.open("ab") as file:
            file.write(_line(content))
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> None:
        """Take over what is there; what was cut off at the end goes."""
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        try:
            head, *lines = [json.loads(line) for line in whole.splitlines()]
            if head != self.head:
                raise LedgerError(
                    f"{self.path} is of another tournament: {_differing(head, self.head)}"
                )
            for line in lines:
                self.played[Part(*line["part"])] = self._result(line)
        except (ValueError, TypeError, LookupError) as error:
            raise LedgerError(f"{self.path} is no ledger: {error}") from None
        if len(whole) < len(data):
            os.truncate(self.path, len(whole))

    def _result(self, line: dict[str, Any]) -> MatchResult:
        part = Part(*line["part"])
        payoff = np.array(line["payoff"], np.float32)
        plies = np.array(line["plies"], np.int16)
        if payoff.shape != (part.stop - part.start, 2) or plies.shape != payoff.shape:
            raise ValueError(f"part {list(part)} has {payoff.shape} payoffs, {plies.shape} plies")
        first, second = (self.head["agents"][number] for number in part[:2])
        forfeits = tuple(Forfeit(**forfeit) for forfeit in line["forfeits"])
        records = tuple(map(GameRecord.from_json, line["records"]))
        return MatchResult(first, second, payoff, plies, forfeits, records)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"


def _differing(theirs: Any, ours: dict[str, Any]) -> str:
    """The keys in which two heads differ."""
    if not isinstance(theirs, dict):
        return "no head"
    keys = [key for key in {**ours, **theirs} if theirs.get(key) != ours.get(key)]
    return ", ".join(f"{key} was {theirs.get(key)!r}, and is {ours.get(key)!r}" for key in keys)
