"""The exact value of a deal when all cards are known: alpha-beta with a memory of positions.

It plays by the engine's own functions, so it knows every rule set but two things: gifts (phase
``give``) and drawn deals that go on (``draw="double"``) are refused. A turn is searched as the set
of cards that are laid and the discard: cards are laid in ascending order only, which loses nothing,
for every table that any order reaches is reached by one (see ``lay_order`` in RULES.md).
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from numba import from_dtype, int64
from numpy.typing import NDArray

from conquian_env import engine
from conquian_env.actions import DISCARD, LAY, NUM_ACTIONS, PASS
from conquian_env.cards import NUM_CARDS, lowest
from conquian_env.errors import OptionError, shown
from conquian_env.game import Game
from conquian_env.jit import fix_signature, jit
from conquian_env.melds import RULEBOOK, rulebook
from conquian_env.rules import RuleSet, rule_set
from conquian_env.state import NONE, PHASE_OVER, STATE, Phase

UNKNOWN = 2  # a value that the node limit left open
MEMORY = 1 << 18  # positions remembered, 32 bytes each; a power of two
NODE_LIMIT = 50_000_000
HALF, LOW_HALF, LOW_31 = 20, (1 << 20) - 1, (1 << 31) - 1


@dataclass(frozen=True)
class Solution:
    """What is known of a position; values are seat 0's: 1 won, 0 drawn, -1 lost, None unknown.

    Attributes:
        value: with best play of both.
        actions: the value of each legal action of the actor.
        line: actions of one line of best play to the end; empty if the limit left it open.
        nodes: positions looked at; seconds: what that took.
    """

    value: int | None
    actions: dict[int, int | None]
    line: tuple[int, ...]
    nodes: int
    seconds: float


@jit
def _mark(row: np.void) -> tuple[int, ...]:
    """What an action may change and the rules read."""
    return (
        int(row["hand"][0]), int(row["hand"][1]), int(row["table"][0]), int(row["table"][1]),
        int(row["face_up"]), int(row["source"]), int(row["phase"]), int(row["actor"]),
        int(row["winner"]), int(row["stock_next"]), int(row["events"]), int(row["ply"]),
    )  # fmt: skip


@jit
def _restore(row: np.void, marked: tuple[int, ...]) -> None:
    row["hand"][0], row["hand"][1], row["table"][0], row["table"][1] = marked[:4]
    row["face_up"], row["source"], row["phase"], row["actor"] = marked[4:8]
    row["winner"], row["stock_next"], row["events"], row["ply"] = marked[8:]


@jit
def _key(row: np.void) -> tuple[int, int, int]:
    """All that the value hangs on between two turns but the stock, in three words of 60 bits."""
    other_table = int(row["table"][1])
    small = int(row["stock_next"]) << 6 | int(row["face_up"]) + 1
    small = small << 2 | int(row["source"]) + 1
    small = (small << 3 | int(row["phase"])) << 1 | int(row["actor"])
    return (
        int(row["hand"][0]) | (other_table & LOW_HALF) << NUM_CARDS,
        int(row["hand"][1]) | (other_table >> HALF) << NUM_CARDS,
        int(row["table"][0]) | small << NUM_CARDS,
    )


@jit
def _place(key: tuple[int, int, int], size: int) -> int:
    """Where a position is remembered; the products are below 2**62, their upper bits well mixed."""
    first, second, third = key
    mixed = (first & LOW_31) * 0x2545F491 ^ (first >> 31) * 0x3C6EF372
    mixed ^= (second & LOW_31) * 0x1B873593 ^ (second >> 31) * 0x27D4EB2F
    mixed ^= (third & LOW_31) * 0x165667B1 ^ (third >> 31) * 0x38B34AE5
    return (mixed >> 31) & (size - 1)


@jit
def _wanted(row: np.void, discards: int, book: np.void) -> int:
    """The discards that the other seat could take; they are tried last, which saves a fifth."""
    other = 1 - row["actor"]
    hand, table = row["hand"][other], row["table"][other]
    left, wanted = discards, 0
    while left:
        card = left & -left
        left ^= card
        if engine.can_take(card, table, hand, book):
            wanted |= card
    return wanted


@jit
def _next(low: int, safe: int, wanted: int) -> tuple[int, int, int, int]:
    """Of the actions ``answers | lays << LAY`` and discards the one to try first; passes last."""
    eager = low & ~(1 << PASS)
    if eager:
        action = lowest(eager)
        return action, low & ~(1 << action), safe, wanted
    if safe:
        return DISCARD + lowest(safe), low, safe & (safe - 1), wanted
    if wanted:
        return DISCARD + lowest(wanted), low, safe, wanted & (wanted - 1)
    return PASS, 0, 0, 0


@jit
def search(
    row: np.void,
    book: np.void,
    alpha: int,
    beta: int,
    memory: NDArray[np.int64],
    account: NDArray[np.int64],
) -> int:
    """The value for seat 0 if it lies between ``alpha`` and ``beta``, or else a bound beyond.

    Args:
        row: the position; it is played on and comes back as it was, but for its history.
        book: with lays in ascending order.
        alpha: what seat 0 has for sure elsewhere.
        beta: what seat 1 has for sure elsewhere.
        memory: int64 [size, 4], a position's key, then stamp, upper and lower bound.
        account: int64 [3], nodes so far, the most there may be (beyond them results mean nothing),
            and the stamp of this stock.
    """
    if row["phase"] == PHASE_OVER:
        return engine.payoff(row)
    account[0] += 1
    low, high, place, key = -1, 1, -1, (0, 0, 0)
    if engine.last_laid(row) == NONE:  # else the cards that may still be laid are a part of it
        key = _key(row)
        place = _place(key, len(memory))
        known = memory[place, 3]
        if (
            known >> 4 == account[2]
            and memory[place, 0] == key[0]
            and memory[place, 1] == key[1]
            and memory[place, 2] == key[2]
        ):
            low, high = (known & 3) - 1, (known >> 2 & 3) - 1
    least, most = max(alpha, low), min(beta, high)
    if least >= most:
        return high if high <= alpha else low
    answers, lays, discards = engine.legal(row, book)
    eager, best = answers | lays << LAY, 2 if row["actor"] else -2
    wanted = _wanted(row, discards, book)
    safe = discards ^ wanted
    marked = _mark(row)
    while least < most and eager | safe | wanted and account[0] <= account[1]:
        action, eager, safe, wanted = _next(eager, safe, wanted)
        engine.apply(row, action, book)
        value = search(row, book, least, most, memory, account)
        _restore(row, marked)
        if row["actor"]:
            best = min(best, value)
            most = min(most, best)
        else:
            best = max(best, value)
            least = max(least, best)
    if place >= 0 and account[0] <= account[1]:
        low = max(low, best) if best > alpha else low
        high = min(high, best) if best < beta else high
        memory[place, 0], memory[place, 1], memory[place, 2] = key
        memory[place, 3] = (account[2] << 2 | high + 1) << 2 | low + 1
    return best


@jit
def _values(
    rows: NDArray[np.void],
    books: NDArray[np.void],
    any_order: bool,
    new_stocks: bool,
    memory: NDArray[np.int64],
    account: NDArray[np.int64],
    limit: int,
    values: NDArray[np.int8],
    nodes: NDArray[np.int64],
) -> None:
    """The value of each legal action of each row, ``UNKNOWN`` for what is not legal or not known.

    ``books`` holds the rules as they are and with lays in ascending order. Without ``new_stocks``
    the stock is that of the call before, and what is remembered holds.
    """
    for i in range(len(rows)):
        row = rows[i]
        account[0], account[1] = 0, limit
        account[2] += new_stocks
        answers, lays, discards = engine.legal(row, books[0])
        low, high = answers | lays << LAY, discards
        if any_order:
            row["events"] = 0  # what was laid so far binds no one
        marked = _mark(row)
        while low | high:
            action, low, high = engine.pop_action(low, high)
            engine.apply(row, action, books[0])
            if any_order:
                row["events"] = 0
            value = search(row, books[1], -1, 1, memory, account)
            _restore(row, marked)
            if account[0] > limit:
                break
            values[i, action] = value
        nodes[i] = account[0]


class Solver:
    """The solver of one rule set, with its memory.

    Args:
        rules: a RuleSet or the name of a preset; ``draw="double"`` is refused.
        limit: positions to look at for each decision; what they leave open is unknown.
        memory: positions remembered, a power of two; 32 bytes each.

    Raises:
        OptionError, RuleSetError: an argument is out of range.
    """

    def __init__(
        self, rules: RuleSet | str = "classic", limit: int = NODE_LIMIT, memory: int = MEMORY
    ) -> None:
        self.rules, self.limit = rule_set(rules), limit
        if self.rules.deals_a_game > 1:
            raise OptionError('draw="double": the deals to come are not known, nothing to solve')
        for name, number in (("limit", limit), ("memory", memory)):
            if type(number) is not int or not 1 <= number < 1 << 62:
                raise OptionError(f"{name} must be a whole number from 1, not {shown(number)}")
        if memory & (memory - 1):
            raise OptionError(f"memory must be a power of two, not {memory}")
        ascending = replace(self.rules, lay_order="ascending")
        self._books = np.concatenate([rulebook(self.rules), rulebook(ascending)])
        self._memory = np.zeros((memory, 4), np.int64)
        self._account = np.zeros(3, np.int64)
        row, array = from_dtype(RULEBOOK), int64[:, ::1]
        fix_signature(search, int64(from_dtype(STATE), row, int64, int64, array, int64[::1]))

    def action_values(self, rows: NDArray[np.void]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """The value of every action in many positions.

        Args:
            rows: dtype STATE [n], every card known, in any phase but ``give``; they are played on:
                give copies.

        Returns:
            int8 [n, 83], for seat 0, ``UNKNOWN`` for what is not legal or was left open by the
            limit; and int64 [n], the positions looked at.
        """
        return self._action_values(rows, new_stocks=True)

    def _action_values(
        self, rows: NDArray[np.void], new_stocks: bool
    ) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        values = np.full((len(rows), NUM_ACTIONS), UNKNOWN, np.int8)
        nodes = np.zeros(len(rows), np.int64)
        any_order = self.rules.lay_order == "any"
        _values(
            rows, self._books, any_order, new_stocks, self._memory, self._account, self.limit,
            values, nodes,
        )  # fmt: skip
        return values, nodes

    def solve(self, game: Game) -> Solution:
        """What is known of a game.

        Raises:
            OptionError: it is of other rules, or in phase ``give``.
        """
        if game.rules != self.rules:
            raise OptionError(f"a solver of {self.rules.to_text()}, not {game.rules.to_text()}")
        if game.phase == Phase.GIVE:
            raise OptionError("phase give: the gifts are chosen unseen, there is no such value")
        start = time.perf_counter()
        actions, nodes = self._actions(game, new_stock=True)
        value = int(game.returns()[0]) if game.is_over else best_value(game.actor, actions)
        line, more = ((), 0) if value is None else self._line(game.copy(), value)
        return Solution(value, actions, line, nodes + more, time.perf_counter() - start)

    def _line(self, game: Game, value: int) -> tuple[tuple[int, ...], int]:
        """Best play from here, which is played; empty if the limit leaves a step of it open."""
        line, nodes = [], 0
        while not game.is_over:
            actions, more = self._actions(game, new_stock=False)
            nodes += more
            best = [action for action, worth in actions.items() if worth == value]
            if not best:
                return (), nodes
            line.append(best[0])
            game.apply(best[0])
        return tuple(line), nodes

    def _actions(self, game: Game, new_stock: bool) -> tuple[dict[int, int | None], int]:
        values, nodes = self._action_values(game.to_state(), new_stock)
        known = {a: int(values[0, a]) for a in game.legal_actions()}
        return {a: None if v == UNKNOWN else v for a, v in known.items()}, int(nodes[0])


def best_value(actor: int, actions: dict[int, int | None]) -> int | None:
    """The value of a position by those of its actions; None if it hangs on an unknown one."""
    known = [value for value in actions.values() if value is not None]
    best = max(known, default=-1) if actor == 0 else min(known, default=1)
    if len(known) < len(actions) and best != (1 if actor == 0 else -1):
        return None
    return best


def solve(game: Game, limit: int = NODE_LIMIT) -> Solution:
    """The exact value of a game, of each legal action, and a line of best play.

    Args:
        game: in any phase but ``give``; not for ``draw="double"``.
        limit: positions to look at for each decision; what they leave open is unknown (None).

    Raises:
        OptionError: a game that has no such value, named.
    """
    return Solver(game.rules, limit).solve(game)
