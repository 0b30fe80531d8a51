"""Annotated records: what each note says is what the solver and the agents say."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conquian_env import Game, GameRecord, RuleSet, Views, action_name, solve
from conquian_env.errors import OptionError, RecordError
from conquian_env.record import read_records, replay, write_records
from tests.playing import random_actions
from training.analyse import MISTAKE, Analyst, main, mistakes


class Broken:
    """Fails when it is asked how likely it is to do something."""

    def act(self, views: Views) -> np.ndarray:
        return views.mask.argmax(axis=1)

    def probabilities(self, views: Views) -> list[list[float]]:
        raise IndexError


class Misshapen(Broken):
    """Has probabilities for nothing."""

    def probabilities(self, views: Views) -> list[list[float]]:
        return []


class Other(Broken):
    """Plays other rules only."""

    rules = RuleSet(deal=8)


def played(rules: str, seed: int) -> GameRecord:
    start = Game(rules, seed=seed)
    return GameRecord.of(start, random_actions(start, seed, eager=True), ("greedy", "x:y"))


@pytest.mark.parametrize("rules", ["nano", "classic", "mexican"])
def test_notes_say_what_solver_and_agents_say(rules: str) -> None:
    record = played(rules, 5)
    annotated = Analyst(worlds=10, agents=("greedy", "random")).annotate(record)
    assert annotated.actions == record.actions
    values = 0
    for game, action, note in zip(replay(record), record.actions, annotated.notes, strict=False):
        legal = [action_name(each) for each in game.legal_actions()]
        if len(legal) == 1:
            assert note == {}
            continue
        assert list(note["agents"]["greedy"].values()).count(1.0) == 1
        assert note["agents"]["random"] == dict.fromkeys(legal, round(1 / len(legal), 4))
        if game.phase == "give":
            assert set(note) == {"agents"}
            continue
        solution = solve(game)
        assert note["value"] == solution.value
        assert note["values"] == {action_name(a): v for a, v in solution.actions.items()}
        assert list(note["means"]) == legal
        assert note["loss"] == pytest.approx(
            max(note["means"].values()) - note["means"][action_name(action)], abs=1e-4
        )
        values += 1
    assert values > 2


def test_notes_are_kept_by_json_and_do_not_hang_on_the_run() -> None:
    record = played("nano", 3)
    one, two = (Analyst(worlds=5).annotate(record) for _ in range(2))
    assert one == two
    assert GameRecord.from_json(one.to_json()) == one
    assert GameRecord.from_text(one.to_text()) == record
    assert Analyst(worlds=5, seed=1).annotate(record) != one


def test_a_mistake_is_found_and_the_worst_comes_first() -> None:
    """Random actions until some action of a decision is worse than another: that one is played."""
    start, rng = Game("classic", seed=4), np.random.default_rng(0)
    game, actions = start.copy(), []
    while len(set((values := solve(game).actions).values())) == 1:
        actions.append(int(rng.choice(game.legal_actions())))
        game.apply(actions[-1])
    seat = game.actor
    actions.append((min if seat == 0 else max)(values, key=values.get))
    annotated = Analyst(worlds=40).annotate(GameRecord.of(start, actions, ("a\nb", "me:Mine")))
    last = annotated.notes[-1]
    assert last["values"][action_name(actions[-1])] != last["value"]
    losses = [float(line.split("gives away ")[1].split()[0]) for line in mistakes(annotated)]
    assert losses == sorted(losses, reverse=True)
    assert min(losses, default=1.0) >= MISTAKE
    quiet = ({},) * (len(actions) - 1)
    (line,) = mistakes(replace(annotated, notes=(*quiet, last | {"loss": 0.5})))
    name, who = action_name(actions[-1]), ("a%0Ab", "me:Mine")[seat]
    assert line.startswith(f"ply {len(actions)}, seat {seat} ({who}): {name} gives away 0.50 on")
    sign = 1 if seat == 0 else -1
    worth, best = sign * last["values"][name], sign * last["value"]
    assert worth < best
    ends = {1: "won", 0: "drawn", -1: "lost"}
    assert line.endswith(f" is better); with open cards {ends[worth]} instead of {ends[best]}")
    for opened in (last["value"], None):  # as good as the best, or not known
        same = last | {"loss": 0.5, "values": last["values"] | {name: opened}}
        (line,) = mistakes(replace(annotated, notes=(*quiet, same)))
        assert line.endswith(" is better)")
    assert not list(mistakes(replace(annotated, notes=(*quiet, last | {"loss": 0.05}))))


def test_the_command_writes_the_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "games.jsonl"
    write_records(path, [played("nano", 1), played("nano", 2)])
    assert main([str(path), "--worlds", "3", "--out", str(tmp_path / "out.jsonl")]) == 0
    said = capsys.readouterr()
    assert "line 2: nano seed=2" in said.out
    assert said.out.endswith(f"annotated: {tmp_path / 'out.jsonl'}\n")
    actions = sum(len(record.actions) for record in read_records(path))
    assert f"{actions}/{actions}" in said.err
    assert all(record.notes for record in read_records(tmp_path / "out.jsonl"))
    assert not any(record.notes for record in read_records(path))
    assert main([str(path), "--worlds", "3"]) == 0
    assert read_records(path) == read_records(tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--worlds", "0"], "worlds must be at least 1"),
        (["--agents", "nobody"], "unknown agent 'nobody'"),
        (["--agents", "tests.test_analyse:Broken"], "agent tests.test_analyse:Broken failed"),
        (["--agents", "tests.test_analyse:Misshapen"], "probabilities have shape (0,)"),
        (["--agents", "tests.test_analyse:Other"], "plays"),
        (["--seed", "-1"], "seed -1"),
        (["--out", "no/such/folder/x.jsonl"], "no/such"),
    ],
)
def test_bad_arguments_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    path = tmp_path / "games.jsonl"
    write_records(path, [played("nano", 1)])
    before = path.read_bytes()
    assert main([str(path), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main([str(tmp_path / "none.jsonl")]) == 2


def test_rules_without_values_are_refused() -> None:
    with pytest.raises(OptionError, match="draw"):
        Analyst(worlds=2).annotate(played("classic,draw=double", 1))


@pytest.mark.parametrize("notes", [({},), ["x"], ("x",), 5])
def test_notes_are_one_table_for_each_action(notes: object) -> None:
    record = played("nano", 1)
    with pytest.raises(RecordError, match="notes must be"):
        GameRecord(record.rules, record.actions, record.seed, notes=notes)
    values = json.loads(record.to_json())
    with pytest.raises(RecordError, match="notes"):
        GameRecord.from_json(json.dumps(values | {"notes": notes}))


def test_what_the_limit_leaves_open_is_null() -> None:
    notes = [note for note in Analyst(worlds=2, limit=1).annotate(played("nano", 1)).notes if note]
    assert any(note["value"] is None for note in notes)
    assert any(None in note["means"].values() for note in notes)


@pytest.mark.parametrize("note", [{"x": float("nan")}, {1: 2}, {"x": (1,)}, {"x": object()}])
def test_notes_are_what_json_gives_back(note: dict) -> None:
    record = played("nano", 1)
    with pytest.raises(RecordError, match="notes must hold"):
        GameRecord(record.rules, record.actions, record.seed, notes=(note,) * len(record.actions))
