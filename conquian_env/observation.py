"""What a seat sees, as numbers: one table of named pieces, and the encoders that follow it.

``PIECES`` is the layout: the encoder writes the pieces in this order, the docs and the tests read
them from it. All are from the observer's side and hold nothing that the observer may not know.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conquian_env.actions import DISCARD, GAVE, NUM_ACTIONS, SEAT_BIT, SEAT_FLAG
from conquian_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS, bit, count
from conquian_env.errors import OptionError
from conquian_env.jit import jit
from conquian_env.state import MAX_EVENTS, NONE, PHASE_GIVE, PHASE_OVER, PHASES, SOURCES

OBSERVATION_VERSION = 1


class Piece(NamedTuple):
    """A named part of the observation: ``size`` numbers of dtype uint8 from 0 to ``high``."""

    name: str
    size: int
    high: int
    meaning: str


PIECES = (
    Piece("own_hand", NUM_CARDS, 1, "cards in the observer's hand"),
    Piece("own_table", NUM_CARDS, 1, "cards the observer has melded"),
    Piece("other_table", NUM_CARDS, 1, "cards the other seat has melded"),
    Piece("face_up", NUM_CARDS, 1, "the face-up card on offer, if any"),
    Piece("dead", NUM_CARDS, 1, "cards both seats refused"),
    Piece("unseen", NUM_CARDS, 1, "cards in the other hand or the stock"),
    Piece("declined", NUM_CARDS, 1, "cards the observer passed or declined"),
    Piece("other_declined", NUM_CARDS, 1, "cards the other seat passed or declined"),
    Piece("other_discarded", NUM_CARDS, 1, "cards the other seat discarded"),
    Piece(
        "known",
        NUM_CARDS,
        1,
        "cards known to be in the other hand (those the observer gave)",
    ),
    Piece("phase", len(PHASES), 1, "one of give, turned, offered, meld, force, over"),
    Piece("source", len(SOURCES), 1, "face-up card was turned, passed or discarded"),
    Piece("to_act", 1, 1, "the observer is to act"),
    Piece("stock_left", 1, NUM_CARDS, "cards left in the stock"),
    Piece("own_hand_size", 1, NUM_CARDS, "cards in the observer's hand"),
    Piece("own_table_size", 1, NUM_CARDS, "cards on the observer's table"),
    Piece("other_hand_size", 1, NUM_CARDS, "cards in the other hand"),
    Piece("other_table_size", 1, NUM_CARDS, "cards on the other table"),
    Piece("stake", 1, 127, "what the winner of this deal takes"),
)
OBSERVATION_SIZE = sum(piece.size for piece in PIECES)
CARD_PIECES = sum(piece.size == NUM_CARDS for piece in PIECES)


def _slices() -> dict[str, slice]:
    ends = np.cumsum([piece.size for piece in PIECES]).tolist()
    return {p.name: slice(end - p.size, end) for p, end in zip(PIECES, ends, strict=True)}


LAYOUT = _slices()
CARDS_END = CARD_PIECES * NUM_CARDS  # the card pieces come first
HIGHS = np.repeat([p.high for p in PIECES], [p.size for p in PIECES]).astype(np.uint8)

# What no seat sees: with the observation it makes ``state``.
HIDDEN_PIECES = (
    Piece("other_hand", NUM_CARDS, 1, "cards in the other hand"),
    Piece("turns", NUM_CARDS, NUM_CARDS, "when the card will be turned: 1 is next, 0 never"),
    Piece("other_gift", NUM_CARDS, 1, "the card that the other seat has chosen to give"),
)
HIDDEN_SIZE = sum(piece.size for piece in HIDDEN_PIECES)
HIDDEN_HIGHS = np.repeat([p.high for p in HIDDEN_PIECES], NUM_CARDS).astype(np.uint8)

# Rows are written as little-endian words of eight bytes: BYTES[m] has byte k = bit k of m.
WORD_BYTES = 8
OBSERVATION_WORDS = OBSERVATION_SIZE // WORD_BYTES
CARD_WORDS = NUM_CARDS // WORD_BYTES
ONE_HOTS_WORD = CARDS_END // WORD_BYTES  # phase and source, nine bytes
NUMBERS_WORD = ONE_HOTS_WORD + 1  # the ninth, to_act and the counts
BYTES = np.array([sum((m >> k & 1) << 8 * k for k in range(8)) for m in range(256)], np.int64)
PACKED_WORDS = CARD_PIECES + 2
# A mask row is padded in front, so that lays and discards begin on a word.
MASK_PADDING = WORD_BYTES - 3
MASK_WORDS = (MASK_PADDING + NUM_ACTIONS) // WORD_BYTES
NO_EVENT = 255

Encoding = Literal["flat", "planes", "history"]


@jit
def write_cards(mask: int, words: NDArray[np.int64], at: int) -> None:
    """Expand a card mask to forty bytes of 0 and 1, five words from ``words[at]`` on."""
    for k in range(CARD_WORDS):
        words[at + k] = BYTES[(mask >> (WORD_BYTES * k)) & 255]


@jit
def card_masks(row: np.void, seat: int) -> tuple[int, ...]:
    """The card pieces as ``seat`` sees them, a mask each, in the order of PIECES."""
    other = 1 - seat
    hand, table, other_table = row["hand"][seat], row["table"][seat], row["table"][other]
    dead = row["dead"]
    face_up = bit(row["face_up"]) if row["face_up"] != NONE else 0
    unseen = row["pack"] & ~(hand | table | other_table | face_up | dead)
    declined, other_declined = row["declined"][seat], row["declined"][other]
    return (
        hand, table, other_table, face_up, dead, unseen, declined, other_declined,
        row["discarded"][other], row["known"][seat],
    )  # fmt: skip


@jit
def number_words(row: np.void, seat: int) -> tuple[int, int]:
    """The sixteen bytes of the other pieces as ``seat`` sees them, in the order of PIECES."""
    other = 1 - seat
    one_hots = bit(row["phase"])
    if row["source"] != NONE:
        one_hots |= bit(row["source"] + len(PHASES))
    stake = 1 << int(row["redeal"])
    sizes = stake << 56 | count(row["table"][other]) << 48 | count(row["hand"][other]) << 40
    sizes |= count(row["table"][seat]) << 32 | count(row["hand"][seat]) << 24
    sizes |= int(row["stock_end"] - row["stock_next"]) << 16
    to_act = int(row["actor"] == seat and row["phase"] != PHASE_OVER)
    return BYTES[one_hots & 255], sizes | to_act << 8 | one_hots >> 8


@jit
def write_observation(row: np.void, seat: int, words: NDArray[np.int64]) -> None:
    """Encode a state as ``seat`` sees it into ``words`` (int64 [52], the 416 bytes of PIECES)."""
    for place, mask in enumerate(card_masks(row, seat)):
        write_cards(mask, words, place * CARD_WORDS)
    words[ONE_HOTS_WORD], words[NUMBERS_WORD] = number_words(row, seat)


@jit
def write_packed(row: np.void, seat: int, words: NDArray[np.int64]) -> None:
    """The same in an eighth of the space: a word for each card piece (int64 [12])."""
    for place, mask in enumerate(card_masks(row, seat)):
        words[place] = mask
    words[CARD_PIECES], words[CARD_PIECES + 1] = number_words(row, seat)


@jit
def write_mask(answers: int, lays: int, discards: int, words: NDArray[np.int64]) -> None:
    """Expand three legal masks into ``words`` (int64 [11]): bytes 5 to 87 are the 83 actions."""
    words[0] = BYTES[answers] << (WORD_BYTES * MASK_PADDING)
    write_cards(lays, words, 1)
    write_cards(discards, words, 1 + CARD_WORDS)


@jit
def write_history(row: np.void, seat: int, out: NDArray[np.uint8]) -> None:
    """Write the public events (uint8 [MAX_EVENTS], the rest NO_EVENT); bit 7 is "the other".

    Gifts are named as the actions that gave them: the observer's own at once, the other's when it
    has come to the observer's hand.
    """
    out[:] = NO_EVENT
    for k in range(row["events"]):
        event = int(row["history"][k]) ^ int(seat) << SEAT_BIT
        if event == GAVE:
            event = DISCARD + int(row["given"][seat])
        elif event == GAVE | SEAT_FLAG and row["phase"] != PHASE_GIVE:
            event = DISCARD + int(row["given"][1 - seat]) | SEAT_FLAG
        out[k] = event


@jit
def write_hidden(row: np.void, seat: int, out: NDArray[np.uint8]) -> None:
    """Write what ``seat`` does not see, as HIDDEN_PIECES says (uint8 [120])."""
    out[:] = 0
    for card_id in range(NUM_CARDS):
        out[card_id] = (row["hand"][1 - seat] >> card_id) & 1
    for place in range(row["stock_next"], row["stock_end"]):
        out[NUM_CARDS + row["stock"][place]] = place - row["stock_next"] + 1
    if row["phase"] == PHASE_GIVE and row["given"][1 - seat] != NONE:
        out[2 * NUM_CARDS + row["given"][1 - seat]] = 1


def encode(
    flat: NDArray[np.uint8], encoding: Encoding, events: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """A flat observation (uint8 [..., 416]) in another encoding; events are uint8 [..., 200]."""
    match encoding:
        case "flat":
            return flat
        case "planes":
            return planes(flat)
        case "history":
            return np.concatenate([flat, events], axis=-1)
    raise OptionError(f"encoding must be flat, planes or history, not {encoding!r}")


def highs(encoding: Encoding) -> NDArray[np.uint8]:
    """The greatest value of each number of an encoding, in its shape."""
    return encode(HIGHS, encoding, np.full(MAX_EVENTS, NO_EVENT, np.uint8))


@jit
def cards_at(observation: NDArray[np.uint8], start: int) -> int:
    """The mask of the card piece that begins at ``start`` in one observation (uint8 [416])."""
    mask = 0
    for card_id in range(NUM_CARDS):
        if observation[start + card_id]:
            mask |= bit(card_id)
    return mask


def unpack(observation: Any, mask: Any, xp: Any = np) -> tuple[Any, Any]:
    """What a packed ``Batch`` shows, in bytes, on the device where it lies.

    Args:
        observation: int64 [..., 12].
        mask: int64 [..., 2].
        xp: the arrays' library: ``numpy``, ``torch`` or another with the array API's names.

    Returns:
        uint8 [..., 416] as PIECES lays it out, and bool [..., 83].
    """

    def spread(words: Any, size: int, bits: int) -> Any:
        """``size`` numbers of so many bits from each word, the lowest first: [..., k * size]."""
        shifts = xp.arange(0, size * bits, bits, device=words.device)
        numbers = (words[..., None] >> shifts) & ((1 << bits) - 1)
        return numbers.reshape(*words.shape[:-1], words.shape[-1] * size)

    cards = spread(observation[..., :CARD_PIECES], NUM_CARDS, 1)
    numbers = spread(observation[..., CARD_PIECES:], WORD_BYTES, 8)
    low, high = spread(mask[..., :1], DISCARD, 1), spread(mask[..., 1:], NUM_CARDS, 1)
    return (
        xp.asarray(xp.concat((cards, numbers), -1), dtype=xp.uint8),
        xp.asarray(xp.concat((low, high), -1), dtype=xp.bool),
    )


def planes(observation: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A flat observation (uint8 [..., 416]) as channels on the suit × rank grid.

    Returns:
        uint8 [..., 26, 4, 10]: the ten card pieces, then every other number as a constant plane.
    """
    lead = observation.shape[:-1]
    grid = observation[..., :CARDS_END].reshape(*lead, CARD_PIECES, NUM_SUITS, NUM_RANKS)
    numbers = observation[..., CARDS_END:, None, None]
    flat = np.broadcast_to(numbers, (*numbers.shape[:-2], NUM_SUITS, NUM_RANKS))
    return np.concatenate([grid, flat], axis=-3)
