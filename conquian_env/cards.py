"""Cards as ids 0..39 and card sets as int64 bit masks (rules 1.1, 1.2).

Card id = 10 * suit + rank, suits C D H S, ranks A 2 3 4 5 6 7 J Q K; bit ``id`` of a mask is the
card. Masks are *signed* 64-bit: mixing uint64 and int64 gives floats when the JIT is off.
"""

from collections.abc import Iterable

from conquian_env.errors import CardError
from conquian_env.jit import instruction, jit

SUITS = "CDHS"
RANKS = "A234567JQK"
NUM_SUITS, NUM_RANKS, NUM_CARDS = 4, 10, 40
NAMES = tuple(rank + suit for suit in SUITS for rank in RANKS)
PACK = (1 << NUM_CARDS) - 1

_IDS = {name: card_id for card_id, name in enumerate(NAMES)}


def card(text: str) -> int:
    """The id of a card written rank first, as in ``"7D"``.

    Raises:
        CardError: ``text`` is not one of the forty cards.
    """
    if not isinstance(text, str) or text not in _IDS:
        raise CardError(
            f"unknown card {text!r}: a card is a rank of A 2 3 4 5 6 7 J Q K and a suit of C D H S"
        )
    return _IDS[text]


def cards(text: str) -> tuple[int, ...]:
    """The ids of cards separated by blanks, in the order written.

    Raises:
        CardError: a word is no card, or the whole is no text.
    """
    if not isinstance(text, str):
        raise CardError(f"cards must be a text such as '2S 3S', not {text!r:.60}")
    return tuple(card(word) for word in text.split())


def card_name(card_id: int) -> str:
    """The two letters of a card id, as in ``"7D"`` for 16."""
    if not 0 <= card_id < NUM_CARDS:
        raise CardError(f"unknown card id {card_id}: ids run from 0 to {NUM_CARDS - 1}")
    return NAMES[card_id]


def card_mask(ids: Iterable[int]) -> int:
    """The mask of distinct card ids.

    Raises:
        CardError: a card comes twice, or is none.
    """
    mask = 0
    for card_id in ids:
        name = card_name(card_id)
        if mask >> card_id & 1:
            raise CardError(f"card {name} comes twice")
        mask |= 1 << card_id
    return mask


def card_ids(mask: int) -> tuple[int, ...]:
    """The ids in a mask, ascending."""
    mask = int(mask)
    return tuple(card_id for card_id in range(NUM_CARDS) if mask >> card_id & 1)


def card_names(mask: int) -> tuple[str, ...]:
    """The names in a mask, sorted by id."""
    return tuple(NAMES[card_id] for card_id in card_ids(mask))


def cards_text(ids: Iterable[int]) -> str:
    """Card ids as text, the inverse of ``cards``."""
    return " ".join(map(card_name, ids))


@jit
def bit(card_id: int) -> int:
    """The mask of one card (a Python 1 shifted by an int8 would overflow with the JIT off)."""
    return 1 << int(card_id)


@instruction("ctpop")
def count(mask: int) -> int:
    """How many bits are set."""
    return int(mask).bit_count()


@instruction("cttz", True)  # the mask is not empty
def lowest(mask: int) -> int:
    """The place of the lowest bit, such as the lowest card id, of a mask that is not empty."""
    mask = int(mask)
    return (mask & -mask).bit_length() - 1
