"""A whole game in sequence form, grown by the engine (small decks only).

A seat's *information states* are what it can have seen when it has a choice, with perfect recall.
A *sequence* is one of them with one of its actions; a seat's sequences are numbered so that earlier
ones come first, and 0 is the start. Of the game tree only the ends that somebody wins are kept,
each with the last sequence of both seats: draws pay nothing (von Stengel, "Efficient computation
of behavior strategies", Games and Economic Behavior 14, 1996).
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conquian_env import RuleSet, engine
from conquian_env.actions import LAY
from conquian_env.cards import card_ids, card_mask, count, lowest
from conquian_env.deal import WORD, threefry
from conquian_env.errors import OptionError
from conquian_env.jit import jit
from conquian_env.melds import pack_mask, rulebook
from conquian_env.rules import rule_set
from conquian_env.state import MAX_EVENTS, NONE, PHASE_GIVE, PHASE_OVER, STATE

SPACE = 1 << 16  # free places that every array has before two hands are followed
MOST_DEALS = 100_000_000  # hands and orders of the stock; mini has 33,264
BEGIN = -1  # the pseudo-action that turns the first card
SEQUENCES, WINS, HISTORIES, NEW = 2, 4, 5, 6  # places in ``counts``, the first two by seat


class Found(NamedTuple):
    """Information states as they are found, those of a seat in the order of their numbers.

    Attributes:
        rows: STATE [n], a state in which the seat to act has seen just this.
        seats: int64 [n], the seat to act.
        keys: int64 [n], a hash of what it has seen.
    """

    rows: NDArray[np.void]
    seats: NDArray[np.int64]
    keys: NDArray[np.int64]


@dataclass(frozen=True)
class SequenceForm:
    """A game in sequence form; pairs are by seat.

    Attributes:
        parent: int32 [states] each, the owner's last sequence before an information state.
        first: int32 [states + 1] each, the first sequence of an information state, and the end.
        action: uint8 [sequences] each; that of sequence 0 has no meaning.
        win_sequence: int32 [wins, 2], the last sequences of both seats at each end that is won.
        win_value: float64 [wins], the payoff to seat 0 times the probability of the cards.
        histories: nodes of the game form, single choices included.
    """

    rules: RuleSet
    parent: tuple[NDArray[np.int32], NDArray[np.int32]]
    first: tuple[NDArray[np.int32], NDArray[np.int32]]
    action: tuple[NDArray[np.uint8], NDArray[np.uint8]]
    win_sequence: NDArray[np.int32]
    win_value: NDArray[np.float64]
    histories: int


class _Growing(NamedTuple):
    """A form in the making, in arrays with room to spare; by seat they are [2, capacity]."""

    counts: NDArray[np.int64]
    slots: NDArray[np.int64]  # [2**k, 2]: hash table from keys to information states
    parent: NDArray[np.int32]
    first: NDArray[np.int32]
    action: NDArray[np.uint8]
    win_sequence: NDArray[np.int32]
    win_value: NDArray[np.float64]
    rows: NDArray[np.void]  # the information states found of late,
    seats: NDArray[np.int64]
    keys: NDArray[np.int64]


def sequence_form(
    rules: RuleSet | str, visit: Callable[[Found], None] | None = None
) -> SequenceForm:
    """Follow every play of every deal.

    Args:
        rules: a RuleSet or the name of a preset.
        visit: is shown the information states as they are found.

    Raises:
        OptionError: ``draw="double"``, where each deal is a game of its own, or there are more
            than ``MOST_DEALS`` deals.
    """
    rules = rule_set(rules)
    if rules.draw != "end":
        raise OptionError("draw='double': each deal is a game of its own, take draw='end'")
    _check_size(rules)
    pack = card_ids(pack_mask(rules))
    hands = np.array([card_mask(hand) for hand in itertools.combinations(pack, rules.deal)])
    chance = 1 / (len(hands) * math.comb(len(pack) - rules.deal, rules.deal))
    books, stack, form = rulebook(rules), np.zeros(MAX_EVENTS, STATE), _room(4 * SPACE)
    for hand0 in hands:
        hands1, done = hands[hands & hand0 == 0], 0
        while done < len(hands1):
            done = _follow_hands(int(hand0), hands1, done, chance, stack, books, form)
            new = form.counts[NEW]
            if visit and new > 0:
                visit(Found(form.rows[:new], form.seats[:new], form.keys[:new]))
            form.counts[NEW] = 0
            form = _more_room(form)
    return _finished(rules, form)


def _check_size(rules: RuleSet) -> None:
    """Refuse rules whose tree nobody could wait for."""
    pack, deal = rules.pack_size, rules.deal
    deals = math.comb(pack, deal) * math.comb(pack - deal, deal)
    deals *= math.perm(pack - 2 * deal, rules.stock_size)
    if deals > MOST_DEALS:
        raise OptionError(
            f"{rules.to_text()}: {deals:,} deals are too many to follow (at most {MOST_DEALS:,}); "
            f"nano, micro and mini are small"
        )


# --- following the play ---


@jit
def _follow_hands(
    hand0: int,
    hands1: NDArray[np.int64],
    done: int,
    chance: float,
    stack: NDArray[np.void],
    books: NDArray[np.void],
    form: _Growing,
) -> int:
    """Follow ``hand0`` against the hands from ``done`` on, as far as there is space."""
    start, begin = int(np.int64(0)), int(np.int64(BEGIN))  # to numba a plain 0 is another type
    while done < len(hands1) and _has_space(form):
        _deal(stack[0], hand0, hands1[done], books[0])
        _follow(
            start, begin, start, start, (start, start), chance, (hand0, hands1[done]), stack,
            books[0], form,
        )  # fmt: skip
        done += 1
    return done


@jit
def _deal(row: np.void, hand0: int, hand1: int, book: np.void) -> None:
    """A deal before its first card is turned; in place of the stock all that is unseen."""
    engine.clear(row)
    row["pack"], row["ply"] = book["pack"], 0
    row["hand"][0], row["hand"][1] = hand0, hand1
    place = 2 * book["deal"]
    row["stock_next"], row["stock_end"] = place, place + book["stock"]
    unseen = book["pack"] & ~(hand0 | hand1)
    while unseen:
        row["stock"][place] = lowest(unseen)
        unseen &= unseen - 1
        place += 1


@jit
def _follow(
    depth: int,
    action: int,
    word0: int,
    word1: int,
    own: tuple[int, int],
    chance: float,
    dealt: tuple[int, int],
    stack: NDArray[np.void],
    book: np.void,
    form: _Growing,
) -> None:
    """Play ``action`` in the state at ``depth`` with each card it may turn, and all that follows.

    ``word0`` and ``word1`` are a running hash of the public events, ``own`` the last sequences.
    """
    place, cards, turn = int(stack[depth]["stock_next"]), 1, 0
    while turn < cards:
        _swap(stack[depth]["stock"], place, turn)
        row = _played(stack, depth, action, book)
        if row["stock_next"] > place:  # a card was turned: it could be each of the unseen ones
            cards = book["suits"] * book["ranks"] - place
        after0, after1 = _hashed(row, stack[depth]["events"], word0, word1)
        form.counts[HISTORIES] += 1
        if row["phase"] == PHASE_OVER:
            _end(row, own, chance, form)  # the last action turns no card
        seat, (answers, lays, discards) = int(row["actor"]), engine.legal(row, book)
        choices = count(answers) + count(lays) + count(discards)
        sequence = own[seat]
        if choices > 1:
            key = _key(row, seat, after0, after1, dealt[seat])
            sequence = _information_state(row, seat, own[seat], choices, key, form)
        low, high = answers | lays << LAY, discards
        while low | high:
            answer, low, high = engine.pop_action(low, high)
            if choices > 1:
                form.action[seat, sequence] = answer
            now = (sequence, own[1]) if seat == 0 else (own[0], sequence)
            _follow(
                depth + 1, answer, after0, after1, now, chance / cards, dealt, stack, book, form
            )
            sequence += 1
        _swap(stack[depth]["stock"], place, turn)
        turn += 1


@jit
def _played(stack: NDArray[np.void], depth: int, action: int, book: np.void) -> np.void:
    """The state after an action, kept at the next depth."""
    stack[depth + 1] = stack[depth]
    row: np.void = stack[depth + 1]
    if action == BEGIN:
        engine.begin(row, book)
    else:
        engine.apply(row, action, book)
    return row


@jit
def _hashed(row: np.void, seen: int, word0: int, word1: int) -> tuple[int, int]:
    """The running hash with the events after the first ``seen``."""
    for event in range(seen, row["events"]):
        word0, word1 = threefry(word0, word1, int(row["history"][event]), 0)
    return word0, word1


@jit
def _swap(stock: NDArray[np.int8], place: int, further: int) -> None:
    if further > 0:
        stock[place], stock[place + further] = stock[place + further], stock[place]


@jit
def _end(row: np.void, own: tuple[int, int], chance: float, form: _Growing) -> None:
    """Keep an end that somebody wins."""
    won, number = engine.payoff(row), form.counts[WINS]
    if won == 0:
        return
    if number == len(form.win_value):
        raise MemoryError("two hands have more wins than SPACE")
    form.win_sequence[number, 0], form.win_sequence[number, 1] = own
    form.win_value[number] = won * chance
    form.counts[WINS] += 1


@jit
def _key(row: np.void, seat: int, word0: int, word1: int, dealt: int) -> int:
    """A hash of all that the seat has seen: public events, cards dealt, given and received."""
    given, received = int(row["given"][seat]), int(row["given"][1 - seat])
    if row["phase"] == PHASE_GIVE:
        received = NONE
    rest = (dealt >> 32) | (given + 1) << 8 | (received + 1) << 16 | seat << 24
    low, high = threefry(word0, word1, dealt & WORD, rest)
    return low | (high >> 1) << 32  # 63 bits: an int64 with the JIT off too


@jit
def _information_state(
    row: np.void, seat: int, own: int, choices: int, key: int, form: _Growing
) -> int:
    """The first sequence of what the seat has seen, new or known."""
    slot = _slot(form.slots, key)
    number = form.slots[slot, 1]
    if number == NONE:
        return _new_state(row, seat, own, choices, key, slot, form)
    if form.parent[seat, number] != own:
        raise RuntimeError("two information states have the same hash")
    return int(form.first[seat, number])


@jit
def _new_state(
    row: np.void, seat: int, own: int, choices: int, key: int, slot: int, form: _Growing
) -> int:
    number, first = form.counts[seat], form.counts[SEQUENCES + seat]
    new = form.counts[NEW]
    full = new == len(form.rows) or number + 1 == form.parent.shape[1]
    if full or first + choices > form.action.shape[1]:
        raise MemoryError("two hands have more information states than SPACE")
    form.slots[slot, 0], form.slots[slot, 1] = key, number
    form.parent[seat, number], form.first[seat, number] = own, first
    form.rows[new], form.seats[new], form.keys[new] = row, seat, key
    form.counts[seat] += 1
    form.counts[SEQUENCES + seat] += choices
    form.counts[NEW] += 1
    return int(first)


@jit
def _slot(slots: NDArray[np.int64], key: int) -> int:
    """Where a key is or belongs, by linear probing."""
    slot = key & (len(slots) - 1)
    while slots[slot, 1] != NONE and slots[slot, 0] != key:
        slot = (slot + 1) & (len(slots) - 1)
    return slot


# --- room ---


def _room(capacity: int) -> _Growing:
    counts = np.zeros(7, np.int64)
    counts[SEQUENCES : SEQUENCES + 2] = 1  # the start
    return _Growing(
        counts=counts,
        slots=np.full((4 * capacity, 2), NONE, np.int64),
        parent=np.zeros((2, capacity), np.int32),
        first=np.zeros((2, capacity), np.int32),
        action=np.zeros((2, capacity), np.uint8),
        win_sequence=np.zeros((capacity, 2), np.int32),
        win_value=np.zeros(capacity),
        rows=np.zeros(2 * SPACE, STATE),
        seats=np.zeros(2 * SPACE, np.int64),
        keys=np.zeros(2 * SPACE, np.int64),
    )


@jit
def _has_space(form: _Growing) -> bool:
    """Whether every array has ``SPACE`` free places."""
    states = max(form.counts[0], form.counts[1])
    sequences = max(form.counts[SEQUENCES], form.counts[SEQUENCES + 1])
    return bool(
        states + SPACE <= form.parent.shape[1]
        and sequences + SPACE <= form.action.shape[1]
        and form.counts[WINS] + SPACE <= len(form.win_value)
        and form.counts[NEW] + SPACE <= len(form.rows)
    )


def _more_room(form: _Growing) -> _Growing:
    """Twice the size for every array that is more than half full."""
    states, sequences = form.counts[:2].max(), form.counts[SEQUENCES : SEQUENCES + 2].max()
    longer: dict[str, NDArray[Any]] = {}
    if 2 * states > form.parent.shape[1]:
        longer |= {name: _doubled(getattr(form, name), 1) for name in ("parent", "first")}
        longer["slots"] = np.full((2 * len(form.slots), 2), NONE, np.int64)
        _copy_slots(form.slots, longer["slots"])
    if 2 * sequences > form.action.shape[1]:
        longer["action"] = _doubled(form.action, 1)
    if 2 * form.counts[WINS] > len(form.win_value):
        longer |= {n: _doubled(getattr(form, n), 0) for n in ("win_sequence", "win_value")}
    return form._replace(**longer)


def _doubled(array: NDArray[Any], axis: int) -> NDArray[Any]:
    return np.concatenate([array, np.zeros_like(array)], axis)


@jit
def _copy_slots(slots: NDArray[np.int64], larger: NDArray[np.int64]) -> None:
    for slot in range(len(slots)):
        if slots[slot, 1] != NONE:
            new = _slot(larger, slots[slot, 0])
            larger[new, 0], larger[new, 1] = slots[slot, 0], slots[slot, 1]


def _finished(rules: RuleSet, form: _Growing) -> SequenceForm:
    counts = form.counts.tolist()
    (states0, states1), (sequences0, sequences1) = counts[:2], counts[SEQUENCES : SEQUENCES + 2]
    form.first[0, states0], form.first[1, states1] = sequences0, sequences1
    return SequenceForm(
        rules=rules,
        parent=(form.parent[0, :states0].copy(), form.parent[1, :states1].copy()),
        first=(form.first[0, : states0 + 1].copy(), form.first[1, : states1 + 1].copy()),
        action=(form.action[0, :sequences0].copy(), form.action[1, :sequences1].copy()),
        win_sequence=form.win_sequence[: counts[WINS]].copy(),
        win_value=form.win_value[: counts[WINS]].copy(),
        histories=counts[HISTORIES],
    )
