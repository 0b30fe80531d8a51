"""Deals that may be the one in play: what a view leaves open, dealt anew; for search."""

import numpy as np
from numpy.typing import NDArray

from conquian_env.actions import (
    CODE_MASK,
    DISCARD,
    FORCE,
    GAVE,
    LAY,
    NUM_ACTIONS,
    PASS,
    SEAT_BIT,
    TAKE,
    TURN,
)
from conquian_env.batch import Batch
from conquian_env.cards import bit, card_mask
from conquian_env.engine import can_take, forceable
from conquian_env.errors import OptionError
from conquian_env.jit import jit
from conquian_env.melds import pack_mask, rulebook
from conquian_env.position import can_lay_out
from conquian_env.state import NONE, PHASES, SOURCE_DISCARDED, SOURCE_TURNED, SOURCES, STATE, Phase
from conquian_env.view import View


def redeal(view: View, rng: np.random.Generator, n: int) -> Batch:
    """``n`` games that look to ``view.seat`` as this one does, all equally likely.

    The other hand, the stock and what was removed are dealt anew from the unseen cards; cards known
    to be in the other hand stay there. Declines are evidence that is not weighed here
    (``decline_weights`` does that). What no view tells, such as the seed, is new, too.

    Raises:
        OptionError: ``n`` is below 1, or the game is over.
    """
    if n < 1 or view.phase == Phase.OVER:
        raise OptionError(f"n={n}, phase {view.phase}: no world to deal")
    rows = np.repeat(_known(view), n)
    rows["seed"] = rng.integers(-(1 << 63), 1 << 63, n, np.int64)
    todo = np.arange(n)
    while len(todo):
        rows[todo] = _dealt(rows[todo], view, rng)
        todo = todo[[not _possible(rows[i], view) for i in todo]]
    return Batch.from_states(view.rules, rows)


def _known(view: View) -> NDArray[np.void]:
    """The state that the view tells of, the hidden cards missing; dtype STATE [1]."""
    rows = np.zeros(1, STATE)
    row, seat, other = rows[0], view.seat, 1 - view.seat
    row["hand"][seat], row["pack"] = card_mask(view.hand), pack_mask(view.rules)
    row["table"][seat], row["table"][other] = card_mask(view.table), card_mask(view.other_table)
    row["declined"][seat] = card_mask(view.declined)
    row["declined"][other] = card_mask(view.other_declined)
    own_discards = [e & CODE_MASK for e in view.history if e >> SEAT_BIT == seat]
    row["discarded"][seat] = card_mask({e - DISCARD for e in own_discards if DISCARD <= e < TURN})
    row["discarded"][other] = card_mask(view.other_discarded)
    row["known"][seat] = card_mask(view.known)
    row["given"] = NONE
    row["given"][seat] = NONE if view.given is None else view.given
    if view.received is not None:
        row["given"][other] = view.received
        row["known"][other] = row["hand"][seat] & bit(view.received)
    row["dead"] = card_mask(view.dead)
    row["redeal"] = view.stake.bit_length() - 1
    row["phase"], row["actor"], row["winner"] = PHASES.index(view.phase), view.actor, NONE
    row["face_up"] = NONE if view.face_up is None else view.face_up
    row["source"] = NONE if view.source is None else SOURCES.index(view.source)
    row["stock_end"] = view.stock_count
    row["ply"] = row["events"] = len(view.history)
    row["history"][: len(view.history)] = view.history
    return rows


def _dealt(rows: NDArray[np.void], view: View, rng: np.random.Generator) -> NDArray[np.void]:
    """The rows with hidden cards drawn at random."""
    other, drawn = 1 - view.seat, view.other_hand_size - len(view.known)
    unknown = np.array(sorted(set(view.unseen) - set(view.known)), np.int64)
    order = rng.permuted(np.tile(unknown, (len(rows), 1)), axis=1)
    end = drawn + view.stock_count
    rows["hand"][:, other] = card_mask(view.known) | _masks(order[:, :drawn])
    rows["stock"][:, : view.stock_count] = order[:, drawn:end]
    rows["removed"] = _masks(order[:, end:])
    if view.phase == Phase.GIVE and other << SEAT_BIT | GAVE in view.history:
        rows["given"][:, other] = order[:, 0]
    return rows


def _masks(cards: NDArray[np.int64]) -> NDArray[np.int64]:
    """The card masks of rows of card ids, int64 [n, k] in, int64 [n] out."""
    masks: NDArray[np.int64] = np.bitwise_or.reduce(np.int64(1) << cards, axis=1)
    return masks


def _possible(row: np.void, view: View) -> bool:
    """Whether the other seat can finish the table that it may be laying."""
    if view.actor == view.seat or view.phase not in (Phase.MELD, Phase.TURNED):
        return True
    other = 1 - view.seat
    return can_lay_out(row, int(row["table"][other]), int(row["hand"][other]), view.rules)


def decline_weights(view: View, worlds: Batch, doubt: float) -> NDArray[np.float64]:
    """How likely worlds are in the light of what the other seat declined.

    A seat that could take a card is believed to decline it with probability ``doubt``; only what
    the history of this deal tells is weighed.

    Args:
        view: what the worlds were dealt from.
        worlds: n games of ``redeal``.
        doubt: 0 to 1; with 1 nothing is weighed.

    Returns:
        float64 [n], positive, not normalised (with ``doubt=0`` all can be 0).
    """
    weights = np.ones(worlds.num_games)
    _weigh(worlds.states(), 1 - view.seat, rulebook(view.rules), doubt, weights)
    return weights


@jit
def _weigh(
    rows: NDArray[np.void],
    seat: int,
    books: NDArray[np.void],
    doubt: float,
    weights: NDArray[np.float64],
) -> None:
    """Go back through each row's history, and look at what the seat held when it declined."""
    for i in range(len(rows)):
        row = rows[i]
        while row["events"] > 0:
            row["events"] -= 1
            event = int(np.int64(row["history"][row["events"]]))  # as uint8 it would make floats
            if not _show_face_up(row):  # a history that began in the middle, in a position
                break
            if event == seat << SEAT_BIT | PASS:
                card, hand, table = bit(row["face_up"]), row["hand"][seat], row["table"][seat]
                if not _asked(row, seat, books[0]) and can_take(card, table, hand, books[0]):
                    weights[i] *= doubt
            _take_back(row, event >> SEAT_BIT, event & CODE_MASK)


@jit
def _show_face_up(row: np.void) -> bool:
    """Set the card that the next event answered and how it came; False if there was none."""
    for k in range(row["events"] - 1, -1, -1):
        code = np.int64(row["history"][k]) & CODE_MASK
        if DISCARD <= code < GAVE:
            turned = code >= TURN
            row["face_up"] = code - (TURN if turned else DISCARD)
            row["source"] = SOURCE_TURNED if turned else SOURCE_DISCARDED
            return True
    return False


@jit
def _asked(row: np.void, seat: int, book: np.void) -> bool:
    """Whether the seat's pass was an answer to whether it insists (4.1)."""
    before = np.int64(row["history"][row["events"] - 1])
    return bool(before == (1 - seat) << SEAT_BIT | PASS) and forceable(row, 1 - seat, book)


@jit
def _take_back(row: np.void, seat: int, code: int) -> None:
    """Undo what an event did to hands and tables."""
    if TAKE <= code <= FORCE:  # who insists makes the other take
        taker = seat if code == TAKE else 1 - seat
        row["table"][taker] ^= bit(row["face_up"])
    elif LAY <= code < DISCARD:
        row["table"][seat] ^= bit(code - LAY)
        row["hand"][seat] |= bit(code - LAY)
    elif DISCARD <= code < NUM_ACTIONS:
        row["hand"][seat] |= bit(code - DISCARD)
