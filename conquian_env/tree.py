"""The game as a tree of decisions and of chance, for exact algorithms.

The moves of chance are card ids. First come the hands, seat 0's and then seat 1's, each in
ascending order, so that a pair of hands has one history. The stock is turned lazily: whenever the
engine would turn a card, chance picks any card that is neither dealt nor seen. No rule is written
here: a ``Node`` plays the engine on a state whose stock is not decided.
"""

from functools import lru_cache
from math import comb
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from conquian_env import engine
from conquian_env.actions import CODE_MASK, DISCARD, GAVE, SEAT_BIT, TURN, action_ids
from conquian_env.cards import NUM_CARDS, bit, card_ids, card_mask, card_name, cards_text, count
from conquian_env.errors import IllegalActionError, OptionError
from conquian_env.game import Game
from conquian_env.jit import jit
from conquian_env.melds import pack_mask, rulebook
from conquian_env.observation import LAYOUT, PIECES, write_history
from conquian_env.rules import RuleSet
from conquian_env.state import (
    MAX_EVENTS,
    NONE,
    PHASE_OVER,
    PHASE_TURNED,
    PHASES,
    SOURCES,
    STATE,
    copied,
)

CHANCE, TERMINAL = -1, -4  # players, with the numbers OpenSpiel gives them
_ONE_HOTS: dict[str, tuple[str, ...]] = {"phase": PHASES, "source": SOURCES}


@jit
def _turn_card(row: np.void, card_id: int) -> None:
    row["removed"] ^= bit(card_id)
    row["stock"][row["stock_next"]] = card_id
    engine.turn(row, int(row["actor"]))


@jit
def _deal_card(row: np.void, card_id: int, book: np.void) -> None:
    seat = 0 if count(row["hand"][0]) < book["deal"] else 1
    row["hand"][seat] |= bit(card_id)
    row["removed"] ^= bit(card_id)
    if count(row["hand"][1]) == book["deal"]:
        engine.begin(row, book)


@jit
def _dealing(row: np.void, book: np.void) -> bool:
    """Whether cards of the hands are still to be dealt."""
    return bool(row["events"] == 0 and count(row["hand"][1]) < book["deal"])


@jit
def _move(row: np.void, action: int, book: np.void) -> None:
    """Make a move of a seat or of chance, but leave it to chance which card is turned.

    The stock holds NONE only. The engine turns a card last if at all, and it is taken back.
    """
    turned = row["stock_next"]
    if _dealing(row, book):
        _deal_card(row, action, book)
    elif engine.unturned(row):
        _turn_card(row, action)
        return
    else:
        engine.apply(row, action, book)
    if row["stock_next"] > turned:
        row["stock_next"] = turned
        row["events"] -= 1


@jit
def _advance(
    rows: NDArray[np.void], action: int, books: NDArray[np.void], skip_forced: bool
) -> tuple[int, int, int, int]:
    """Make a move, and forced ones; who is next (or TERMINAL or CHANCE), and his legal masks."""
    row, book = rows[0], books[0]
    while True:
        _move(row, action, book)
        if row["phase"] == PHASE_OVER:
            return TERMINAL, 0, 0, 0
        if engine.unturned(row):
            return CHANCE, 0, 0, 0
        answers, lays, discards = engine.legal(row, book)
        action = engine.only_action(answers, lays, discards) if skip_forced else -1
        if action < 0:
            return int(row["actor"]), answers, lays, discards


@jit
def _undealt(rows: NDArray[np.void], books: NDArray[np.void]) -> None:
    """Nothing dealt; the pack waits in ``removed``, from where cards come when they are seen."""
    row, book = rows[0], books[0]
    engine.clear(row)
    row["pack"] = row["removed"] = book["pack"]
    row["stock_end"] = book["stock"]
    row["stock"][:] = NONE
    row["phase"], row["actor"] = PHASE_TURNED, 0


@jit
def _history(rows: NDArray[np.void], seat: int, out: NDArray[np.uint8]) -> None:
    write_history(rows[0], seat, out)


@lru_cache(maxsize=1 << 16)
def _lowest_dealt(pool: int, missing: int) -> dict[int, float]:
    """The probability of each card to be the lowest of ``missing`` cards drawn from a pool."""
    ids = card_ids(pool)
    hands = comb(len(ids), missing)
    lowest = ids[: len(ids) - missing + 1]
    return {card: comb(len(ids) - k, missing - 1) / hands for k, card in enumerate(lowest, 1)}


_actions = lru_cache(maxsize=1 << 16)(lambda *masks: tuple(action_ids(*masks)))
_cards_text = lru_cache(maxsize=1 << 16)(lambda mask: cards_text(card_ids(mask)))


def _event_texts() -> tuple[str, ...]:
    codes = ["p", "t", "f"]
    codes += [f"{sign}{card_name(c)}" for sign in "+-*" for c in range(NUM_CARDS)]
    codes += ["g"]
    codes += [""] * (CODE_MASK + 1 - len(codes))
    return tuple(f"{seat}{code}" for seat in range(2) for code in codes)


_EVENT_TEXTS = _event_texts()


class Setup(NamedTuple):
    """What all nodes of a tree share."""

    rules: RuleSet
    books: NDArray[np.void]
    skip_forced: bool

    @property
    def max_events(self) -> int:
        """Public events of a game at most: every action and every card turned."""
        return self.rules.max_plies + self.rules.stock_size


class Node:
    """A place in the tree. It never changes, so that clones of a state can share it.

    Attributes:
        setup: what all nodes of the tree share.
        rows: the state, shape (1,) of dtype STATE; its stock is not decided. Where chance is to
            move it is in phase turned, without a face-up card and legal actions.
        dealt: the hands as they were dealt (so far), by seat, as masks.
        player: the seat to act, CHANCE or TERMINAL.
        actions: what the seat may do, sorted; empty if no seat is to act.
        chances: the cards chance may choose, each with its probability; empty if it is not to move.
    """

    __slots__ = ("actions", "chances", "dealt", "player", "rows", "setup")

    def __init__(
        self,
        setup: Setup,
        rows: NDArray[np.void],
        dealt: tuple[int, int],
        player: int,
        actions: tuple[int, ...],
    ) -> None:
        self.setup, self.rows, self.dealt = setup, rows, dealt
        self.player, self.actions = player, actions
        self.chances = self._chances() if player == CHANCE else {}

    @classmethod
    def root(cls, rules: RuleSet, skip_forced: bool = False) -> Self:
        """The start of a game: nothing is dealt.

        Raises:
            OptionError: ``draw="double"``, where each deal is a game of its own.
        """
        if rules.draw != "end":
            raise OptionError("draw='double': each deal is a game of its own, take draw='end'")
        setup = Setup(rules, rulebook(rules), skip_forced)
        rows = np.zeros(1, STATE)
        _undealt(rows, setup.books)
        return cls(setup, rows, (0, 0), CHANCE, ())

    @property
    def missing(self) -> tuple[int, int]:
        """Cards still to be dealt, by seat."""
        deal, (first, second) = self.setup.rules.deal, self.dealt
        return deal - first.bit_count(), deal - second.bit_count()

    def _chances(self) -> dict[int, float]:
        pool = int(self.rows["removed"][0])
        for hand, missing in zip(self.dealt, self.missing, strict=True):
            if missing:
                return _lowest_dealt(pool & -1 << hand.bit_length(), missing).copy()
        return _lowest_dealt(pool, 1).copy()  # the cache keeps its own

    def child(self, move: int) -> Self:
        """The node after a move of the player.

        Raises:
            IllegalActionError: there is no such move.
        """
        if move not in self.actions and move not in self.chances:
            raise IllegalActionError(f"{move} is none of {self.actions or list(self.chances)}")
        rows, setup = copied(self.rows), self.setup
        player, *masks = _advance(rows, move, setup.books, setup.skip_forced)
        dealt = self.dealt
        if self.missing[1]:
            first, second = rows["hand"][0].tolist()
            dealt = first, second
        return type(self)(setup, rows, dealt, player, _actions(*masks))

    @property
    def game(self) -> Game:
        """A copy as a Game whose stock is not decided."""
        return Game.from_state(self.setup.rules, copied(self.rows))

    def history(self, seat: int) -> NDArray[np.uint8]:
        """Public events and the seat's own gift: uint8 [max_events], see ``write_history``."""
        out = np.empty(MAX_EVENTS, np.uint8)
        _history(self.rows, seat, out)
        return out[: self.setup.max_events]

    def information(self, seat: int) -> str:
        """All that the seat has seen: the hand it was dealt, gifts, and the public events.

        An event is the seat and ``p`` pass, ``t`` take, ``f`` force, ``+7D`` lay, ``-7D`` discard,
        ``*7D`` turn or ``g`` give.
        """
        row = self.rows[0]
        parts = [str(seat), _cards_text(self.dealt[seat])]
        if self.setup.rules.exchange:  # which card was given, and in the hand the one received
            given = int(row["given"][seat])
            parts += [
                "" if given == NONE else card_name(given),
                _cards_text(int(row["hand"][seat])),
            ]
        events = row["history"][: row["events"]].tobytes()
        parts.append(" ".join([_EVENT_TEXTS[event] for event in events]))
        return "|".join(parts)

    def observation_text(self, seat: int) -> str:
        """What the seat sees now: the pieces of its observation that are not all zeros."""
        seen = self.game.observation(seat)
        pieces = {piece.name: seen[LAYOUT[piece.name]] for piece in PIECES}
        return "\n".join(_piece_text(name, part) for name, part in pieces.items() if part.any())

    def resample(self, seat: int, rng: np.random.Generator) -> list[int]:
        """Moves from the root to a random node with the same ``information`` for the seat.

        What is hidden from the seat is drawn anew: the other hand, with it what was dealt to the
        other seat, and a gift that was not seen yet. All deals that agree with what the seat has
        seen, and all such gifts, are equally likely.
        """
        seen = self.information(seat)
        while True:
            path, end = self._redealt(seat, rng) if self.missing[1] else self._replayed(seat, rng)
            if end.information(seat) == seen:  # with skip_forced the other may have no choice here
                return path

    def _redealt(self, seat: int, rng: np.random.Generator) -> tuple[list[int], Self]:
        """Whole hands of which the seat has seen its part, dealt as far as here."""
        pack, own = pack_mask(self.setup.rules), self.dealt[seat]
        own |= _pick(pack & -1 << own.bit_length(), self.missing[seat], rng)
        other = _pick(pack & ~own, self.setup.rules.deal, rng)
        return self._deal((own, other) if seat == 0 else (other, own))

    def _deal(self, hands: tuple[int, int]) -> tuple[list[int], Self]:
        """As many cards of two hands, from the root on, as are dealt here."""
        node = self.root(self.setup.rules, self.setup.skip_forced)
        dealt = sum(hand.bit_count() for hand in self.dealt)
        path = [*card_ids(hands[0]), *card_ids(hands[1])][:dealt]
        for card in path:
            node = node.child(card)
        return path, node

    def _replayed(self, seat: int, rng: np.random.Generator) -> tuple[list[int], Self]:
        """The events up to here, played with another hand of the other seat."""
        game = self.game.resample_hidden(seat, rng)
        views = game.view(0), game.view(1)
        old, new = int(self.rows["hand"][0, 1 - seat]), card_mask(views[1 - seat].hand)
        hands = list(self.dealt)
        hands[1 - seat] ^= old ^ new  # what was played stays; so do cards known to be in the hand
        path, node = self._deal((hands[0], hands[1]))
        while (played := int(node.rows["events"][0])) < len(game.history):
            event = game.history[played]
            given = views[event >> SEAT_BIT].given
            path.append(_move_of(event & CODE_MASK, NONE if given is None else given))
            node = node.child(path[-1])
        return path, node

    def __deepcopy__(self, memo: object) -> Self:
        return self


def _piece_text(name: str, part: NDArray[np.uint8]) -> str:
    if name in _ONE_HOTS:
        return f"{name}: {_ONE_HOTS[name][part.argmax()]}"
    return f"{name}: {part[0] if len(part) == 1 else cards_text(np.flatnonzero(part).tolist())}"


def _pick(pool: int, number: int, rng: np.random.Generator) -> int:
    """So many cards of a pool, all equally likely."""
    return card_mask(rng.choice(card_ids(pool), number, replace=False).tolist())


def _move_of(code: int, given: int) -> int:
    """The move that a public event tells of, with the card if one was given."""
    if code == GAVE:
        return DISCARD + given
    return code - TURN if code >= TURN else code
