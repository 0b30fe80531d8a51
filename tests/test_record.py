"""Records: two notations without loss, promise 7, and no record that tells another game."""

import dataclasses
import json
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conquian_env import Batch, Game, GameRecord, Outcome, RuleSet, Termination, parse_action
from conquian_env.cards import NAMES as CARD_NAMES
from conquian_env.errors import ConquianError, RecordError
from conquian_env.record import (
    FORMAT,
    append_record,
    read_record,
    read_records,
    replay,
    write_records,
)
from conquian_env.rules import PRESETS
from tests.playing import random_actions
from tests.positions import HAND_0, HAND_1, VARIANTS, force

RULES = (
    *map(RuleSet.preset, PRESETS),
    RuleSet(draw="double", exchange=True, max_deals=2, deal=8),
    RuleSet(first_card="dealt", hand_melds=True, stock=9),
    RuleSet(draw="double", suits=3, ranks=4, deal=5, stock=1, lay_order="ascending"),
)
AGENTS = (("greedy", "random"), ("ppo:runs/a b.pt,sample=true", ""), ("é|:%20", "-,-"))
STOCK = " ".join(name for name in reversed(CARD_NAMES) if name not in f"{HAND_0} {HAND_1} 6S")


def played(rules: RuleSet | str, deal: int = 0, **known: Any) -> GameRecord:
    """A game by eager random players; ``known`` cards make it begin from a position."""
    start = Game.from_position(rules, **known) if known else Game(rules, seed=7, deal=deal)
    actions = random_actions(start, seed=deal, eager=True)
    return GameRecord.of(start, actions, agents=AGENTS[deal % 3])


def games_of(rules: RuleSet) -> list[GameRecord]:
    return [played(rules, deal) for deal in range(6)]


def sample() -> GameRecord:
    """A game that seat 1 wins, with an exchange and hand melds."""
    return played("mexican", 1)


# --- two notations ---


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_json_and_text_lose_nothing(rules: RuleSet) -> None:
    for record in games_of(rules):
        assert GameRecord.from_json(record.to_json()) == record
        assert GameRecord.from_text(record.to_text()) == record
        assert "\n" not in record.to_json() + record.to_text()
        assert pickle.loads(pickle.dumps(record)) == record


def test_the_text_is_what_the_docstring_says() -> None:
    assert sample().to_text() == (
        "mexican seed=7 deal=1 agents=ppo:runs/a%20b.pt%2Csample=true, version=0.1.0 | "
        "-3H -7H pass pass +3H +2S +3C +2D +2H +3D pass pass pass pass pass pass take +KD +JD -4H "
        "pass take -AS pass pass pass take -KS pass pass take | 0-1 out"
    )
    assert played(RuleSet(deal=8, draw="double")).heading.startswith("classic,deal=8,draw=double ")


@pytest.mark.parametrize("rules", [*RULES, *VARIANTS], ids=RuleSet.to_text)
def test_rules_as_text_lose_nothing(rules: RuleSet) -> None:
    assert RuleSet.from_text(rules.to_text()) == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tarot", "unknown preset 'tarot'"),
        ("classic,deal=9,deal=8", "given twice"),
        ("classic,colour=red", "unknown rule field 'colour'"),
        ("classic,deal", "deal must be a whole number, not ''"),
        ("classic,hand_melds=1", "hand_melds must be true or false, not 1"),
        ("classic,force=true", "force must be one of"),
    ],
)
def test_rules_that_are_none_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConquianError, match=message):
        RuleSet.from_text(text)


# --- promise 7 ---


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_promise_7_a_replay_is_the_game(rules: RuleSet) -> None:
    for record in games_of(rules):
        game, states = record.start(), list(replay(record))
        assert len(states) == len(record.actions) + 1
        for state, action in zip(states, record.actions, strict=False):
            assert state == game
            game.apply(action)
        assert states[-1] == game
        assert (game.outcome, game.returns()) == (record.outcome, record.returns)


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_promise_7_observations_masks_and_rewards_of_a_batch(rules: RuleSet) -> None:
    batch, rng = Batch(8, rules, seed=5, autoreset=False), np.random.default_rng(0)
    starts = [batch.game(row) for row in range(8)]
    seen: list[list[Any]] = [[] for _ in starts]
    actions: list[list[int]] = [[] for _ in starts]
    while not batch.done.all():
        chosen = batch.sample_actions(rng)
        for row in np.flatnonzero(~batch.done):
            seen[row].append((batch.observation[row].copy(), batch.mask[row].copy()))
            actions[row].append(int(chosen[row]))
        playing = ~batch.done
        batch.step(chosen)
        for row in np.flatnonzero(playing):
            seen[row][-1] += (tuple(batch.reward[row].tolist()),)
    for start, course, choices in zip(starts, seen, actions, strict=True):
        states = list(replay(GameRecord.of(start, choices)))
        assert len(states) == len(course) + 1
        for before, after, (observation, mask, reward) in zip(
            states, states[1:], course, strict=False
        ):
            assert (before.observation(before.actor) == observation).all()
            assert (before.legal_mask() == mask).all()
            assert after.returns() == reward


@pytest.mark.parametrize("rules", ["classic", "mexican", "nano"])
def test_promise_7_real_choices_alone_are_enough(rules: str) -> None:
    batch = Batch(8, rules, seed=5, skip_forced=True, autoreset=False)
    rng, rows = np.random.default_rng(0), range(8)
    choices: list[list[int]] = [[] for _ in rows]
    while not batch.done.all():
        chosen = batch.sample_actions(rng)
        for row in np.flatnonzero(~batch.done):
            choices[row].append(int(chosen[row]))
        batch.step(chosen)
    for row in rows:
        record = GameRecord.of(Game(rules, 5, row), choices[row], skip_forced=True)
        assert list(replay(record))[-1] == batch.game(row)
        assert len(record.actions) == batch.ply[row] >= len(choices[row])


def test_states_of_a_replay_are_games_of_their_own() -> None:
    record = sample()
    first, *_ = states = list(replay(record))
    first.apply(first.legal_actions()[0])
    assert states[1:] == list(replay(record))[1:]


# --- how a game begins ---


@pytest.mark.parametrize(
    ("rules", "known"),
    [
        ("classic", {"hands": (HAND_0, HAND_1), "face_up": "6S", "stock": STOCK}),
        ("mexican", {"hands": (HAND_0[:23], HAND_1[:23]), "phase": "give",
                     "stock": f"6S 7C AH 7H JS {STOCK}"}),
        ("nano", {"hands": ("AC AD AH 2C 3C", "2D 2H 3D 3H 3S"), "face_up": "AS",
                  "removed": "2S"}),
        (RuleSet(draw="double", first_card="dealt"),
         {"hands": (HAND_0, HAND_1), "face_up": "6S", "stock": STOCK}),
    ],
)  # fmt: skip
def test_known_cards(rules: RuleSet | str, known: dict[str, Any]) -> None:
    record = played(rules, 2, **known)
    assert record.dealt is not None
    assert record.start() == Game.from_position(rules, **known)
    assert f"dealt={record.dealt[0].replace(' ', '')}/" in record.heading
    assert GameRecord.from_text(record.to_text()) == record
    assert GameRecord.from_json(record.to_json()) == record


def test_a_record_begins_with_a_fresh_deal() -> None:
    later = Game("classic", seed=1)
    later.apply(later.legal_actions()[0])
    for start in (later, force(), Game().resample_hidden(0, np.random.default_rng(0))):
        with pytest.raises(RecordError, match=r"^(start|dealt): "):
            GameRecord.of(start, [])
    begun = Game("classic", seed=0)
    begun.apply(0)
    with pytest.raises(RecordError, match=r"^start: a record begins with a fresh deal"):
        GameRecord.of(begun, [])


def test_of_leaves_the_start_as_it_is() -> None:
    start = Game("classic", seed=1)
    GameRecord.of(start, random_actions(start, seed=0))
    assert start == Game("classic", seed=1)


def test_a_game_still_in_play_has_no_outcome() -> None:
    record = GameRecord.of(Game("classic", seed=9), [1], agents=("alice", "bob"))
    assert (record.outcome, record.returns, record.result) == (None, (0.0, 0.0), "*")
    assert record.to_text().endswith(" | take | *")
    begun = GameRecord.of(Game("classic", seed=9), [])
    for one in (record, begun):
        assert GameRecord.from_json(one.to_json()) == GameRecord.from_text(one.to_text()) == one


# --- what is refused ---


def test_every_truncation_is_refused() -> None:
    record = sample()
    for read, line in (
        (GameRecord.from_json, record.to_json()),
        (GameRecord.from_text, record.to_text()),
    ):
        for end in range(len(line)):
            with pytest.raises(ConquianError):
                read(line[:end])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "conquian-record-3", "another version of conquian-env: format 'conquian-rec"),
        ("format", "conquian-game-2", "not a record"),
        ("format", None, "not a record"),
        ("rules", "mexican", "rules must be a table"),
        ("rules", {"deal": 8}, "rules: draw is missing"),
        ("seed", 8, "^ply "),
        ("seed", -1, "^seed -1"),
        ("seed", 7.0, "^seed must be a whole number"),
        ("deal", 0, "^ply "),
        ("deal", None, "^deal must be"),
        ("dealt", ["", "", ""], "^dealt: known cards have seed 0"),
        ("dealt", "2C", "^dealt must be 3 of type str"),
        ("agents", ["alice"], "^agents must be 2 of type str"),
        ("agents", ["alice", 1], "^agents must be"),
        ("agents", "ab", "^agents must be 2 of type str"),
        ("version", 1, "^version must be"),
        ("actions", [], "^winner: the record says 1, the game None"),
        ("actions", [62, 66], r"^ply 1: discard 4H"),
        ("actions", [83], "^ply 0: unknown action 83"),
        ("actions", [True], "^actions must be values of type int"),
        ("actions", [1.0], "^actions must be values of type int"),
        ("actions", {"0": 1}, "^actions must be values of type int"),
        ("outcome", None, "^winner: the record says None, the game 1"),
        ("outcome", {"winner": 0, "termination": "out"}, "^winner: the record says 0, the game 1"),
        ("outcome", {"winner": 1, "termination": "stock"}, "^termination: .* stock, the game out"),
        ("outcome", {"winner": True, "termination": "out"}, "^winner must be"),
        ("outcome", {"winner": [], "termination": "out"}, "^winner must be"),
        ("outcome", {"winner": 1, "termination": []}, "^termination must be"),
        ("outcome", {"winner": 1}, "^outcome: termination is missing"),
        ("outcome", "out", "^outcome must be"),
        ("returns", [1.0, -1.0], r"^returns: the record says \(1.0, -1.0\), the game \(-1.0"),
        ("returns", [float("nan"), 1.0], "^returns: "),
        ("returns", [-1.0, True], "^returns must be 2 of type float"),
        ("returns", None, "^returns must be 2 of type float"),
    ],
)  # fmt: skip
def test_an_edited_field_is_refused(field: str, value: object, message: str) -> None:
    line = sample().to_json()
    edited = json.dumps(json.loads(line) | {field: value})
    assert edited != line
    with pytest.raises(ConquianError, match=message):
        GameRecord.from_json(edited)


@pytest.mark.parametrize("field", ["format", *(f.name for f in dataclasses.fields(GameRecord))])
def test_a_missing_or_unknown_key_is_refused_by_name(field: str) -> None:
    values = json.loads(sample().to_json())
    with pytest.raises(ConquianError, match="winning is unknown"):
        GameRecord.from_json(json.dumps(values | {"winning": 1}))
    del values[field]
    with pytest.raises(ConquianError, match=field if field != "format" else "not a record"):
        GameRecord.from_json(json.dumps(values))


@pytest.mark.parametrize("foreign", ["", "1", "[]", "{}", '{"event": 3}', "null", "[" * 100_000])
def test_other_json_is_refused(foreign: str) -> None:
    with pytest.raises(ConquianError, match=r"^not a record: "):
        GameRecord.from_json(foreign)
    with pytest.raises(ConquianError, match=r"^not a record: "):
        GameRecord.from_json(Game().to_json())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mexican", "classic", "^ply 0: discard 3H"),
        ("mexican", "mexico", "^unknown preset 'mexico'"),
        ("mexican", "|", "^not a record: heading"),
        ("seed=7", "seed=7 seed=7", "^heading: a field is given twice"),
        ("seed=7", "seed=-7", "^seed must be a whole number"),
        ("seed=7 ", "", "^heading: seed is missing"),
        ("seed=7", "seat=7", "^heading: seat is unknown|^heading: seed is missing"),
        ("seed=7 deal=1", "dealt=2C3C/4C5C", "^dealt must be 3"),
        ("seed=7 deal=1", "dealt=2C3C/4C5C/6C", "^dealt: 1 cards in the stock, 24 expected"),
        ("%2C", ",", "^agents must be 2"),
        ("take", "tak", "^unknown action 'tak'"),
        ("+KD", "KD", "^unknown action 'KD'"),
        ("+KD", "+KX", "^unknown card 'KX'"),
        ("0-1 out", "1-0 out", "^winner: "),
        ("0-1 out", "0-2 out", "^returns: "),
        ("0-1 out", "1-1 out", "^result must be like"),
        ("0-1 out", "0-0 stock", "^winner: "),
        ("0-1 out", "*", "^winner: "),
        ("| 0-1 out", "", "^not a record: heading"),
        ("| 0-1", "| | 0-1", "^not a record: heading"),
    ],
)
def test_an_edited_text_is_refused(old: str, new: str, message: str) -> None:
    text = sample().to_text()
    assert old in text
    with pytest.raises(ConquianError, match=message):
        GameRecord.from_text(text.replace(old, new, 1))


def test_an_illegal_action_names_ply_and_action() -> None:
    actions = list(sample().actions)
    actions[10] = parse_action("force")
    with pytest.raises(RecordError, match=r"^ply 10: force: there is nothing to force"):
        GameRecord.of(Game("mexican", 7, 1), actions)
    with pytest.raises(RecordError, match=f"^ply {len(actions)}: pass: the game is over"):
        GameRecord.of(Game("mexican", 7, 1), [*sample().actions, 0])


def test_a_record_cannot_be_built_of_what_is_no_game() -> None:
    with pytest.raises(RecordError, match=r"^actions must be values"):
        GameRecord(RuleSet(), [0])  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"^ply 1: force: "):
        GameRecord(RuleSet(), (0, 2))
    with pytest.raises(RecordError, match=r"^rules must be 1 of type RuleSet"):
        GameRecord("classic", ())  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"^seed must be a whole number, not np.int64\(3\)"):
        GameRecord(RuleSet(), (), seed=np.int64(3))  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=r"^dealt: known cards have seed 0 and deal 0"):
        GameRecord(RuleSet(), (), deal=1, dealt=("", "", ""))
    with pytest.raises(RecordError, match=r"^agents: .* cannot be written"):
        GameRecord(RuleSet(), (), agents=("\ud800", "b"))
    record = GameRecord(RuleSet(), (0,) * 40)
    assert (record.outcome, record.returns) == (Outcome(None, Termination.STOCK), (0.0, 0.0))


def test_high_stakes_have_a_text() -> None:
    rules = RuleSet(draw="double", max_deals=7)
    for deal in range(100):
        game, actions = Game(rules, seed=5, deal=deal), []
        while not game.is_over:
            legal = game.legal_actions()
            actions.append(0 if game.redeal < 5 else legal[-1] if legal[-1] < 43 else legal[0])
            game.apply(actions[-1])
        if game.returns()[0]:
            break
    record = GameRecord.of(Game(rules, seed=5, deal=deal), actions)
    assert record.result in ("32-0 out", "0-32 out", "64-0 out", "0-64 out")
    assert GameRecord.from_text(record.to_text()) == record


# --- files ---


def test_files_of_records(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    games = [played(rules, deal) for rules in PRESETS for deal in range(3)]
    write_records(path, games)
    assert read_records(path) == games
    assert read_record(path, 3) == games[2]
    assert append_record(str(path), games[0]) == len(games) + 1
    assert read_records(str(path)) == [*games, games[0]]
    write_records(path, [])
    assert read_records(path) == []
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    def broken() -> Iterator[GameRecord]:
        yield played("classic")
        raise KeyboardInterrupt

    path = tmp_path / "games.jsonl"
    write_records(path, [sample()])
    with pytest.raises(KeyboardInterrupt):
        write_records(path, broken())
    assert read_records(path) == [sample()]
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_is_added_to_any_file(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    assert append_record(path, sample()) == 1  # which was not there
    path.write_bytes(path.read_bytes() + b"{cut")
    assert append_record(path, sample()) == 3
    assert read_record(path, 1) == read_record(path, 3) == sample()


def test_a_record_that_cannot_be_added_leaves_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "games.jsonl"
    append_record(path, sample())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        append_record(path, sample())
    monkeypatch.undo()
    assert read_records(path) == [sample()]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"{", b"["),
        (b"greedy|ppo", b"\xff"),
        (b"1.0]", b""),
        (FORMAT.encode(), b"conquian-record-0"),
        (b'"seed": 7', b'"seed": 8'),
        (b"{.*", b""),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_loaded(tmp_path: Path, old: bytes, new: bytes) -> None:
    path, good = tmp_path / "games.jsonl", sample().to_json().encode()
    bad = re.sub(old, new, good, count=1)
    assert bad != good
    path.write_bytes(b"\n".join([good, good, bad, good]))
    with pytest.raises(RecordError, match=r"games\.jsonl, line 3: ") as caught:
        read_records(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(RecordError, match=r"games\.jsonl, line 3: "):
        read_record(path, 3)
    assert read_record(path, 4) == sample()


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_a_line_that_is_not_there(tmp_path: Path, number: int) -> None:
    write_records(tmp_path / "games.jsonl", [sample()])
    with pytest.raises(RecordError, match=rf"games\.jsonl, line {number}: the file has 1 lines"):
        read_record(tmp_path / "games.jsonl", number)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_records(tmp_path / "games.jsonl")
