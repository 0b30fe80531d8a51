"""The rules a second time: slow plain Python that exists to disagree with the engine.

It shares no code with `conquian_env` and works from the definitions: a table is tested by choosing
which sets it holds and looking at the stretches left in each suit; a take by trying hand cards.
Numbers in comments are those of RULES.md. Cards are ids, 10 * suit + rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Self, TypedDict, Unpack

SUITS = 4
RANKS = 10  # A 2 3 4 5 6 7 J Q K
JACK = 7  # place of the jack on the line of ranks

PASS, TAKE, FORCE = 0, 1, 2
LAY, DISCARD = 3, 43  # plus the card


class Rules(TypedDict, total=False):
    """The rule fields the oracle knows (6)."""

    seven_jack_adjacent: bool
    deal: int
    force: str
    force_source: str


def combinations(seven_jack_adjacent: bool = True) -> list[frozenset[int]]:
    """Return every set and every run (1.2-1.4)."""
    line = range(RANKS)  # 1.2: the ace is low only, so the line does not close
    pieces = [line] if seven_jack_adjacent else [line[:JACK], line[JACK:]]  # 1.3
    sets = [
        frozenset(10 * suit + rank for suit in suits)
        for rank in line
        for size in (3, 4)
        for suits in itertools.combinations(range(SUITS), size)
    ]
    runs = [
        frozenset(10 * suit + rank for rank in piece[start : start + length])
        for suit in range(SUITS)
        for piece in pieces
        for length in range(3, 9)
        for start in range(len(piece) - length + 1)
    ]
    return sets + runs


COMBINATIONS = {adjacent: combinations(adjacent) for adjacent in (True, False)}


@cache
def _cuttable(length: int) -> bool:
    """Tell whether so many cards in line can be cut into runs of 3 to 8."""
    return length == 0 or any(_cuttable(length - run) for run in range(3, min(length, 8) + 1))


def _stretches(cards: frozenset[int], seven_jack_adjacent: bool) -> list[int]:
    """Return the lengths of the longest unbroken stretches of cards in line, suit by suit."""
    lengths: list[int] = []
    for card in sorted(cards):
        broken = card - 1 not in cards or card % 10 == 0
        if broken or (card % 10 == JACK and not seven_jack_adjacent):
            lengths.append(0)
        lengths[-1] += 1
    return lengths


def _set_choices(cards: frozenset[int], rank: int) -> list[tuple[int, ...]]:
    """Return what one rank can give to sets: nothing, three of its cards, or all four."""
    same = [card for card in cards if card % 10 == rank]
    return [(), *itertools.combinations(same, 3), *itertools.combinations(same, 4)]


@lru_cache(maxsize=1 << 15)
def legal_table(cards: frozenset[int], seven_jack_adjacent: bool = True) -> bool:
    """Tell whether the cards split into separate combinations (1.5); no cards at all do."""
    # A rank holds at most one set, and what is in no set must be in runs. A run never leaves
    # its stretch, so the remaining stretches can be judged by their lengths alone.
    choices = (_set_choices(cards, rank) for rank in range(RANKS))
    for chosen in itertools.product(*choices):
        rest = cards.difference(*chosen)
        if all(_cuttable(length) for length in _stretches(rest, seven_jack_adjacent)):
            return True
    return False


@lru_cache(maxsize=1 << 15)
def can_grow(cards: frozenset[int], hand: frozenset[int], seven_jack_adjacent: bool = True) -> bool:
    """Tell whether the cards, with some, all or none of the hand, form a legal table (3.2)."""
    # A combination of hand cards only can be left out of any such table, so it is enough to try
    # the hand cards that can lie in one combination with a card that has to be there.
    near: set[int] = set()
    for combination in COMBINATIONS[seven_jack_adjacent]:
        if not combination.isdisjoint(cards) and combination <= cards | hand:
            near |= combination
    if not cards <= near:
        return False
    return any(
        legal_table(cards.union(laid), seven_jack_adjacent)
        for size in range(len(near & hand) + 1)
        for laid in itertools.combinations(near & hand, size)
    )


class Oracle:
    """One deal in progress; every attribute is plain and may be looked at."""

    def __init__(
        self,
        hands: tuple[Iterable[int], Iterable[int]],
        stock: Sequence[int],
        *,
        seven_jack_adjacent: bool = True,
        deal: int = 10,
        force: str = "optional",
        force_source: str = "any",
    ) -> None:
        """Start from dealt hands and the stock in turning order; its first card is turned (2.1)."""
        if force not in ("optional", "off", "auto") or force_source not in ("any", "discard"):
            raise ValueError(f"no such rule: force={force!r}, force_source={force_source!r}")
        self.seven_jack_adjacent = seven_jack_adjacent
        self.target = deal + 1  # 2.2
        self.force = force
        self.force_source = force_source
        self.hands: list[set[int]] = [set(hand) for hand in hands]
        self.tables: list[set[int]] = [set(), set()]
        self.dead: set[int] = set()
        self.stock: list[int] = list(stock)
        self.face_up: int | None = None
        self.source: str | None = None  # turned, passed, discarded
        self.winner: int | None = None
        self.actor = 0
        self.phase = "over"  # turned, offered, meld, force, over
        self._turn(0)

    @classmethod
    def position(
        cls,
        hands: tuple[Iterable[int], Iterable[int]],
        tables: tuple[Iterable[int], Iterable[int]],
        face_up: int | None,
        stock: Sequence[int],
        dead: Iterable[int],
        actor: int,
        phase: str,
        source: str | None,
        **rules: Unpack[Rules],
    ) -> Self:
        """Build any state; nothing is checked. In `force` the actor is the one who may insist."""
        game = cls(hands, (), **rules)
        game.tables = [set(table) for table in tables]
        game.dead, game.stock = set(dead), list(stock)
        game.face_up, game.source = face_up, source
        game.actor, game.phase = actor, phase
        return game

    def legal(self) -> list[int]:
        """Return the legal action ids in rising order; none when the deal is over."""
        if self.phase == "over":
            return []
        if self.phase == "force":
            return [PASS, FORCE]  # 4.1: a choice
        hand, table = frozenset(self.hands[self.actor]), frozenset(self.tables[self.actor])
        if self.phase == "meld":
            lays = [LAY + card for card in sorted(hand) if self._grows(table | {card}, hand)]
            done = legal_table(table, self.seven_jack_adjacent)
            return lays + [DISCARD + card for card in sorted(hand) if done]  # 3.5
        assert self.face_up is not None
        must_take = self.force == "auto" and self._forceable(self.actor)
        may_take = self._grows(table | {self.face_up}, hand)
        return [PASS] * (not must_take) + [TAKE] * may_take

    def apply(self, action: int) -> None:
        """Play one action of the actor; ValueError, and nothing changed, when it is not legal."""
        if action not in self.legal():
            raise ValueError(f"action {action} is not legal in {self.phase}")
        seat, other = self.actor, 1 - self.actor
        if self.phase == "meld" and action >= DISCARD:
            self._discard(seat, action - DISCARD)
        elif self.phase == "meld":
            self._lay(seat, action - LAY)
        elif self.phase == "force" and action == FORCE:
            self._take(other)  # 4.3
        elif self.phase == "force":
            self._let_go(other)  # 4.5
        elif action == TAKE:
            self._take(seat)
        elif self._forceable(seat):
            self.phase, self.actor = "force", other  # 4.1
        else:
            self._let_go(seat)

    def returns(self) -> tuple[float, float]:
        """Return what each seat is paid (5.4); nothing before the end and for a draw."""
        if self.winner is None:
            return (0.0, 0.0)
        return (1.0, -1.0) if self.winner == 0 else (-1.0, 1.0)

    def _grows(self, cards: frozenset[int], hand: frozenset[int]) -> bool:
        """Tell whether the cards can become a legal table by means of the rest of the hand."""
        return can_grow(cards, hand - cards, self.seven_jack_adjacent)

    def _forceable(self, seat: int) -> bool:
        """Tell whether the seat's table alone could absorb the face-up card (4.1, 4.2)."""
        if self.force == "off" or self.face_up is None or not self.tables[seat]:
            return False
        if self.force_source == "discard" and self.source != "discarded":
            return False
        return legal_table(frozenset(self.tables[seat] | {self.face_up}), self.seven_jack_adjacent)

    def _turn(self, seat: int) -> None:
        """Let the seat turn the next stock card (3.1, 3.7); without one the deal is drawn (5.3)."""
        if not self.stock:
            self.phase = "over"
            return
        self.face_up, self.source = self.stock.pop(0), "turned"
        self.phase, self.actor = "turned", seat

    def _take(self, seat: int) -> None:
        """Put the face-up card on the seat's table (3.2)."""
        assert self.face_up is not None
        self.tables[seat].add(self.face_up)
        self.face_up = self.source = None
        self.phase, self.actor = "meld", seat
        self._check_win(seat)

    def _lay(self, seat: int, card: int) -> None:
        """Move a hand card to the table."""
        self.hands[seat].remove(card)
        self.tables[seat].add(card)
        self._check_win(seat)

    def _check_win(self, seat: int) -> None:
        """End the deal at once when a legal table has reached the target (4.4, 5.1)."""
        table = frozenset(self.tables[seat])
        if len(table) == self.target and legal_table(table, self.seven_jack_adjacent):
            self.phase, self.winner = "over", seat

    def _discard(self, seat: int, card: int) -> None:
        """Discard face up; the other seat is offered the card (3.5)."""
        self.hands[seat].remove(card)
        self._offer(1 - seat, card, "discarded")

    def _offer(self, seat: int, card: int, source: str) -> None:
        """Offer a card to the seat."""
        self.face_up, self.source = card, source
        self.phase, self.actor = "offered", seat

    def _let_go(self, seat: int) -> None:
        """Let the seat's pass (3.6) or decline (3.7) of the face-up card stand."""
        assert self.face_up is not None
        if self.source == "turned":
            self._offer(1 - seat, self.face_up, "passed")
            return
        self.dead.add(self.face_up)
        self.face_up = self.source = None
        self._turn(seat)
