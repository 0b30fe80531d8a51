"""The file from which a broken tournament goes on."""

import json

import numpy as np
import pytest

from agents import make_agent
from conquian_env import RuleSet
from training.ledger import Ledger, LedgerError
from training.match import Forfeit, MatchResult, play_deals
from training.schedule import Part

HEAD = {"agents": ["greedy", "random"], "seed": 1}
PARTS = [Part(0, 1, 0, 4), Part(0, 1, 4, 6)]


def result(part: Part) -> MatchResult:
    agents = ((name, make_agent(name)) for name in HEAD["agents"])
    return play_deals(*agents, RuleSet(), np.arange(part.start, part.stop), 1, records=1)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path, HEAD)
    for part in PARTS:
        ledger.add(part, result(part))
    return path


def same(one: MatchResult, other: MatchResult) -> bool:
    arrays = (one.payoff == other.payoff).all() and (one.plies == other.plies).all()
    return bool(arrays) and (one.forfeits, one.records) == (other.forfeits, other.records)


def test_what_was_added_is_read_again(path):
    read = Ledger(path, HEAD).played
    assert list(read) == PARTS
    assert all(same(read[part], result(part)) for part in PARTS)
    assert len(read[PARTS[0]].records) == 2


def test_forfeits_are_kept(tmp_path):
    forfeit = Forfeit(3, 1, "greedy", "raised", "it raised ValueError('x')")
    zeros = np.zeros((2, 2), np.float32)
    kept = MatchResult("greedy", "random", zeros, zeros.astype(np.int16), (forfeit,))
    Ledger(tmp_path / "x", HEAD).add(Part(0, 1, 2, 4), kept)
    assert same(Ledger(tmp_path / "x", HEAD).played[Part(0, 1, 2, 4)], kept)


def test_every_place_at_which_writing_may_stop_leaves_whole_parts(path):
    data = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(ends[0], len(data), 97):
        path.write_bytes(data[:cut])
        ledger = Ledger(path, HEAD)
        whole = sum(end <= cut for end in ends) - 1
        assert list(ledger.played) == PARTS[:whole]
        for part in PARTS[whole:]:
            ledger.add(part, result(part))
        assert path.read_bytes() == data


def test_a_head_that_was_cut_off_is_written_again(path):
    data = path.read_bytes()
    path.write_bytes(data[:20])
    assert Ledger(path, HEAD).played == {}
    assert path.read_bytes() == data[: data.index(b"\n") + 1]


def test_another_tournaments_is_refused_by_what_differs(path):
    with pytest.raises(LedgerError, match="seed was 1, and is 2"):
        Ledger(path, HEAD | {"seed": 2})


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line | {"part": [0, 1, 0, 5]},
        lambda line: line | {"payoff": "x"},
        lambda line: {"part": line["part"]},
        lambda line: [line],
        lambda line: line | {"records": ["{}"]},
        lambda line: line | {"forfeits": [{"deal": 1}]},
    ],
)
def test_a_broken_line_is_refused(path, change):
    head, first, *rest = path.read_text().splitlines()
    lines = [head, json.dumps(change(json.loads(first))), *rest]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerError, match=r"ledger.jsonl"):
        Ledger(path, HEAD)


def test_what_is_no_ledger_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("milk\nbread\n")
    with pytest.raises(LedgerError, match="is no ledger"):
        Ledger(path, HEAD)
    assert path.read_text() == "milk\nbread\n"
