"""The state of one game: a row of a NumPy structured array, and the names of what is in it."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from conquian_env.cards import NUM_CARDS


class Phase(StrEnum):
    """What the actor is asked; the engine stores the index in this order."""

    GIVE = "give"
    TURNED = "turned"
    OFFERED = "offered"
    MELD = "meld"
    FORCE = "force"
    OVER = "over"


class Source(StrEnum):
    """How the face-up card came; the engine stores the index in this order."""

    TURNED = "turned"
    PASSED = "passed"
    DISCARDED = "discarded"


PHASES, SOURCES = tuple(Phase), tuple(Source)
PHASE_GIVE, PHASE_TURNED, PHASE_OFFERED, PHASE_MELD, PHASE_FORCE, PHASE_OVER = range(6)
SOURCE_TURNED, SOURCE_PASSED, SOURCE_DISCARDED = 0, 1, 2
NONE = -1  # no face-up card, no source, no winner

# Two events for each offer (at most two a stock card, one a discard), one for each hand card laid
# or discarded and one for each card turned: 192 in a deal of two cards each, the smallest, and two
# gifts.
MAX_EVENTS = 200

STATE = np.dtype(
    [
        ("hand", np.int64, 2),  # card masks by seat
        ("table", np.int64, 2),
        ("declined", np.int64, 2),  # cards the seat passed or declined, also if then forced
        ("discarded", np.int64, 2),
        ("known", np.int64, 2),  # cards the seat knows to be in the other hand (it gave them)
        ("dead", np.int64),
        ("pack", np.int64),  # all cards of the game
        ("removed", np.int64),  # cards of the pack that are neither dealt nor in the stock
        ("seed", np.int64),  # the 64 bits of an unsigned seed
        ("deal", np.int64),
        ("redeal", np.int8),  # drawn deals of this game before this one; the stake is 2**redeal
        ("phase", np.int8),
        ("actor", np.int8),
        ("face_up", np.int8),  # card id or NONE
        ("given", np.int8, 2),  # the card each seat chose to give, or NONE
        ("source", np.int8),
        ("winner", np.int8),
        ("stock_next", np.int8),  # index of the next card to turn
        ("stock_end", np.int8),
        ("stock", np.int8, NUM_CARDS),
        ("ply", np.int16),  # actions so far in this game
        ("events", np.int16),
        ("history", np.uint8, MAX_EVENTS),  # public events, see actions.py
    ],
    align=True,
)


def copied(rows: NDArray[np.void]) -> NDArray[np.void]:
    """A copy of STATE rows, made of bytes: NumPy copies field by field, three times slower."""
    return rows.view(np.uint8).copy().view(STATE)
