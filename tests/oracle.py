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
LAY, DISCARD = 3, 43  # plus the card; in `give` 43 + card gives it away

Hands = tuple[Iterable[int], Iterable[int]]


class Rules(TypedDict, total=False):
    """The rule fields (6)."""

    seven_jack_adjacent: bool
    deal: int
    first_card: str
    force: str
    force_source: str
    hand_melds: bool
    exchange: bool
    draw: str
    max_deals: int
    lay_order: str
    suits: int
    ranks: int
    stock: int | None


def combinations(
    seven_jack_adjacent: bool = True, suits: int = SUITS, ranks: int = RANKS
) -> list[frozenset[int]]:
    """Return every set and every run (1.2-1.4) of the pack of the first suits and ranks (6)."""
    line = range(ranks)  # 1.2: the ace is low only, so the line does not close
    pieces = [line] if seven_jack_adjacent else [line[:JACK], line[JACK:]]  # 1.3
    sets = [
        frozenset(10 * suit + rank for suit in chosen)
        for rank in line
        for size in (3, 4)
        for chosen in itertools.combinations(range(suits), size)
    ]
    runs = [
        frozenset(10 * suit + rank for rank in piece[start : start + length])
        for suit in range(suits)
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
    """One deal in progress (with `draw="double"` one game); every attribute may be looked at."""

    phase: str  # give, turned, offered, meld, force, over
    actor: int
    winner: int | None
    hands: list[set[int]]
    tables: list[set[int]]
    dead: set[int]
    stock: list[int]
    removed: set[int]
    face_up: int | None
    source: str | None  # turned, passed, discarded
    dealt: bool  # whether the face-up card is the one that lay there after the deal (6)
    given: list[int | None]  # by seat: the card it has chosen to give
    known: list[set[int]]  # by seat: the cards it knows to be in the other hand

    def __init__(
        self,
        hands: Hands,
        pile: Sequence[int],
        /,
        *,
        seven_jack_adjacent: bool = True,
        deal: int = 10,
        first_card: str = "turned",
        force: str = "optional",
        force_source: str = "any",
        hand_melds: bool = False,
        exchange: bool = False,
        draw: str = "end",
        max_deals: int = 4,
        lay_order: str = "any",
        suits: int = SUITS,
        ranks: int = RANKS,
        stock: int | None = None,
        removed: Iterable[int] = (),
        deals: Sequence[tuple[Hands, Sequence[int]]] = (),
    ) -> None:
        """Start from dealt hands and the stock cards in turning order (2.1).

        `removed`: the cards cut off the stock already; `deals`: the re-deals, hands by seat.
        """
        for value, values in (
            (first_card, ("turned", "dealt")),
            (force, ("optional", "off", "auto")),
            (force_source, ("any", "discard")),
            (draw, ("end", "double")),
            (lay_order, ("any", "ascending")),
        ):
            if value not in values:
                raise ValueError(f"no such rule: {value!r} is none of {values}")
        self.seven_jack_adjacent = seven_jack_adjacent
        self.target = deal + 1  # 2.2
        self.first_card = first_card
        self.force = force
        self.force_source = force_source
        self.hand_melds = hand_melds
        self.exchange = exchange
        self.stock_limit = stock
        self.ascending = lay_order == "ascending"
        self.last_laid: int | None = None
        self.pack = {10 * suit + rank for suit in range(suits) for rank in range(ranks)}
        self.max_deals = max_deals if draw == "double" else 1
        self.deals = list(deals)
        self.deal_number, self.stake, self.starter = 0, 1, 0
        self.winner = None
        self._deal(hands, pile)
        self.removed |= set(removed)

    @classmethod
    def position(
        cls,
        hands: Hands,
        tables: Hands,
        face_up: int | None,
        stock: Sequence[int],
        /,
        dead: Iterable[int],
        actor: int,
        phase: str,
        source: str | None,
        **rules: Unpack[Rules],
    ) -> Self:
        """Build any state; nothing is checked. In `force` the actor is the one who may insist.

        The face-up card counts as turned, not dealt; set `dealt`, `known`, `stake`, ... afterwards.
        """
        game = cls(((), ()), (0,), **rules)  # a card to turn, so that the start is no draw
        game.hands = [set(hand) for hand in hands]
        game.tables = [set(table) for table in tables]
        game.dead, game.stock = set(dead), list(stock)
        game.face_up, game.source, game.dealt = face_up, source, False
        game.actor, game.phase = actor, phase
        return game

    def legal(self) -> list[int]:
        """Return the legal action ids in rising order; none when the deal is over."""
        if self.phase == "over":
            return []
        if self.phase == "force":
            return [PASS, FORCE]  # 4.1: a choice
        hand, table = frozenset(self.hands[self.actor]), frozenset(self.tables[self.actor])
        if self.phase == "give":
            return [DISCARD + card for card in sorted(hand)]  # 6: exchange
        whole = legal_table(table, self.seven_jack_adjacent)
        melds = self.hand_melds and self.phase == "turned" and not self.dealt  # 6
        lays: list[int] = []
        if self.phase == "meld" or melds:
            lays = [LAY + card for card in sorted(hand) if self._may_lay(card, table, hand)]
        if self.phase == "meld":
            return lays + [DISCARD + card for card in sorted(hand) if whole]  # 3.5
        if melds and not whole:
            return lays
        assert self.face_up is not None
        must_take = self.force == "auto" and self._forceable(self.actor)
        may_take = self._grows(table | {self.face_up}, hand)
        return [PASS] * (not must_take) + [TAKE] * may_take + lays

    def apply(self, action: int) -> None:
        """Play one action of the actor; ValueError, and nothing changed, when it is not legal."""
        if action not in self.legal():
            raise ValueError(f"action {action} is not legal in {self.phase}")
        seat, other = self.actor, 1 - self.actor
        self.last_laid = action - LAY if LAY <= action < DISCARD else None
        if self.phase == "give":
            self._give(seat, action - DISCARD)
        elif action >= DISCARD:
            self._discard(seat, action - DISCARD)
        elif action >= LAY:
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
        paid = float(self.stake)  # 6: draw
        return (paid, -paid) if self.winner == 0 else (-paid, paid)

    def _grows(self, cards: frozenset[int], hand: frozenset[int]) -> bool:
        """Tell whether the cards can become a legal table by means of the rest of the hand."""
        return can_grow(cards, hand - cards, self.seven_jack_adjacent)

    def _may_lay(self, card: int, table: frozenset[int], hand: frozenset[int]) -> bool:
        """Tell whether the card may be laid; in ascending order only later ones can follow (6)."""
        if not self.ascending:
            return self._grows(table | {card}, hand)
        in_order = self.last_laid is None or card > self.last_laid
        return in_order and self._grows(table | {card}, frozenset(c for c in hand if c > card))

    def _forceable(self, seat: int) -> bool:
        """Tell whether the seat's table alone could absorb the face-up card (4.1, 4.2)."""
        if self.force == "off" or self.face_up is None or not self.tables[seat]:
            return False
        if self.force_source == "discard" and self.source != "discarded":
            return False
        return legal_table(frozenset(self.tables[seat] | {self.face_up}), self.seven_jack_adjacent)

    def _deal(self, hands: Hands, pile: Sequence[int]) -> None:
        """Deal (2.1); stock cards beyond the limit are removed unseen (6)."""
        size = len(pile) if self.stock_limit is None else self.stock_limit
        self.hands = [set(hand) for hand in hands]
        self.tables = [set(), set()]
        self.dead = set()
        self.stock, self.removed = list(pile[:size]), set(pile[size:])
        if not self.pack.issuperset(itertools.chain(*self.hands, pile)):
            raise ValueError("a card is not in the pack")
        self.face_up = self.source = None
        self.dealt = False
        self.given, self.known = [None, None], [set(), set()]
        self.phase, self.actor = "give", self.starter
        if not self.exchange:
            self._begin()

    def _give(self, seat: int, card: int) -> None:
        """Choose the card to give; when both seats have, they swap and play begins (6)."""
        self.given[seat] = card
        self.actor = 1 - seat
        if None in self.given:
            return
        for giver, gift in enumerate(self.given):
            assert gift is not None
            self.hands[giver].remove(gift)
            self.hands[1 - giver].add(gift)
            self.known[giver].add(gift)
        self._begin()

    def _begin(self) -> None:
        """Show the first stock card to the seat that starts: turned by it (3.1) or dealt (6)."""
        self._turn(self.starter)
        self.dealt = self.first_card == "dealt"

    def _turn(self, seat: int) -> None:
        """Let the seat turn the next stock card (3.1, 3.7); without one the deal is drawn (5.3)."""
        if not self.stock:
            self._draw()
            return
        self.face_up, self.source = self.stock.pop(0), "turned"
        self.phase, self.actor = "turned", seat

    def _draw(self) -> None:
        """End a drawn deal (5.3); the other seat starts the next one, at twice the stake (6).

        IndexError when there should be another deal and the caller gave none.
        """
        if self.deal_number + 1 >= self.max_deals:
            self.phase = "over"
            return
        hands, pile = self.deals[self.deal_number]
        self.deal_number += 1
        self.stake *= 2
        self.starter = 1 - self.starter
        self._deal(hands, pile)

    def _take(self, seat: int) -> None:
        """Put the face-up card on the seat's table (3.2)."""
        assert self.face_up is not None
        self.tables[seat].add(self.face_up)
        self.face_up = self.source = None
        self.dealt = False
        self.phase, self.actor = "meld", seat
        self._check_win(seat)

    def _lay(self, seat: int, card: int) -> None:
        """Move a hand card to the table."""
        self._play(seat, card)
        self.tables[seat].add(card)
        self._check_win(seat)

    def _play(self, seat: int, card: int) -> None:
        """Take a card out of the hand, where no giver knows it to be any more (6)."""
        self.hands[seat].remove(card)
        self.known[1 - seat].discard(card)

    def _check_win(self, seat: int) -> None:
        """End the deal at once when a legal table has reached the target (4.4, 5.1)."""
        table = frozenset(self.tables[seat])
        if len(table) == self.target and legal_table(table, self.seven_jack_adjacent):
            self.phase, self.winner = "over", seat

    def _discard(self, seat: int, card: int) -> None:
        """Discard face up; the other seat is offered the card (3.5)."""
        self._play(seat, card)
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
        next_to_turn = 1 - seat if self.dealt else seat  # 6: the seat that started, if dealt
        self.dealt = False
        self._turn(next_to_turn)
