"""Combinations and tables: what may lie together (rules 1.2 to 1.6).

A *rulebook* is a RuleSet compiled for the engine: one record of dtype ``RULEBOOK`` in an array of
length 1, because numba hands arrays from Python to machine code fastest.
"""

from functools import lru_cache

import numpy as np
from numba import boolean, from_dtype, int64
from numpy.typing import NDArray

from conquian_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, card_ids, lowest
from conquian_env.jit import fix_signature, jit
from conquian_env.rules import RuleSet

FORCE_OFF, FORCE_OPTIONAL, FORCE_AUTO = 0, 1, 2
LONGEST_RUN = 8
MOST_MELDS_WITH_A_CARD = 30  # 28 are reached, by a 5: 4 sets and 24 runs; a 0 ends the list

RULEBOOK = np.dtype(
    [
        ("melds_with", np.int64, (NUM_CARDS, MOST_MELDS_WITH_A_CARD)),  # masks
        ("run_starts", np.int64),  # cards on which a run of three can begin
        ("pack", np.int64),  # mask of all cards
        ("suits", np.int64),
        ("ranks", np.int64),
        ("deal", np.int64),
        ("target", np.int64),
        ("stock", np.int64),
        ("first_dealt", np.int64),
        ("hand_melds", np.int64),
        ("exchange", np.int64),
        ("max_deals", np.int64),
        ("ascending", np.int64),
        ("force", np.int64),
        ("force_discards_only", np.int64),
    ],
    align=True,
)


@lru_cache(maxsize=64)
def combinations(rules: RuleSet) -> tuple[int, ...]:
    """All sets of 3 or 4 and runs of 3 to 8 cards, as masks (rule 1.4; 182 in classic)."""
    return _sets(rules) + _runs(rules)


def _sets(rules: RuleSet) -> tuple[int, ...]:
    """Three or four suits of one rank."""
    suits_of = [s for s in range(1 << rules.suits) if s.bit_count() >= 3]
    return tuple(
        sum(1 << (NUM_RANKS * suit + rank) for suit in range(NUM_SUITS) if suits >> suit & 1)
        for rank in range(rules.ranks)
        for suits in suits_of
    )


def _runs(rules: RuleSet) -> tuple[int, ...]:
    """Neighbours of one suit; without the 7-J step a suit is two lines (rule 1.3)."""
    seven = 6
    return tuple(
        ((1 << length) - 1) << (NUM_RANKS * suit + start)
        for suit in range(rules.suits)
        for length in range(3, LONGEST_RUN + 1)
        for start in range(rules.ranks - length + 1)
        if rules.seven_jack_adjacent or not start <= seven < start + length - 1
    )


def pack_mask(rules: RuleSet) -> int:
    """The cards of the rule set's pack."""
    return sum(
        1 << (NUM_RANKS * suit + rank) for suit in range(rules.suits) for rank in range(rules.ranks)
    )


@lru_cache(maxsize=64)
def rulebook(rules: RuleSet) -> NDArray[np.void]:
    """``rules`` compiled for the engine: shape (1,), dtype ``RULEBOOK``, read-only."""
    fix_signature(reach, int64(int64, int64, from_dtype(RULEBOOK)))
    fix_signature(fits, boolean(int64, int64, from_dtype(RULEBOOK)))
    book = np.zeros(1, RULEBOOK)
    combos = combinations(rules)
    for card_id in range(NUM_CARDS):
        holding = [combo for combo in combos if combo >> card_id & 1]
        book["melds_with"][0, card_id, : len(holding)] = holding
    threes = [combo for combo in _runs(rules) if combo.bit_count() == 3]
    book["run_starts"] = sum(run & -run for run in threes)
    book["pack"], book["suits"], book["ranks"] = pack_mask(rules), rules.suits, rules.ranks
    book["deal"], book["target"], book["stock"] = rules.deal, rules.target, rules.stock_size
    book["first_dealt"] = rules.first_card == "dealt"
    book["hand_melds"], book["exchange"] = rules.hand_melds, rules.exchange
    book["max_deals"] = rules.deals_a_game
    book["ascending"] = rules.lay_order == "ascending"
    book["force"] = {"off": FORCE_OFF, "optional": FORCE_OPTIONAL, "auto": FORCE_AUTO}[rules.force]
    book["force_discards_only"] = rules.force_source == "discard"
    book.flags.writeable = False
    return book


@jit
def meldable(window: int, run_starts: int) -> int:
    """The cards of ``window`` that are in some combination inside it.

    Every longer combination is covered by combinations of three, so only those are looked at.
    """
    runs = window & (window >> 1) & (window >> 2) & run_starts
    clubs, diamonds, hearts = window, window >> 10, window >> 20
    spades = window >> 30
    ranks = ((clubs & diamonds & (hearts | spades)) | (hearts & spades & (clubs | diamonds))) & 1023
    sets = (ranks | (ranks << 10) | (ranks << 20) | (ranks << 30)) & window
    return runs | (runs << 1) | (runs << 2) | sets


@jit
def reach(core: int, window: int, book: np.void) -> int:
    """The union of all legal tables that hold ``core`` and stay inside ``window``; -1 if none.

    ``core`` is a subset of ``window``. The lowest core card is in exactly one combination of such
    a table: try each, and go on with the rest (rule 1.5).
    """
    free = meldable(window, book["run_starts"])
    if core & ~free != 0:
        return -1
    if core == 0:
        return free
    union = -1
    for meld in book["melds_with"][lowest(core)]:
        if meld == 0:
            break
        if meld & ~window == 0:
            rest = reach(core & ~meld, window & ~meld, book)
            if rest >= 0:
                union = max(union, 0) | meld | rest
    return union


@jit
def fits(core: int, window: int, book: np.void) -> bool:
    """Whether some legal table holds ``core`` and stays inside ``window``: ``reach(...) >= 0``.

    It stops at the first such table.
    """
    if core & ~meldable(window, book["run_starts"]) != 0:
        return False
    if core == 0:
        return True
    for meld in book["melds_with"][lowest(core)]:
        if meld == 0:
            break
        if meld & ~window == 0 and fits(core & ~meld, window & ~meld, book):
            return True
    return False


@jit
def is_legal_table(table: int, book: np.void) -> bool:
    """Whether the cards split into separate combinations (rule 1.5); the empty table does."""
    return fits(table, table, book)


@jit
def _fits(core: int, window: int, books: NDArray[np.void]) -> bool:
    return fits(core, window, books[0])


def legal_table(table: int, rules: RuleSet) -> bool:
    """``is_legal_table`` for Python callers."""
    return _fits(table, table, rulebook(rules))


def can_complete(table: int, hand: int, rules: RuleSet) -> bool:
    """Whether hand cards can make a table legal that is being laid (no path dead-ends)."""
    return _fits(table, table | hand, rulebook(rules))


def split(table: int, rules: RuleSet) -> tuple[tuple[int, ...], ...] | None:
    """One way to cut a table into combinations, as tuples of card ids; None if there is none."""
    if table == 0:
        return ()
    first = table & -table
    for combo in combinations(rules):
        if combo & first and combo & ~table == 0:
            rest = split(table & ~combo, rules)
            if rest is not None:
                return (card_ids(combo), *rest)
    return None


def split_most(table: int, rules: RuleSet) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The ``split`` of a table; of one that is being laid as much as can be, and the loose rest."""
    whole = split(table, rules)
    if whole is not None:
        return whole, ()
    combos = _most([combo for combo in combinations(rules) if combo & ~table == 0], table)
    return tuple(map(card_ids, combos)), card_ids(table & ~sum(combos))


def _most(combos: list[int], table: int) -> list[int]:
    """The separate ones of ``combos`` that cover most of the table."""
    best: list[int] = []
    for i, combo in enumerate(combos):
        if combo & ~table == 0:
            chosen = [combo, *_most(combos[i + 1 :], table & ~combo)]
            best = max(best, chosen, key=lambda some: sum(some).bit_count())
    return best
