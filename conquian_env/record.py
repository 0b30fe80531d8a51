"""Games as they were played: one line each, of JSON for programs or of words for people.

A record holds how a game began and every action in order, passes included. Playing the actions
again gives the same observations, masks and rewards, so nothing else is kept.
"""

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote

from conquian_env.actions import action_name, parse_action
from conquian_env.errors import ConquianError, IllegalActionError, RecordError
from conquian_env.game import Game, Outcome, Termination, check_keys, load_json
from conquian_env.position import to_values, unnamed
from conquian_env.rules import RuleSet
from conquian_env.state import Phase
from conquian_env.version import __version__

FORMAT = "conquian-record-2"
_NOBODY = ("?", "?")
_RESULT = re.compile(r"(0|[1-9][0-9]?)-(0|[1-9][0-9]?) (out|stock)")
_WHOLE = re.compile(r"[0-9]{1,20}")

Dealt = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class GameRecord:
    """A game from its first deal to its end, or as far as it was played.

    Whatever makes a record plays it through: one that exists can be replayed.

    Attributes:
        rules: what was played.
        actions: ids in order, those of both seats, passes included, over all deals of the game.
        seed, deal: they fix the cards; both 0 for known cards.
        dealt: None, or the cards of a game that began from known ones: the hands of seat 0 and 1,
            and the stock in the order it is turned, the first card included. Deals to come
            (``draw="double"``) are then those of seed 0, deal 0.
        agents: who played seat 0 and seat 1; any texts.
        version: of the package that wrote the record.
        notes: nothing, or for each action a table of JSON values that says something of it, such as
            what ``training.analyse`` found. They are in JSON alone, not in the line of words.
        outcome: how the game ended, which the actions tell; None for a game still in play.
        returns: the payoff of each seat.

    Raises:
        RecordError: an action is not legal, the message names ply and action; a value is of the
            wrong kind.
        ConquianError: rules, seed, deal or cards cannot be.
    """

    rules: RuleSet
    actions: tuple[int, ...]
    seed: int = 0
    deal: int = 0
    dealt: Dealt | None = None
    agents: tuple[str, str] = _NOBODY
    version: str = __version__
    notes: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    outcome: Outcome | None = field(init=False)
    returns: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        _check("rules", (self.rules,), 1, RuleSet)
        _check("agents", self.agents, 2, str)
        _check("version", (self.version,), 1, str)
        _check("actions", self.actions, None, int)
        _check("notes", self.notes, len(self.actions) if self.notes else 0, dict)
        if not _is_json(list(self.notes)):
            raise RecordError("notes must hold what JSON can write and read again")
        for name, number in (("seed", self.seed), ("deal", self.deal)):
            if type(number) is not int:
                raise RecordError(f"{name} must be a whole number, not {number!r}")
        if self.dealt is not None:
            _check("dealt", self.dealt, 3, str)
            if (self.seed, self.deal) != (0, 0):
                raise RecordError("dealt: known cards have seed 0 and deal 0")
        game = self.start()
        for _ in _play(game, self.actions):
            pass
        object.__setattr__(self, "outcome", game.outcome)
        object.__setattr__(self, "returns", game.returns())

    @classmethod
    def of(
        cls,
        start: Game,
        actions: Iterable[int],
        agents: tuple[str, str] = _NOBODY,
        skip_forced: bool = False,
    ) -> Self:
        """The record of a game that began as ``start``, which stays as it is.

        Args:
            start: a fresh deal: ``Game(rules, seed, deal)``, or a ``from_position`` of one.
            actions: ids, legal one after the other; the game need not be over.
            agents: who played seat 0 and seat 1.
            skip_forced: ``actions`` are real choices alone, as in a Batch with ``skip_forced``;
                the forced ones are filled in.

        Raises:
            RecordError: ``start`` is no fresh deal, or an action is not legal.
        """
        dealt, played = _dealt(start), tuple(_play(start.copy(), actions, skip_forced))
        return cls(start.rules, played, start.seed, start.deal, dealt, agents)

    def start(self) -> Game:
        """The game before its first action."""
        if self.dealt is None:
            return Game(self.rules, self.seed, self.deal)
        return _deal_known(self.rules, self.dealt)

    # --- JSON, for programs ---

    def to_json(self) -> str:
        """One line; ``from_json`` gives an equal record."""
        return json.dumps({"format": FORMAT} | asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The record that ``to_json`` wrote, played through.

        Raises:
            RecordError: the text is no record, or the game ends in another way than it says.
        """
        with _record_errors():
            rules, values = load_json("record", text, FORMAT)
            check_keys("record", values, [name for name in cls.__slots__ if name != "rules"])
            values |= {name: tuple(v) for name, v in values.items() if isinstance(v, list)}
            outcome, returns = _outcome(values.pop("outcome")), values.pop("returns")
            _check("returns", returns, 2, float)
            record = cls(rules, **values)
            _check_ending(record, outcome, returns)
            return record

    # --- words, for people ---

    @property
    def heading(self) -> str:
        """How the game began and who played, as in ``classic seed=9 deal=0 agents=alice,bob``."""
        if self.dealt is None:
            origin = f"seed={self.seed} deal={self.deal}"
        else:
            origin = "dealt=" + "/".join("".join(text.split()) for text in self.dealt)
        agents = ",".join(map(_quoted, self.agents))
        return f"{self.rules.to_text()} {origin} agents={agents} version={_quoted(self.version)}"

    @property
    def result(self) -> str:
        """What each seat won, and how, as in ``1-0 out``; ``*`` for a game still in play."""
        if self.outcome is None:
            return "*"
        won, lost = (max(int(paid), 0) for paid in self.returns)
        return f"{won}-{lost} {self.outcome.termination}"

    def to_text(self) -> str:
        """One line of three parts: heading, actions and result.

        An action is ``pass``, ``take`` or ``force``, ``+4S`` for a card that is laid and ``-KD``
        for one that is discarded or given: ``classic seed=9 deal=0 agents=alice,bob version=0.1.0
        | pass take +4S +5S -KD … | 1-0 out``. Rules are a preset and the fields that differ
        (``classic,deal=8``). Known cards stand in place of seed and deal:
        ``dealt=HAND/HAND/STOCK``. In agents' names other signs than letters, digits and
        ``_.-~/:=?`` are percent-encoded. ``from_text`` gives an equal record, without its notes.
        """
        return f"{self.heading} | {' '.join(map(_word, self.actions))} | {self.result}"

    @classmethod
    def from_text(cls, text: str) -> Self:
        """The record that ``to_text`` wrote, played through.

        Raises:
            RecordError: the text is no record, or the game ends in another way than it says.
        """
        parts = text.split("|")
        if len(parts) != 3:
            raise RecordError("not a record: heading | actions | result expected")
        rules, *fields = parts[0].split() or [""]
        with _record_errors():
            actions = tuple(map(_action, parts[1].split()))
            record = cls(RuleSet.from_text(rules), actions, **_fields(fields))
            _check_ending(record, *_result(parts[2].strip()))
            return record


def replay(record: GameRecord) -> Iterator[Game]:
    """The game before its first action and after each, every one a game of its own.

    ``zip(replay(record), record.actions)`` gives each decision with what was chosen.
    """
    game = record.start()
    yield game.copy()
    for action in record.actions:
        game.apply(action)
        yield game.copy()


def write_records(path: Path | str, records: Iterable[GameRecord]) -> None:
    """Write a file of JSON lines in place of what was there, whole or not at all."""
    write_whole(path, (record.to_json() + "\n" for record in records))


def write_whole(path: Path | str, texts: Iterable[str]) -> None:
    """Write a file in place of what was there, whole or not at all."""
    path = Path(os.path.realpath(path))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(texts)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def append_record(path: Path | str, record: GameRecord) -> int:
    """Add a line to a file of JSON lines, whole or not at all; its number, the first being 1.

    Raises:
        OSError: it cannot be written; the file is as it was.
    """
    with Path(path).open("a+b", buffering=0) as file:
        file.seek(0)
        before = file.read()
        cut = not before.endswith(b"\n") and before != b""  # a broken line does not spoil ours
        line = b"\n" * cut + record.to_json().encode() + b"\n"
        try:
            if file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(len(before))
            raise
    return (before + line).count(b"\n")


def read_records(path: Path | str) -> list[GameRecord]:
    """All records of a file of JSON lines, each played through.

    Raises:
        RecordError: a line is no record; the message begins with ``PATH, line N``.
        OSError: the file cannot be read.
    """
    lines = Path(path).read_bytes().splitlines()
    return [_parse(path, number, line) for number, line in enumerate(lines, 1)]


def read_record(path: Path | str, number: int) -> GameRecord:
    """The record in one line of a file, whatever is in the others; the first is line 1.

    Raises:
        RecordError: there is no such line, or it is no record.
        OSError: the file cannot be read.
    """
    lines = Path(path).read_bytes().splitlines()
    if not 1 <= number <= len(lines):
        raise RecordError(f"{path}, line {number}: the file has {len(lines)} lines")
    return _parse(path, number, lines[number - 1])


def _parse(path: Path | str, number: int, line: bytes) -> GameRecord:
    try:
        return GameRecord.from_json(line.decode())
    except (RecordError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}, line {number}: {error}") from None


@contextmanager
def _record_errors() -> Iterator[None]:
    """Whatever is wrong with rules, cards or actions is wrong with the record."""
    try:
        yield
    except ConquianError as error:
        raise RecordError(str(error)) from None


def _play(game: Game, actions: Iterable[int], skip_forced: bool = False) -> Iterator[int]:
    """Play actions in place, one at a time; with ``skip_forced`` also those between."""
    yield from _play_forced(game, skip_forced)
    for action in actions:
        try:
            game.apply(action)
        except IllegalActionError as error:
            raise RecordError(f"ply {game.ply}: {error}") from None
        yield int(action)
        yield from _play_forced(game, skip_forced)


def _play_forced(game: Game, skip_forced: bool) -> Iterator[int]:
    while skip_forced and len(legal := game.legal_actions()) == 1:
        game.apply(legal[0])
        yield legal[0]


def _dealt(start: Game) -> Dealt | None:
    """The cards of a start that its seed and deal number do not give."""
    if start == Game(start.rules, start.seed, start.deal):
        return None
    stock = to_values(start.to_state()[0])["stock"]
    pile = f"{start.face_up or ''} {stock}".strip()
    dealt = (" ".join(start.hand(0)), " ".join(start.hand(1)), pile)
    if _deal_known(start.rules, dealt) != start:
        raise RecordError("start: a record begins with a fresh deal")
    return dealt


def _deal_known(rules: RuleSet, dealt: Dealt) -> Game:
    """A fresh deal of known cards, its first one turned unless cards are exchanged (2.1, 6)."""
    *hands, pile = dealt
    stock = pile.split()
    if len(stock) != rules.stock_size:
        raise RecordError(f"dealt: {len(stock)} cards in the stock, {rules.stock_size} expected")
    turned = None if rules.exchange else stock.pop(0)
    return Game.from_position(
        rules,
        hands=(hands[0], hands[1]),
        face_up=turned,
        stock=" ".join(stock),
        dead="",
        removed=unnamed(rules, dealt),
        phase=Phase.GIVE if rules.exchange else Phase.TURNED,
    )


def _check(name: str, values: object, count: int | None, kind: type) -> None:
    """Refuse what is no tuple of so many values of a type; None is any number of them."""
    if (
        not isinstance(values, tuple)
        or count not in (None, len(values))
        or not all(type(value) is kind for value in values)
    ):
        number = "values" if count is None else count
        raise RecordError(f"{name} must be {number} of type {kind.__name__}, not {values!r:.60}")
    if kind is str and any(map(_unwritable, values)):
        raise RecordError(f"{name}: {values!r:.60} cannot be written as UTF-8")


def _is_json(values: object) -> bool:
    """Whether JSON gives the values back as they were."""
    try:
        return bool(json.loads(json.dumps(values, allow_nan=False)) == values)
    except (TypeError, ValueError, RecursionError):
        return False


def _unwritable(text: str) -> bool:
    """Whether half of a surrogate pair is in a text."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _check_ending(
    record: GameRecord, outcome: Outcome | None, returns: tuple[float, float]
) -> None:
    """Refuse a text that says another end than that of its game."""
    said, found = _ending(outcome, returns), _ending(record.outcome, record.returns)
    for name in said:
        if said[name] != found[name]:
            raise RecordError(f"{name}: the record says {said[name]}, the game {found[name]}")


def _ending(outcome: Outcome | None, returns: tuple[float, float]) -> dict[str, object]:
    winner, termination = (outcome.winner, outcome.termination) if outcome else (None, None)
    return {"winner": winner, "termination": termination, "returns": returns}


def _outcome(value: object) -> Outcome | None:
    """An outcome from its JSON value."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise RecordError(f"outcome must be a table of fields, not {value!r:.60}")
    check_keys("outcome", value, Outcome.__slots__)
    winner, termination = value["winner"], value["termination"]
    if winner not in (None, 0, 1) or isinstance(winner, (bool, float)):
        raise RecordError(f"winner must be 0, 1 or null, not {winner!r:.60}")
    if termination not in list(Termination):
        raise RecordError(f"termination must be out or stock, not {termination!r:.60}")
    return Outcome(winner, Termination(termination))


def _quoted(text: str) -> str:
    return quote(text, safe="/:=?")


def _word(action: int) -> str:
    return action_name(action).replace("lay ", "+").replace("discard ", "-")


def _action(word: str) -> int:
    return parse_action(word.replace("+", "lay ").replace("-", "discard "))


def _fields(words: list[str]) -> dict[str, Any]:
    """The values of a heading, from words such as ``seed=9``."""
    pairs = [word.partition("=")[::2] for word in words]
    values: dict[str, Any] = dict(pairs)
    if len(values) < len(pairs):
        raise RecordError("heading: a field is given twice")
    origin = ["dealt"] if "dealt" in values else ["seed", "deal"]
    check_keys("heading", values, [*origin, "agents", "version"])
    for name in origin:
        values[name] = _known(values[name]) if name == "dealt" else _whole(name, values[name])
    values["agents"] = tuple(map(unquote, values["agents"].split(",")))
    values["version"] = unquote(values["version"])
    return values


def _known(text: str) -> tuple[str, ...]:
    """Three texts of cards from ``HAND/HAND/STOCK``, written without blanks."""
    return tuple(re.sub(r"(..)(?=.)", r"\1 ", cards) for cards in text.split("/"))


def _whole(name: str, text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise RecordError(f"{name} must be a whole number, not {text!r:.60}")
    return int(text)


def _result(text: str) -> tuple[Outcome | None, tuple[float, float]]:
    """Outcome and returns from ``1-0 out``, or from ``*`` for a game still in play."""
    if text == "*":
        return None, (0.0, 0.0)
    match = _RESULT.fullmatch(text)
    if match is None or "0" not in match.groups():
        raise RecordError(f"result must be like 1-0 out, 0-0 stock or *, not {text!r:.60}")
    first, second, termination = match.groups()
    won = float(int(first) - int(second))
    winner = None if won == 0 else int(won < 0)
    return Outcome(winner, Termination(termination)), (won, 0.0 - won)
