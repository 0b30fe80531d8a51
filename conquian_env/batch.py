"""Many games at once, both seats, for self-play: loops over rows; no rule is written here."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from conquian_env import engine
from conquian_env.actions import DISCARD, LAY, NUM_ACTIONS, PASS, action_name
from conquian_env.cards import count, lowest
from conquian_env.deal import seed_bits
from conquian_env.errors import IllegalActionError, OptionError, shown
from conquian_env.game import Game
from conquian_env.jit import jit
from conquian_env.melds import rulebook
from conquian_env.observation import (
    HIDDEN_SIZE,
    MASK_PADDING,
    MASK_WORDS,
    OBSERVATION_WORDS,
    PACKED_WORDS,
    Encoding,
    encode,
    write_hidden,
    write_history,
    write_mask,
    write_observation,
    write_packed,
)
from conquian_env.rules import RuleSet, rule_set
from conquian_env.state import MAX_EVENTS, PHASE_OVER, STATE, copied
from conquian_env.view import Views, views_of

# Written at every step: legal actions [n, 2], observation and mask words, actor, reward, done. The
# actions are two words, ``answers | lays << LAY`` and discards.
Outputs = tuple[
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int8],
    NDArray[np.float32],
    NDArray[np.bool_],
]
# Stride, skip_forced, autoreset, packed; the last is None or True, two types, so that numba
# compiles the two forms apart and the one that most use is not the slower for the other.
Settings = tuple[int, bool, bool, bool | None]


@jit
def _settle(row: np.void, book: np.void, skip_forced: bool) -> tuple[int, int, int]:
    """The legal masks of the next decision; with ``skip_forced`` the next real one."""
    answers, lays, discards = engine.legal(row, book)
    while skip_forced and row["phase"] != PHASE_OVER:
        only = engine.only_action(answers, lays, discards)
        if only < 0:
            break
        engine.apply(row, only, book)
        answers, lays, discards = engine.legal(row, book)
    return answers, lays, discards


@jit
def _pay(row: np.void, reward: NDArray[np.float32]) -> None:
    won = engine.payoff(row)
    reward[0], reward[1] = won, -won


@jit
def _show(
    row: np.void,
    i: int | np.uintp,
    answers: int,
    lays: int,
    discards: int,
    packed: bool | None,
    out: Outputs,
) -> None:
    """Write what the actor of row ``i`` sees and may do; a finished row may only pass."""
    legal, observation, mask, actor, _, _ = out
    if row["phase"] == PHASE_OVER:
        answers = 1 << PASS
    legal[i, 0], legal[i, 1] = answers | lays << LAY, discards
    actor[i] = row["actor"]
    if packed is not None:
        mask[i, 0], mask[i, 1] = legal[i, 0], legal[i, 1]
        write_packed(row, row["actor"], observation[i])
    else:
        write_mask(answers, lays, discards, mask[i])
        write_observation(row, row["actor"], observation[i])


@jit
def _present(
    row: np.void,
    i: int,
    answers: int,
    lays: int,
    discards: int,
    packed: bool | None,
    out: Outputs,
) -> None:
    """Row ``i`` as it stands, over or not, with what it pays."""
    _, _, _, _, reward, done = out
    done[i] = row["phase"] == PHASE_OVER
    _pay(row, reward[i])
    _show(row, i, answers, lays, discards, packed, out)


@jit
def _next_deal(row: np.void, book: np.void, stride: int, skip_forced: bool) -> tuple[int, int, int]:
    engine.deal(row, row["seed"], row["deal"] + stride, book)
    return _settle(row, book, skip_forced)


@jit
def _redeal(
    rows: NDArray[np.void],
    books: NDArray[np.void],
    index: NDArray[np.int64],
    settings: Settings,
    out: Outputs,
) -> None:
    stride, skip_forced, autoreset, packed = settings
    for i in index:
        row = rows[i]
        answers, lays, discards = _next_deal(row, books[0], stride, skip_forced)
        while autoreset and row["phase"] == PHASE_OVER:  # no real choice in the whole deal
            answers, lays, discards = _next_deal(row, books[0], stride, skip_forced)
        _present(row, i, answers, lays, discards, packed, out)


@jit
def _look(
    rows: NDArray[np.void],
    books: NDArray[np.void],
    index: NDArray[np.int64],
    settings: Settings,
    out: Outputs,
) -> None:
    _, skip_forced, _, packed = settings
    for i in index:
        row = rows[i]
        answers, lays, discards = _settle(row, books[0], skip_forced)
        _present(row, i, answers, lays, discards, packed, out)


@jit
def _step(
    rows: NDArray[np.void],
    books: NDArray[np.void],
    index: NDArray[np.int64],
    actions: NDArray[np.int64],
    settings: Settings,
    out: Outputs,
) -> None:
    stride, skip_forced, autoreset, packed = settings
    _, _, _, _, reward, done = out
    for k in range(len(index)):
        i = np.uintp(index[k])  # unsigned: nothing then looks whether it counts from the end
        row = rows[i]
        if row["phase"] == PHASE_OVER:  # finished before, and not to be dealt again
            reward[i, 0] = reward[i, 1] = 0.0
            continue
        engine.apply(row, actions[k], books[0])
        answers, lays, discards = _settle(row, books[0], skip_forced)
        done[i] = row["phase"] == PHASE_OVER
        _pay(row, reward[i])
        while autoreset and row["phase"] == PHASE_OVER:
            answers, lays, discards = _next_deal(row, books[0], stride, skip_forced)
        _show(row, i, answers, lays, discards, packed, out)


@jit
def _observe(
    rows: NDArray[np.void],
    index: NDArray[np.int64],
    seats: NDArray[np.int8],
    words: NDArray[np.int64],
    events: NDArray[np.uint8],
) -> None:
    for k in range(len(index)):
        row = rows[index[k]]
        write_observation(row, seats[k], words[k])
        if events.shape[1] > 0:
            write_history(row, seats[k], events[k])


@jit
def _write_hidden(rows: NDArray[np.void], out: NDArray[np.uint8]) -> None:
    for i in range(len(rows)):
        write_hidden(rows[i], rows[i]["actor"], out[i])


@jit
def _are_legal(
    legal: NDArray[np.int64], actions: NDArray[np.int64], out: NDArray[np.bool_]
) -> None:
    for i in range(len(actions)):
        action = actions[i]
        known = 0 <= action < NUM_ACTIONS
        out[i] = known and engine.allows(legal[i, 0], legal[i, 1], action)


@jit
def _first_illegal(
    legal: NDArray[np.int64], index: NDArray[np.int64], actions: NDArray[np.int64]
) -> int:
    for k in range(len(actions)):
        i, action = np.uintp(index[k]), actions[k]
        known = 0 <= action < NUM_ACTIONS
        if not known or not engine.allows(legal[i, 0], legal[i, 1], action):
            return k
    return -1


@jit
def drawn(low: int, high: int, word: int) -> int:
    """The action at place ``word * number of actions / 2**32`` of ``low`` and discards ``high``."""
    lows = count(low)
    place = (word * (lows + count(high))) >> 32
    base = 0
    if place >= lows:
        low, base, place = high, DISCARD, place - lows
    for _ in range(place):
        low &= low - 1
    return base + lowest(low)


@jit
def _pick(legal: NDArray[np.int64], words: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
    """A legal action of each row by a random word of 32 bits."""
    for i in range(len(actions)):
        actions[i] = drawn(legal[i, 0], legal[i, 1], words[i])


class Batch:
    """``num_games`` games side by side, stepped together; arrays are written in place.

    Args:
        num_games: rows.
        rules: a RuleSet or the name of a preset.
        seed: an int, and row i plays deals i, i + n, i + 2n, …; or one seed a row, and each row
            plays deals 0, 1, 2, … of its own.
        skip_forced: play single-option decisions at once, so that only real choices are seen. The
            step that ends a deal pays both seats even if forced plies ended it; a deal without a
            real choice is played through and counted.
        autoreset: deal a finished row again at once. Otherwise it keeps its terminal observation,
            ``done`` stays set, and only ``pass`` is legal, which does nothing and pays 0.
        threads: cores to step on; the games are the same whatever the number.
        packed: write ``observation`` as int64 [n, 12] and ``mask`` as int64 [n, 2], card sets as
            bit masks, for a consumer that calls ``observation.unpack`` on its own device.

    Attributes:
        observation: uint8 [n, 416], the actor's (see ``observation.PIECES``). This and the next
            arrays are the same objects at every step: copy what is kept, tensors made of them too.
        mask: bool [n, 83], legal actions, never all false.
        actor: int8 [n], the seat to act.
        reward: float32 [n, 2], by seat, of the last step.
        done: bool [n], the last step ended a game.
        deal: int64 [n], the deal being played; ply: int16 [n], actions so far in this game.
            Read-only.

    Raises:
        RuleSetError, SeedError, OptionError: an argument is out of range.
    """

    def __init__(
        self,
        num_games: int,
        rules: RuleSet | str = "classic",
        seed: int | Sequence[int] | NDArray[np.uint64] = 0,
        skip_forced: bool = False,
        autoreset: bool = True,
        threads: int = 1,
        packed: bool = False,
    ) -> None:
        check_count("num_games", num_games)
        check_count("threads", threads)
        rows = np.zeros(num_games, STATE)
        if isinstance(seed, (Sequence, np.ndarray)):
            if isinstance(seed, np.ndarray) and seed.ndim != 1:
                raise OptionError(f"seed must be a number or a list of them, not {shown(seed)}")
            if len(seed) != num_games:
                raise OptionError(f"seed has {len(seed)} entries for {num_games} games")
            stride = 1
            rows["seed"] = [seed_bits(one) for one in seed]
            rows["deal"] = -stride
        else:
            stride = num_games
            rows["seed"] = seed_bits(seed)
            rows["deal"] = np.arange(num_games) - stride
        settings = (stride, bool(skip_forced), bool(autoreset), bool(packed) or None)
        self._allocate(rule_set(rules), rows, settings, threads)
        self.reset()

    @classmethod
    def from_states(
        cls,
        rules: RuleSet | str,
        rows: NDArray[np.void],
        skip_forced: bool = False,
        threads: int = 1,
    ) -> Self:
        """Games that go on from given states and are not dealt again when they end.

        Args:
            rules: a RuleSet or the name of a preset.
            rows: dtype STATE [n], contiguous, such as those of ``Game.to_state``; the batch owns
                them.
            skip_forced: as for ``Batch``; forced plies are played at once.
            threads: as for ``Batch``.

        Raises:
            OptionError: ``rows`` are no such array, or threads are no number from 1.
        """
        if not isinstance(rows, np.ndarray) or rows.dtype != STATE or rows.ndim != 1:
            raise OptionError(f"rows must be states of shape (n,), not {shown(rows)}")
        if not rows.flags.c_contiguous or not len(rows):
            raise OptionError("rows must be at least one, and contiguous")
        check_count("threads", threads)
        batch = object.__new__(cls)
        batch._allocate(rule_set(rules), rows, (1, bool(skip_forced), False, None), threads)
        batch._run(_look, batch._all)
        return batch

    def states(self) -> NDArray[np.void]:
        """A copy of the states, dtype STATE [n]: hidden cards and all."""
        return copied(self._rows)

    def restore(self, states: NDArray[np.void]) -> None:
        """Put the games where ``states`` (dtype STATE [n]) were; nothing is paid.

        Raises:
            OptionError: it is no such array.
        """
        _check_array("states", states, STATE, (self.num_games,))
        self._rows[...] = states
        self._run(_look, self._all)
        self.reward[:] = 0.0  # a deal that was over has paid

    def _allocate(
        self, rules: RuleSet, rows: NDArray[np.void], settings: Settings, threads: int
    ) -> None:
        n = len(rows)
        self.rules, self.num_games = rules, n
        self._rows, self._settings, self._books = rows, settings, rulebook(rules)
        _, self.skip_forced, self.autoreset, packed = settings
        self.packed = packed is not None
        self._legal = np.zeros((n, 2), np.int64)
        observation = np.zeros((n, PACKED_WORDS if self.packed else OBSERVATION_WORDS), np.int64)
        mask = np.zeros((n, 2 if self.packed else MASK_WORDS), np.int64)
        self.observation: NDArray[Any] = observation if self.packed else observation.view(np.uint8)
        self.mask: NDArray[Any] = mask if self.packed else mask.view(np.bool_)[:, MASK_PADDING:]
        self.actor = np.zeros(n, np.int8)
        self.reward = np.zeros((n, 2), np.float32)
        self.done = np.zeros(n, np.bool_)
        self._outputs = (self._legal, observation, mask, self.actor, self.reward, self.done)
        self._all = np.arange(n)
        self.threads = threads
        self._start_pool()
        self.deal: NDArray[np.int64] = rows["deal"]
        self.ply: NDArray[np.int16] = rows["ply"]
        self.deal.flags.writeable = self.ply.flags.writeable = False

    def _start_pool(self) -> None:
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        self._process = os.getpid()

    def step(
        self,
        actions: NDArray[np.integer[Any]] | Sequence[int],
        index: NDArray[np.int64] | None = None,
    ) -> None:
        """Play one action in every row, or in some of them; the others stay as they are.

        Args:
            actions: integers [n], or [k] with ``index``, each legal in its row.
            index: int64 [k], ascending row numbers.

        Raises:
            IllegalActionError: some action is not legal; it names the first row, nothing changed.
            OptionError: ``index`` is no such array.
        """
        rows = self._all if index is None else self._checked(index)
        if (rows[1:] <= rows[:-1]).any():
            raise OptionError("index must ascend: a row acts once")
        chosen = action_array(actions, len(rows))
        bad = _first_illegal(self._legal, rows, chosen)
        if bad >= 0:
            raise IllegalActionError(f"row {rows[bad]}: {_name(int(chosen[bad]))} is not legal")
        self._run(_step, rows, chosen)

    def _checked(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """``index`` if it holds row numbers."""
        _check_array("index", index, np.int64, np.shape(index)[:1])
        if len(index) and not 0 <= index.min() <= index.max() < self.num_games:
            raise OptionError(f"index has rows outside 0 to {self.num_games - 1}")
        return index

    def _run(self, kernel: Callable[..., None], *per_row: NDArray[np.int64]) -> None:
        """``kernel`` on some rows, a part of them in each thread; no row knows of another."""

        def run(part: slice) -> None:
            arrays = [array[part] for array in per_row]
            kernel(self._rows, self._books, *arrays, self._settings, self._outputs)

        if self._process != os.getpid():  # a forked child has the pool, but not its threads
            self._start_pool()
        size = -(-len(per_row[0]) // self.threads)
        waiting = [
            self._pool.submit(run, slice(size * k, size * (k + 1)))
            for k in range(1, self.threads)
            if self._pool
        ]
        run(slice(size))  # the caller's thread works, too: waking another takes 30 microseconds
        for part in waiting:
            part.result()

    def reset(self, mask: NDArray[np.bool_] | None = None) -> None:
        """Deal the rows of ``mask`` (bool [n]; None for all) again, each to its next deal."""
        chosen = np.ones(self.num_games, np.bool_) if mask is None else np.asarray(mask)
        _check_array("mask", chosen, np.bool_, (self.num_games,))
        self._run(_redeal, np.flatnonzero(chosen))

    def reseed(self, index: NDArray[np.int64], seeds: Sequence[int] | NDArray[np.uint64]) -> None:
        """Give rows seeds of their own and deal them: deal 0, then 1, 2, … of that seed.

        Args:
            index: int64 [k], ascending rows of a batch that was made with one seed a row.
            seeds: k of them.

        Raises:
            OptionError, SeedError: an argument is out of range; nothing changed.
        """
        rows = self._checked(index)
        if self._settings[0] != 1:
            raise OptionError("reseed needs a batch made with one seed a row")
        if len(seeds) != len(rows):
            raise OptionError(f"seeds has {len(seeds)} entries for {len(rows)} rows")
        self._rows["seed"][rows] = [seed_bits(one) for one in seeds]
        self._rows["deal"][rows] = -1
        self._run(_redeal, rows)

    def observe(
        self, index: NDArray[np.int64], seats: NDArray[np.int8], encoding: Encoding = "flat"
    ) -> NDArray[np.uint8]:
        """What ``seats`` (int8 [k]) see in the rows of ``index`` (int64 [k]), to act or not.

        Returns:
            uint8 [k, …], as ``Game.observation`` encodes it.

        Raises:
            OptionError: an array has another dtype or shape, or there is no such row or seat.
        """
        rows = self._checked(index)
        _check_array("seats", seats, np.int8, rows.shape)
        if (seats >> 1).any():
            raise OptionError("seats must be 0 or 1")
        words = np.empty((len(rows), OBSERVATION_WORDS), np.int64)
        events = np.empty((len(rows), MAX_EVENTS if encoding == "history" else 0), np.uint8)
        _observe(self._rows, rows, seats, words, events)
        return encode(words.view(np.uint8), encoding, events)

    def hidden(self) -> NDArray[np.uint8]:
        """What the actors do not see, uint8 [n, 120] as HIDDEN_PIECES says: for critics alone."""
        hidden = np.empty((self.num_games, HIDDEN_SIZE), np.uint8)
        _write_hidden(self._rows, hidden)
        return hidden

    def are_legal(self, actions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which actions (int64 [n]) are legal, whatever was written to ``mask``; bool [n]."""
        legal = np.empty(self.num_games, np.bool_)
        _are_legal(self._legal, actions, legal)
        return legal

    def sample_actions(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Uniformly random legal actions, int64 [n]."""
        actions = np.empty(self.num_games, np.int64)
        _pick(self._legal, rng.integers(0, 1 << 32, self.num_games, np.int64), actions)
        return actions

    def game(self, i: int) -> Game:
        """Row ``i`` as a Game of its own."""
        if not 0 <= i < self.num_games:
            raise OptionError(f"row {i} is outside 0 to {self.num_games - 1}")
        return Game.from_state(self.rules, copied(self._rows[i : i + 1]))

    def views(self, index: NDArray[np.int64], seeds: NDArray[np.uint64]) -> Views:
        """What the actors of some rows know, for an agent.

        Args:
            index: int64 [k], rows.
            seeds: uint64 [k], the agent's randomness for each decision.

        Raises:
            OptionError: an array has another dtype or shape, or a row does not exist.
        """
        rows = self._checked(index)
        _check_array("seeds", seeds, np.uint64, rows.shape)
        return views_of(self._rows, self.rules, seeds, rows)

    def __getstate__(self) -> dict[str, Any]:
        place = (self.rules, self._rows, self._settings, self.threads)
        return {"place": place, "outputs": self._outputs}

    def __setstate__(self, state: dict[str, Any]) -> None:
        rules, rows, *rest = state["place"]
        self._allocate(rules, copied(rows), *rest)
        own: tuple[NDArray[Any], ...] = self._outputs
        for array, saved in zip(own, state["outputs"], strict=True):
            array[...] = saved

    def __repr__(self) -> str:
        return f"<Batch of {self.num_games} games>"


def action_array(actions: object, n: int) -> NDArray[np.int64]:
    """Integers of any kind, [n], as int64; whether they are legal is another question.

    Raises:
        IllegalActionError: they are no such array.
    """
    try:
        chosen = np.ascontiguousarray(actions)
    except ValueError as error:  # lists of different lengths
        raise IllegalActionError(f"actions: {error}") from None
    if chosen.shape != (n,) or (n > 0 and chosen.dtype.kind not in "iu"):
        raise IllegalActionError(
            f"actions must be integers of shape ({n},), not {chosen.dtype} of shape {chosen.shape}"
        )
    return chosen.astype(np.int64, copy=False)


def check_count(name: str, number: object) -> None:
    """Refuse what is no whole number from 1, by name."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
        raise OptionError(f"{name} must be a whole number from 1, not {shown(number)}")


def _check_array(name: str, array: object, dtype: Any, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        raise OptionError(f"{name} must be an array of {np.dtype(dtype)} and shape {shape}")


def _name(action: int) -> str:
    return action_name(action) if 0 <= action < NUM_ACTIONS else f"action {action}"
