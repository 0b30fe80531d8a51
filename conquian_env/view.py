"""What a seat may know and nothing else: ``View`` of one game, ``Views`` of many for agents."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conquian_env.actions import (
    CODE_MASK,
    DISCARD,
    GAVE,
    NUM_ACTIONS,
    PASS,
    SEAT_BIT,
    SEAT_FLAG,
    TURN,
    action_name,
    event_text,
)
from conquian_env.cards import bit, card_ids, cards_text
from conquian_env.engine import legal
from conquian_env.errors import IllegalActionError, PositionError
from conquian_env.jit import jit
from conquian_env.melds import rulebook
from conquian_env.observation import (
    LAYOUT,
    MASK_PADDING,
    MASK_WORDS,
    NO_EVENT,
    OBSERVATION_WORDS,
    write_history,
    write_mask,
    write_observation,
)
from conquian_env.rules import RuleSet
from conquian_env.scene import scene
from conquian_env.state import MAX_EVENTS, NONE, PHASE_OVER, PHASES, SOURCES, Phase, Source
from conquian_env.svg import svg

Cards = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What ``seat`` knows of a deal; all cards are ids, ascending.

    Attributes:
        legal_actions: ids, empty unless the seat is to act.
        known: cards in the other hand that the seat gave it.
        given: the card the seat chose to give, if it has; received: the one it got for it.
        history: public events of this deal (see ``actions.event_text``), seats as in the game.
        winner: the seat that went out, None while playing and after a draw.
        stake: what the winner of this deal takes.
    """

    rules: RuleSet
    seat: int
    actor: int
    phase: Phase
    face_up: int | None
    source: Source | None
    hand: Cards
    table: Cards
    other_table: Cards
    other_hand_size: int
    dead: Cards
    unseen: Cards
    known: Cards
    declined: Cards
    other_declined: Cards
    other_discarded: Cards
    stock_count: int
    given: int | None
    received: int | None
    legal_actions: tuple[int, ...]
    history: tuple[int, ...]
    winner: int | None
    stake: int

    def to_json(self) -> str:
        """One line of JSON; ``from_json`` gives an equal view."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "View":
        """The view that ``to_json`` wrote.

        Raises:
            PositionError: the text is no view.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
            source = data["source"]
            values = {
                "rules": RuleSet.from_dict(data["rules"]),
                "phase": Phase(data["phase"]),
                "source": None if source is None else Source(source),
            }
            return cls(**data | lists | values)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise PositionError(f"not a saved view: {error}") from None

    def __str__(self) -> str:
        face_up = cards_text(() if self.face_up is None else (self.face_up,))
        return "\n".join(
            [
                f"seat {self.seat}, phase {self.phase}, seat {self.actor} to act, "
                f"stake {self.stake}",
                f"face up: {face_up or '-'} ({self.source or 'none'}); stock {self.stock_count}",
                f"hand: {cards_text(self.hand) or '-'}",
                f"table: {cards_text(self.table) or '-'}",
                f"other table: {cards_text(self.other_table) or '-'}",
                f"other hand: {self.other_hand_size} cards",
                f"dead: {cards_text(self.dead) or '-'}",
                f"legal: {', '.join(map(action_name, self.legal_actions)) or '-'}",
                f"history: {'; '.join(map(event_text, self.history)) or '-'}",
            ]
        )

    def _repr_html_(self) -> str:
        """The picture of it in a notebook."""
        return svg(scene(self))


def view_of(row: np.void, seat: int, rules: RuleSet, legal_actions: tuple[int, ...]) -> View:
    """The view of ``seat``; ``legal_actions`` are the actor's and dropped for the other seat."""
    other = 1 - seat
    hand, table, other_table = (
        int(row["hand"][seat]),
        int(row["table"][seat]),
        int(row["table"][other]),
    )
    face_up, dead = int(row["face_up"]), int(row["dead"])
    shown = 0 if face_up == NONE else 1 << face_up
    source, winner = int(row["source"]), int(row["winner"])
    return View(
        rules=rules,
        seat=seat,
        actor=int(row["actor"]),
        phase=PHASES[row["phase"]],
        face_up=None if face_up == NONE else face_up,
        source=None if source == NONE else SOURCES[source],
        hand=card_ids(hand),
        table=card_ids(table),
        other_table=card_ids(other_table),
        other_hand_size=int(row["hand"][other]).bit_count(),
        dead=card_ids(dead),
        unseen=card_ids(int(row["pack"]) & ~(hand | table | other_table | shown | dead)),
        known=card_ids(row["known"][seat]),
        declined=card_ids(row["declined"][seat]),
        other_declined=card_ids(row["declined"][other]),
        other_discarded=card_ids(row["discarded"][other]),
        stock_count=int(row["stock_end"] - row["stock_next"]),
        given=None if row["given"][seat] == NONE else int(row["given"][seat]),
        received=_received(row, seat),
        legal_actions=legal_actions if seat == row["actor"] else (),
        history=tuple(row["history"][: row["events"]].tolist()),
        winner=None if winner == NONE else winner,
        stake=1 << int(row["redeal"]),
    )


def _received(row: np.void, seat: int) -> int | None:
    gift = int(row["given"][1 - seat])
    return None if gift == NONE or PHASES[row["phase"]] == Phase.GIVE else gift


@dataclass(frozen=True, slots=True)
class Views:
    """What the actors of ``n`` games know, as arrays; the argument of every agent.

    Attributes:
        rules: RuleSet: what is played.
        observation: uint8 [n, 416]: the pieces of ``observation.PIECES``.
        mask: bool [n, 83]: the legal actions; never all false.
        hand, table, other_table, dead: int64 [n]: cards, bit c for card c.
        face_up: int64 [n]: the bit of the face-up card, or 0.
        history: uint8 [n, 200]: public events, +128 for the other seat, 255 after the last.
        seeds: uint64 [n]: the agent's own randomness for each decision; says nothing of the deal.
    """

    rules: RuleSet
    observation: NDArray[np.uint8]
    mask: NDArray[np.bool_]
    hand: NDArray[np.int64]
    table: NDArray[np.int64]
    other_table: NDArray[np.int64]
    dead: NDArray[np.int64]
    face_up: NDArray[np.int64]
    history: NDArray[np.uint8]
    seeds: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.seeds)

    def view(self, i: int) -> View:
        """Decision ``i`` as a View, for search; the seat is 0 where nothing tells which it is."""
        seen = {name: self.observation[i, place] for name, place in LAYOUT.items()}
        cards = {name: tuple(np.flatnonzero(piece).tolist()) for name, piece in seen.items()}
        sizes = {name: int(piece[0]) for name, piece in seen.items()}
        events = [event for event in self.history[i].tolist() if event != NO_EVENT]
        gifts = _gifts(events)
        given, received = (
            next((e & CODE_MASK for e in gifts if e >> SEAT_BIT == who), GAVE) for who in range(2)
        )
        first_to_act = (sizes["stake"].bit_length() - 1) % 2  # who starts a deal, see rule 6
        seat = first_to_act ^ (events[0] >> SEAT_BIT if events else 0)
        public = [GAVE | event & SEAT_FLAG for event in gifts] + events[len(gifts) :]
        return View(
            rules=self.rules,
            seat=seat,
            actor=seat,
            phase=PHASES[cards["phase"][0]],
            face_up=next(iter(cards["face_up"]), None),
            source=SOURCES[cards["source"][0]] if cards["source"] else None,
            hand=cards["own_hand"],
            table=cards["own_table"],
            other_table=cards["other_table"],
            other_hand_size=sizes["other_hand_size"],
            dead=cards["dead"],
            unseen=cards["unseen"],
            known=cards["known"],
            declined=cards["declined"],
            other_declined=cards["other_declined"],
            other_discarded=cards["other_discarded"],
            stock_count=sizes["stock_left"],
            given=None if given == GAVE else given - DISCARD,
            received=None if received == GAVE else received - DISCARD,
            legal_actions=tuple(np.flatnonzero(self.mask[i]).tolist()),
            history=tuple(event ^ seat << SEAT_BIT for event in public),
            winner=None,
            stake=sizes["stake"],
        )


def _gifts(events: list[int]) -> list[int]:
    """The gifts at the head of a history: one still hidden, or two cards without an answer."""
    codes = [event & CODE_MASK for event in events[:2]]
    if codes[:1] == [GAVE]:
        return events[:1]
    return events[:2] if len(codes) == 2 and min(codes) >= DISCARD and max(codes) < TURN else []


def legal_choices(who: str, chosen: object, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What an agent chose, int64 [n]; ``mask`` (bool [n, 83]) is as it was before it was asked.

    Raises:
        IllegalActionError: it is no legal action for each decision; the message names ``who``.
    """
    try:
        actions = np.asarray(chosen)
    except ValueError as error:  # lists of different lengths
        raise IllegalActionError(f"{who}: {error}") from None
    if actions.shape != (len(mask),) or actions.dtype.kind not in "iu":
        raise IllegalActionError(
            f"{who}: act must return {len(mask)} integers, "
            f"not {actions.dtype} of shape {actions.shape}"
        )
    legal = are_legal(actions, mask)
    if not legal.all():
        row = int(np.flatnonzero(~legal)[0])
        raise IllegalActionError(f"{who}: action {actions[row]} is not legal in row {row}")
    return actions.astype(np.int64)


def are_legal(actions: NDArray[np.integer[Any]], mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the actions ([n], any numbers) the rows of ``mask`` (bool [n, 83]) allow."""
    inside = (actions >= 0) & (actions < NUM_ACTIONS)
    legal: NDArray[np.bool_] = inside & mask[np.arange(len(mask)), np.where(inside, actions, 0)]
    return legal


@jit
def _write_views(
    rows: NDArray[np.void],
    books: NDArray[np.void],
    index: NDArray[np.int64],
    observations: NDArray[np.int64],
    masks: NDArray[np.int64],
    cards: NDArray[np.int64],
    history: NDArray[np.uint8],
) -> None:
    for i in range(len(index)):
        row = rows[index[i]]
        seat = row["actor"]
        write_observation(row, seat, observations[i])
        answers, lays, discards = legal(row, books[0])
        if row["phase"] == PHASE_OVER:
            answers = 1 << PASS  # as in a finished row of a Batch
        write_mask(answers, lays, discards, masks[i])
        write_history(row, seat, history[i])
        cards[0, i], cards[1, i] = row["hand"][seat], row["table"][seat]
        cards[2, i], cards[3, i] = row["table"][1 - seat], row["dead"]
        cards[4, i] = bit(row["face_up"]) if row["face_up"] != NONE else 0


def views_of(
    rows: NDArray[np.void],
    rules: RuleSet,
    seeds: NDArray[np.uint64],
    index: NDArray[np.int64] | None = None,
) -> Views:
    """The views of the actors of ``rows`` (dtype STATE), with one seed for each decision.

    ``index`` (int64 [n]) names the rows; None stands for all.
    """
    index, n = np.arange(len(rows)) if index is None else index, len(seeds)
    observations = np.empty((n, OBSERVATION_WORDS), np.int64)
    masks = np.empty((n, MASK_WORDS), np.int64)
    cards = np.empty((5, n), np.int64)
    history = np.empty((n, MAX_EVENTS), np.uint8)
    _write_views(rows, rulebook(rules), index, observations, masks, cards, history)
    mask = masks.view(np.bool_)[:, MASK_PADDING : MASK_PADDING + NUM_ACTIONS]
    hand, table, other_table, dead, face_up = cards
    observation = observations.view(np.uint8)
    return Views(rules, observation, mask, hand, table, other_table, dead, face_up, history, seeds)
