"""A game of Conquian for people and search: ask what is legal, apply, look."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from conquian_env import engine
from conquian_env.actions import (
    DISCARD,
    FORCE,
    LAY,
    TAKE,
    action_id,
    action_ids,
    action_name,
)
from conquian_env.cards import (
    NUM_CARDS,
    card_ids,
    card_mask,
    card_name,
    card_names,
    cards,
    cards_text,
)
from conquian_env.deal import check_deal, seed_bits, unsigned
from conquian_env.errors import IllegalActionError, PositionError
from conquian_env.jit import jit
from conquian_env.melds import pack_mask, rulebook, split
from conquian_env.observation import (
    HIDDEN_SIZE,
    MASK_PADDING,
    MASK_WORDS,
    OBSERVATION_SIZE,
    WORD_BYTES,
    Encoding,
    encode,
    write_hidden,
    write_history,
    write_mask,
    write_observation,
)
from conquian_env.position import can_lay_out, from_values, to_values, unnamed
from conquian_env.rules import RuleSet, rule_set
from conquian_env.scene import scene
from conquian_env.state import MAX_EVENTS, NONE, PHASES, STATE, Phase, Source, copied
from conquian_env.svg import svg
from conquian_env.view import View, Views, view_of, views_of

JSON_FORMAT = "conquian-game-2"


class Termination(StrEnum):
    """Why a game ended."""

    OUT = "out"  # a table reached the target (rule 5.1)
    STOCK = "stock"  # the last card was declined with the stock empty (rule 5.3)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a game ended; ``winner`` is None for a draw."""

    winner: int | None
    termination: Termination


@jit
def _deal(rows: NDArray[np.void], seed: int, number: int, books: NDArray[np.void]) -> None:
    engine.deal(rows[0], seed, number, books[0])


@jit
def _hand_out(rows: NDArray[np.void], books: NDArray[np.void]) -> None:
    engine.hand_out(rows[0], books[0])


@jit
def _legal(rows: NDArray[np.void], books: NDArray[np.void]) -> tuple[int, int, int]:
    return engine.legal(rows[0], books[0])


@jit
def _mask(rows: NDArray[np.void], books: NDArray[np.void], words: NDArray[np.int64]) -> None:
    answers, lays, discards = engine.legal(rows[0], books[0])
    write_mask(answers, lays, discards, words)


@jit
def _try_apply(rows: NDArray[np.void], action: int, books: NDArray[np.void]) -> bool:
    answers, lays, discards = engine.legal(rows[0], books[0])
    if not engine.allows(answers | lays << LAY, discards, action):
        return False
    engine.apply(rows[0], action, books[0])
    return True


@jit
def _payoff(rows: NDArray[np.void]) -> int:
    return engine.payoff(rows[0])


@jit
def _observe(rows: NDArray[np.void], seat: int, words: NDArray[np.int64]) -> None:
    write_observation(rows[0], seat, words)


@jit
def _events(rows: NDArray[np.void], seat: int, out: NDArray[np.uint8]) -> None:
    write_history(rows[0], seat, out)


@jit
def _hidden(rows: NDArray[np.void], seat: int, out: NDArray[np.uint8]) -> None:
    write_hidden(rows[0], seat, out)


class Game:
    """A game in play. Seat 0 is the non-dealer of its first deal and acts first (rule 2.1).

    With ``draw="double"`` a drawn deal is followed by the next at once, cards and history new, the
    other seat starting, the stake doubled; otherwise a game is one deal.

    Args:
        rules: a RuleSet or the name of a preset.
        seed: 0 to 2**64 - 1; with ``deal`` it fixes the cards and nothing else does.
        deal: number of the game's first deal under this seed.

    Raises:
        RuleSetError, SeedError: an argument is out of range.
    """

    __slots__ = ("_books", "_rows", "rules")

    rules: RuleSet
    _rows: NDArray[np.void]
    _books: NDArray[np.void]

    def __init__(self, rules: RuleSet | str = "classic", seed: int = 0, deal: int = 0) -> None:
        self.rules = rule_set(rules)
        self._books = rulebook(self.rules)
        self._rows = np.zeros(1, STATE)
        _deal(self._rows, seed_bits(seed), check_deal(deal), self._books)

    @classmethod
    def from_deck(cls, rules: RuleSet | str, deck: str) -> Self:
        """A deal of given cards: seat 0's hand, seat 1's, the stock as it will be turned, the rest.

        Re-deals (``draw="double"``) are those of seed 0, deal 0.

        Raises:
            CardError, PositionError: the text is not the whole pack, each card once.
        """
        game = cls(rules)
        ids = cards(deck)
        if sorted(ids) != list(card_ids(pack_mask(game.rules))):
            wrong = card_ids(card_mask(ids) ^ pack_mask(game.rules))
            raise PositionError(
                f"deck must hold each card of the pack once; look at {cards_text(wrong)}"
            )
        game._rows["stock"][0, : len(ids)] = ids
        _hand_out(game._rows, game._books)
        return game

    @classmethod
    def from_position(
        cls,
        rules: RuleSet | str,
        *,
        hands: tuple[str, str],
        tables: tuple[str, str] = ("", ""),
        face_up: str | None = None,
        stock: str = "",
        dead: str | None = None,
        actor: int = 0,
        phase: str = "turned",
        source: str | None = None,
        removed: str = "",
        given: tuple[str | None, str | None] = (None, None),
        redeal: int = 0,
    ) -> Self:
        """A deal from the middle, its history empty; cards are texts such as ``"2S 3S 4S"``.

        Args:
            rules: a RuleSet or the name of a preset.
            hands: by seat.
            tables: by seat.
            face_up: the card on offer; None in phase meld, where it is on the actor's table.
            stock: in the order it will be turned.
            dead: None means every card that is not named.
            actor: the seat to act.
            phase: turned, offered, meld or force (where the actor is the one who may insist).
            given: by seat, the cards chosen so far in phase give.
            redeal: deals of this game already drawn; those to come are of seed 0, deal 0.
            removed: cards that are neither dealt nor in the stock (rule sets with ``stock``).
            source: how the face-up card came: turned, passed or discarded. By default turned in
                phase turned, and discarded in phases offered and force.

        Raises:
            PositionError, CardError: cards, sizes or phase cannot be; reachability is not checked.
        """
        rules = rule_set(rules)
        if source is None and phase not in (Phase.MELD, Phase.GIVE):
            source = Source.TURNED if phase == Phase.TURNED else Source.DISCARDED
        if dead is None:
            dead = unnamed(rules, hands, tables, stock, face_up, removed)
        nothing = {
            "declined": ("", ""), "discarded": ("", ""), "known": ("", ""), "given": given,
            "winner": None, "history": (), "removed": removed, "redeal": redeal,
        }  # fmt: skip
        values = {
            "hands": hands, "tables": tables, "face_up": face_up, "stock": stock, "dead": dead,
            "actor": actor, "phase": phase, "source": source, "ply": 0, "seed": 0, "deal": 0,
        }  # fmt: skip
        return cls.from_state(rules, from_values(values | nothing, rules))

    @classmethod
    def from_state(cls, rules: RuleSet, rows: NDArray[np.void]) -> Self:
        """A game on a state array of shape (1,), which it owns from now on."""
        game = object.__new__(cls)
        game.rules, game._books, game._rows = rules, rulebook(rules), rows
        return game

    # --- what is on the table ---

    @property
    def actor(self) -> int:
        """The seat to act; in phase over the winner, or the seat that declined last."""
        return int(self._rows["actor"][0])

    @property
    def phase(self) -> Phase:
        """What the actor is asked."""
        return PHASES[int(self._rows["phase"][0])]

    @property
    def face_up(self) -> str | None:
        """The card on offer."""
        card_id = int(self._rows["face_up"][0])
        return None if card_id == NONE else card_name(card_id)

    @property
    def stock_count(self) -> int:
        """Cards left in the stock."""
        return int(self._rows["stock_end"][0] - self._rows["stock_next"][0])

    @property
    def dead(self) -> tuple[str, ...]:
        """Cards refused for good, sorted by id."""
        return card_names(self._rows["dead"][0])

    def hand(self, seat: int) -> tuple[str, ...]:
        """The seat's hidden cards, sorted by id."""
        return card_names(self._rows["hand"][0, _seat(seat)])

    def table(self, seat: int) -> tuple[str, ...]:
        """The seat's melded cards, sorted by id."""
        return card_names(self._rows["table"][0, _seat(seat)])

    def melds(self, seat: int) -> tuple[tuple[str, ...], ...] | None:
        """One legal split of the seat's table; None while cards of a take are still to be laid."""
        groups = split(int(self._rows["table"][0, _seat(seat)]), self.rules)
        if groups is None:
            return None
        return tuple(tuple(map(card_name, group)) for group in groups)

    @property
    def seed(self) -> int:
        """The seed the cards came from."""
        return unsigned(self._rows["seed"][0])

    @property
    def deal(self) -> int:
        """The number of the game's first deal under its seed."""
        return int(self._rows["deal"][0])

    @property
    def redeal(self) -> int:
        """Deals of this game drawn so far (always 0 unless ``draw="double"``)."""
        return int(self._rows["redeal"][0])

    @property
    def stake(self) -> int:
        """What the winner of this deal takes."""
        return 1 << self.redeal

    @property
    def ply(self) -> int:
        """Actions so far."""
        return int(self._rows["ply"][0])

    @property
    def history(self) -> tuple[int, ...]:
        """The public events of this deal so far (see ``actions.event_text``)."""
        return tuple(self._rows["history"][0, : self._rows["events"][0]].tolist())

    # --- the road: legal actions, apply, returns ---

    def legal_actions(self) -> list[int]:
        """Sorted ids of what the actor may do; empty when the game is over."""
        return action_ids(*_legal(self._rows, self._books))

    def legal_mask(self) -> NDArray[np.int8]:
        """The legal actions as int8 [83] of 0 and 1."""
        padded = np.empty(MASK_WORDS * WORD_BYTES, np.int8)
        _mask(self._rows, self._books, padded.view(np.int64))
        return padded[MASK_PADDING:]

    def apply(self, action: int) -> None:
        """Play an action of the actor.

        Raises:
            IllegalActionError: it is not legal now; the message says why and nothing changed.
        """
        number = action_id(action)
        name = action_name(number)
        if not _try_apply(self._rows, number, self._books):
            raise IllegalActionError(f"{name}: {self._why_not(number)}")

    def _why_not(self, action: int) -> str:
        phase, seat = self.phase, self.actor
        if phase == Phase.OVER:
            return "the game is over"
        if action >= LAY:
            return self._why_no_card(action)
        if phase == Phase.GIVE:
            return f"seat {seat} must choose a card to give (discard)"
        if phase == Phase.MELD:
            return f"seat {seat} has taken a card and must lay or discard"
        if action == FORCE:
            return f"there is nothing to force in phase {phase}"
        if phase == Phase.FORCE:
            return f"seat {seat} may only force or pass"
        if self.melds(seat) is None:
            return "the table is not legal yet; lay the missing cards first"
        if action == TAKE:
            return f"no legal table of seat {seat} holds {self.face_up}"
        return f"the table of seat {seat} absorbs {self.face_up}, which must be taken"

    def _why_no_card(self, action: int) -> str:
        phase, seat, laying = self.phase, self.actor, action < DISCARD
        name = card_name((action - LAY) % NUM_CARDS)
        if phase == Phase.GIVE and laying:
            return f"seat {seat} must choose a card to give (discard)"
        hand_melds = self.rules.hand_melds and phase == Phase.TURNED
        hand_melds &= not engine.first_dealt(self._rows[0], self._books[0])
        if phase not in (Phase.MELD, Phase.GIVE) and not (laying and hand_melds):
            return f"not in phase {phase}; answer the face-up card first"
        if name not in self.hand(seat):
            return f"{name} is not in the hand of seat {seat}"
        if not laying:
            return "the table is not legal yet; lay the missing cards first"
        order = " with later cards alone" if self.rules.lay_order == "ascending" else ""
        return f"no legal table of seat {seat} holds {name}{order}"

    @property
    def is_over(self) -> bool:
        """Whether the game has ended."""
        return self.phase == Phase.OVER

    @property
    def outcome(self) -> Outcome | None:
        """How the game ended; None while it is played."""
        if not self.is_over:
            return None
        winner = int(self._rows["winner"][0])
        if winner == NONE:
            return Outcome(None, Termination.STOCK)
        return Outcome(winner, Termination.OUT)

    def returns(self) -> tuple[float, float]:
        """The payoff of each seat so far: the stake and its negative, or 0 for both (5.4)."""
        won = float(_payoff(self._rows))
        return (won, 0.0 - won)

    # --- what a seat may know ---

    def view(self, seat: int) -> View:
        """Exactly what the seat may know."""
        actions = tuple(self.legal_actions()) if seat == self.actor else ()
        return view_of(self._rows[0], _seat(seat), self.rules, actions)

    def observation(self, seat: int, encoding: Encoding = "flat") -> NDArray[np.uint8]:
        """The seat's view as numbers.

        Returns:
            ``flat``: uint8 [416], laid out as ``observation.PIECES`` says; ``planes``: the same as
            uint8 [26, 4, 10]; ``history``: uint8 [616], the flat one and the public events.

        Raises:
            PositionError, OptionError: there is no such seat or encoding.
        """
        out = np.empty(OBSERVATION_SIZE, np.uint8)
        _observe(self._rows, _seat(seat), out.view(np.int64))
        if encoding == "flat":
            return out
        events = np.empty(MAX_EVENTS, np.uint8)
        _events(self._rows, _seat(seat), events)
        return encode(out, encoding, events)

    def state(self, seat: int) -> NDArray[np.uint8]:
        """Everything, as ``seat`` would see it: for a critic in training, never for an agent.

        Returns:
            uint8 [536]: the seat's observation, then ``observation.HIDDEN_PIECES``.
        """
        hidden = np.empty(HIDDEN_SIZE, np.uint8)
        _hidden(self._rows, _seat(seat), hidden)
        return np.concatenate([self.observation(seat), hidden])

    def views(self, seeds: NDArray[np.uint64]) -> Views:
        """What the actor knows as an agent is shown it: one row; ``seeds`` is uint64 [1]."""
        return views_of(self._rows, self.rules, seeds)

    def resample_hidden(self, seat: int, rng: np.random.Generator) -> Self:
        """A game with the same view for ``seat`` and other hidden cards, all equally likely.

        The other hand, the stock and what was removed are drawn anew from the unseen cards; cards
        known to be in the other hand stay. A hand that could not finish a table now being laid is
        drawn again. The seed changes too, so that deals to come say nothing about this one.
        """
        view, other = self.view(seat), 1 - seat
        game = self.copy()
        row = game._rows[0]
        size, table = view.other_hand_size, int(row["table"][other])
        unknown = sorted(set(view.unseen) - set(view.known))
        drawn, stock = size - len(view.known), self.stock_count
        while True:
            order = rng.permutation(np.array(unknown, np.int8)).tolist()
            hand = card_mask([*order[:drawn], *view.known])
            if can_lay_out(row, table, hand, self.rules):
                break
        row["hand"][other] = hand
        row["stock"][row["stock_next"] : row["stock_end"]] = order[drawn : drawn + stock]
        row["removed"] = card_mask(order[drawn + stock :])
        if self.phase == Phase.GIVE and row["given"][other] != NONE:
            row["given"][other] = rng.choice(card_ids(hand))
        row["seed"], row["deal"] = rng.integers(-(1 << 63), 1 << 63, dtype=np.int64), 0
        return game

    # --- copies and text ---

    def to_state(self) -> NDArray[np.void]:
        """A copy of the state, an array of shape (1,) as ``from_state`` wants it."""
        return copied(self._rows)

    def copy(self) -> Self:
        """An independent game in the same state."""
        return self.from_state(self.rules, self.to_state())

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (type(self).from_state, (self.rules, self.to_state()))

    def to_json(self) -> str:
        """The whole state on one line, hidden cards included."""
        head = {"format": JSON_FORMAT, "rules": self.rules.to_dict()}
        return json.dumps(head | to_values(self._rows[0]))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The game that ``to_json`` wrote.

        Raises:
            ConquianError: the text is no such game, or its state cannot be; nothing is loaded.
        """
        rules, values = load_json("saved game", text, JSON_FORMAT)
        check_keys("saved game", values, to_values(np.zeros(1, STATE)[0]))
        return cls.from_state(rules, from_values(values, rules))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Game):
            return NotImplemented
        return self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # a game changes as it is played

    def __repr__(self) -> str:
        return f"<Game seed {self.seed} deal {self.deal} ply {self.ply}: {self.phase}>"

    def _repr_html_(self) -> str:
        """The picture of it in a notebook, both hands open."""
        return svg(scene(self.view(0), self.view(1)))


def load_json(name: str, text: str, expected: str) -> tuple[RuleSet, dict[str, Any]]:
    """The rules and the other values of a JSON text of a format such as ``conquian-game-2``.

    Raises:
        PositionError, RuleSetError: the text is no JSON or of another format, or holds no rules.
    """
    try:
        values = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, TypeError, RecursionError) as error:
        raise PositionError(f"not a {name}: {error}") from None
    check_format(name, values, expected)
    del values["format"]
    fields = values.pop("rules", None)
    rules = RuleSet.from_dict(fields)
    check_keys("rules", fields, rules.to_dict())
    return rules, values


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a key that comes twice would hide a value."""
    values = dict(pairs)
    if len(values) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1):.60} comes twice")
    return values


def check_format(name: str, values: object, expected: str) -> None:
    """Refuse JSON values that are not of a format such as ``conquian-game-2``."""
    found = values.get("format") if isinstance(values, dict) else None
    if found == expected:
        return
    kind = expected.rstrip("0123456789")
    if isinstance(found, str) and found.startswith(kind) and found.removeprefix(kind).isdigit():
        raise PositionError(
            f"{name} of another version of conquian-env: format {found!r}, this one reads "
            f"{expected!r}"
        )
    raise PositionError(f"not a {name}: format {expected!r} expected")


def check_keys(name: str, values: Collection[str], expected: Collection[str]) -> None:
    """Refuse values that lack an expected key or have another one."""
    for key in sorted(set(values) ^ set(expected)):
        what = "missing" if key in expected else "unknown"
        raise PositionError(f"{name}: {key} is {what}")


def _seat(seat: int) -> int:
    if isinstance(seat, bool) or not isinstance(seat, (int, np.integer)) or seat not in (0, 1):
        raise PositionError(f"seat must be 0 or 1, not {seat!r}")
    return int(seat)
