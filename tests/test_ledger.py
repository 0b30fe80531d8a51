"""The file from which a broken tournament goes on."""

import errno
import json
import os

import numpy as np
import pytest

from agents import make_agent
from conquian_env import RuleSet
from training.backends import Setting
from training.ledger import FORMAT, Ledger, LedgerError
from training.match import Forfeit, MatchResult, play_deals
from training.schedule import Part

HEAD = {"agents": ["greedy", "random"], "seed": 1, "format": "gauntlet"}
SETTING = Setting(("greedy", "random"), RuleSet(), 1)
PARTS = [Part(0, 1, 0, 4), Part(0, 1, 4, 6)]


def opened(path, **changes) -> Ledger:
    return Ledger(path, HEAD | changes, SETTING, PARTS)


def result(part: Part) -> MatchResult:
    agents = ((name, make_agent(name)) for name in HEAD["agents"])
    return play_deals(*agents, RuleSet(), np.arange(part.start, part.stop), 1, records=1)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger = opened(path)
    for part in PARTS:
        ledger.add(part, result(part))
    return path


def same(one: MatchResult, other: MatchResult) -> bool:
    arrays = (one.payoff == other.payoff).all() and (one.plies == other.plies).all()
    return bool(arrays) and (one.forfeits, one.records) == (other.forfeits, other.records)


def test_what_was_added_is_read_again(path):
    read = opened(path).played
    assert list(read) == PARTS
    assert all(same(read[part], result(part)) for part in PARTS)
    assert len(read[PARTS[0]].records) == 2


def test_forfeits_are_kept(tmp_path):
    forfeit = Forfeit(5, 1, "greedy", "raised", "it raised ValueError('x')")
    zeros = np.zeros((2, 2), np.float32)
    kept = MatchResult("greedy", "random", zeros, zeros.astype(np.int16), (forfeit,))
    opened(tmp_path / "x").add(PARTS[1], kept)
    assert same(opened(tmp_path / "x").played[PARTS[1]], kept)


def test_every_place_at_which_writing_may_stop_leaves_whole_parts(path):
    data = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == ord("\n")]
    for cut in range(ends[0], len(data), 97):
        path.write_bytes(data[:cut])
        ledger = opened(path)
        whole = sum(end <= cut for end in ends) - 1
        assert list(ledger.played) == PARTS[:whole]
        for part in PARTS[whole:]:
            ledger.add(part, result(part))
        assert path.read_bytes() == data


def test_a_head_that_was_cut_off_is_written_again(path):
    data = path.read_bytes()
    path.write_bytes(data[:20])
    assert opened(path).played == {}
    assert path.read_bytes() == data[: data.index(b"\n") + 1]


def test_another_tournaments_is_refused_by_what_differs(path):
    with pytest.raises(LedgerError, match="seed was 1, and is 2"):
        opened(path, seed=2)


def test_the_first_key_names_the_format_whatever_is_played(path):
    head = json.loads(path.read_text().splitlines()[0])
    assert next(iter(head.items())) == ("format", FORMAT)
    assert head["tournament"] == HEAD
    other = path.read_text().replace(FORMAT, "conquian-ledger-1")
    path.write_text(other)
    with pytest.raises(LedgerError, match=f"is of format 'conquian-ledger-1', not {FORMAT}"):
        opened(path)
    assert path.read_text() == other


def forfeit(**changes):
    content = {"deal": 1, "game": 0, "agent": "greedy", "kind": "raised", "message": "no idea"}
    return lambda line: line | {"forfeits": [content | changes]}


def with_payoff(value):
    return lambda line: line | {"payoff": [[value, 0.0], *line["payoff"][1:]]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line | {"head": "0" * 16}, "another tournament"),
        (lambda line: {"part": line["part"]}, "head"),
        (lambda line: line | {"part": [0, 1, 0, 5]}, "none of this tournament"),
        (lambda line: line | {"part": [0, -1, 0, 4]}, "none of this tournament"),
        (lambda line: line | {"part": [0, 1, 4, 6]}, r"4 payoffs|\(4, 2\) payoffs"),
        (lambda line: line | {"payoff": "x"}, "payoff"),
        (lambda line: line | {"payoff": line["payoff"][1:]}, r"\(3, 2\) payoffs"),
        (with_payoff(7.0), "payoffs that no game has"),
        (with_payoff(2.0), "payoffs that no game has"),
        (with_payoff(0.5), "payoffs that no game has"),
        (with_payoff(float("nan")), "payoffs that no game has"),
        (lambda line: line | {"plies": [[70000, 1]] * 4}, "plies 0 0"),
        (lambda line: line | {"plies": [[-1, 1]] * 4}, "plies 0 0"),
        (lambda line: line | {"plies": [[True, 1]] * 4}, "plies 0 0"),
        (lambda line: line | {"records": ["{}"]}, "record"),
        (lambda line: line | {"records": ["[" * 100_000]}, "record"),
        (lambda line: line | {"more": 1}, "more"),
        (lambda line: [line], "be an object"),
        (lambda line: line | {"forfeits": [{"deal": 1}]}, "forfeits 0"),
        (forfeit(deal="1"), "forfeits 0 deal"),
        (forfeit(message=None), "forfeits 0 message"),
        (forfeit(deal=4), "no such forfeit"),
        (forfeit(game=2), "no such forfeit"),
        (forfeit(agent="expert"), "no such forfeit"),
        (forfeit(kind="cheated"), "no such forfeit"),
    ],
)
def test_a_line_that_cannot_be_is_refused(path, change, said):
    head, first, *rest = path.read_text().splitlines()
    lines = [head, json.dumps(change(json.loads(first))), *rest]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerError, match=rf"ledger.jsonl is no ledger: line 2: .*({said})"):
        opened(path)


def test_a_line_nested_too_deep_is_refused(path):
    with path.open("a") as file:
        file.write("[" * 200_000 + "\n")
    with pytest.raises(LedgerError, match=r"ledger.jsonl is no ledger: line 4"):
        opened(path)


def test_a_part_that_comes_twice_is_refused(path):
    with path.open("a") as file:
        file.write(path.read_text().splitlines()[1] + "\n")
    with pytest.raises(LedgerError, match=r"line 4: part \[0, 1, 0, 4\] comes twice"):
        opened(path)


def test_stakes_are_those_of_the_rules(tmp_path):
    setting = SETTING._replace(rules=RuleSet(draw="double"))
    twice = MatchResult(
        "greedy", "random", np.full((2, 2), -2, np.float32), np.full((2, 2), 99, np.int16)
    )
    Ledger(tmp_path / "x", HEAD, setting, PARTS).add(PARTS[1], twice)
    assert same(Ledger(tmp_path / "x", HEAD, setting, PARTS).played[PARTS[1]], twice)


def test_a_full_disk_is_told_with_the_files_name(path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    ledger = opened(path.with_name("other.jsonl"))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LedgerError, match=r"other.jsonl: No space left"):
        ledger.add(PARTS[0], result(PARTS[0]))


@pytest.mark.parametrize(
    "text", ["milk\nbread\n", "[" * 100_000 + "\n", "[]\n", '{"format": 1}\n', "x"]
)
def test_what_is_no_ledger_is_refused_and_left_as_it_is(text, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(LedgerError, match=r"notes.txt is no ledger"):
        opened(path)
    assert path.read_text() == text
