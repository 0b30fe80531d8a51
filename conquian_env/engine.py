"""The rules in motion: deal → legal actions → apply, on one row of dtype ``STATE``.

Everything here is compiled by numba and also runs as plain Python (``NUMBA_DISABLE_JIT=1``).
``row`` is a record of ``STATE`` and is changed in place; ``book`` is a record of ``RULEBOOK``.
"""

import numpy as np

from conquian_env.actions import CODE_MASK, DISCARD, FORCE, GAVE, LAY, PASS, SEAT_FLAG, TAKE, TURN
from conquian_env.cards import NUM_RANKS, bit, count, lowest
from conquian_env.deal import shuffle
from conquian_env.jit import jit
from conquian_env.melds import FORCE_AUTO, FORCE_OFF, fits, is_legal_table, meldable, reach
from conquian_env.state import (
    NONE,
    PHASE_FORCE,
    PHASE_GIVE,
    PHASE_MELD,
    PHASE_OFFERED,
    PHASE_OVER,
    PHASE_TURNED,
    SOURCE_DISCARDED,
    SOURCE_PASSED,
    SOURCE_TURNED,
)


@jit
def deal(row: np.void, seed: int, number: int, book: np.void) -> None:
    """Start a game with its first deal."""
    row["seed"], row["deal"] = seed, number
    row["redeal"] = row["ply"] = 0
    deal_cards(row, book)


@jit
def deal_cards(row: np.void, book: np.void) -> None:
    """The pack is shuffled and dealt (2.1)."""
    ranks = book["ranks"]
    deck = row["stock"][: book["suits"] * ranks]
    shuffle(deck, int(row["seed"]), int(row["deal"]), int(row["redeal"]))
    for place in range(len(deck)):
        deck[place] = NUM_RANKS * (deck[place] // ranks) + deck[place] % ranks
    hand_out(row, book)


@jit
def hand_out(row: np.void, book: np.void) -> None:
    """Two hands and the stock from the pack that lies in ``row["stock"]``, and the play begins."""
    clear(row)
    row["pack"], size = book["pack"], book["deal"]
    deck = row["stock"][: book["suits"] * book["ranks"]]
    for place in range(len(deck)):
        card_id = deck[place]
        if place < 2 * size:
            row["hand"][place // size] |= bit(card_id)
        elif place >= 2 * size + book["stock"]:
            row["removed"] |= bit(card_id)
    row["stock_next"], row["stock_end"] = 2 * size, 2 * size + book["stock"]
    deck[: 2 * size] = NONE  # the order of a hand is nobody's to know,
    deck[2 * size + book["stock"] :] = NONE  # nor are cards that were removed
    begin(row, book)


@jit
def begin(row: np.void, book: np.void) -> None:
    """The hands are dealt: the seat that starts turns a card, or gives one (2.1, 3.1, 6)."""
    if book["exchange"]:
        row["phase"], row["actor"] = PHASE_GIVE, starter(row)
    else:
        turn(row, starter(row))


@jit
def starter(row: np.void) -> int:
    """The seat that starts the deal: seat 0, and after each drawn deal the other (6)."""
    return int(row["redeal"]) % 2


@jit
def clear(row: np.void) -> None:
    """No cards anywhere, nothing done in this deal."""
    for seat in range(2):
        row["hand"][seat] = row["table"][seat] = 0
        row["declined"][seat] = row["discarded"][seat] = row["known"][seat] = 0
        row["given"][seat] = NONE
    row["dead"] = row["pack"] = row["removed"] = 0
    row["face_up"] = row["source"] = row["winner"] = NONE
    row["stock_next"] = row["stock_end"] = 0
    row["events"] = 0


@jit
def legal(row: np.void, book: np.void) -> tuple[int, int, int]:
    """The legal actions as three masks: answers (bits PASS, TAKE, FORCE), lays, discards."""
    seat, phase = row["actor"], row["phase"]
    hand, table = row["hand"][seat], row["table"][seat]
    if phase == PHASE_OVER or unturned(row):
        return 0, 0, 0
    if phase == PHASE_FORCE:
        return 1 << PASS | 1 << FORCE, 0, 0
    if phase == PHASE_GIVE:
        return 0, 0, hand
    if phase == PHASE_MELD:
        lays = layable(row, seat, book)
        return 0, lays, hand if is_legal_table(table, book) else 0
    lays = 0
    if phase == PHASE_TURNED and book["hand_melds"] and not first_dealt(row, book):
        lays = layable(row, seat, book)
        if not is_legal_table(table, book):
            return 0, lays, 0
    answers = 0
    if can_take(bit(row["face_up"]), table, hand, book):
        answers |= 1 << TAKE
    if book["force"] != FORCE_AUTO or not forceable(row, seat, book):
        answers |= 1 << PASS
    return answers, lays, 0


@jit
def can_take(card: int, table: int, hand: int, book: np.void) -> bool:
    """Whether a legal table holds the own table and the card (3.2)."""
    # A combination with hand cards alone can lie beside the table, which is legal as it is.
    if meldable(card | hand, book["run_starts"]) & card:
        return True
    return table != 0 and fits(table | card, table | card | hand, book)


@jit
def layable(row: np.void, seat: int, book: np.void) -> int:
    """The hand cards with which the seat's table can be, or become, legal (3.2)."""
    hand, table = int(row["hand"][seat]), int(row["table"][seat])
    if book["ascending"] == 0:
        return reach(table, table | hand, book) & hand
    lays, later = 0, later_cards(hand, last_laid(row))
    while later:
        card = later & -later
        if fits(table | card, table | later, book):
            lays |= card
        later ^= card
    return lays


@jit
def last_laid(row: np.void) -> int:
    """The card that the actor laid last in this turn, or NONE: the last event, if it is a lay."""
    code = int(row["history"][row["events"] - 1]) & CODE_MASK if row["events"] > 0 else PASS
    return code - LAY if LAY <= code < DISCARD else NONE


@jit
def later_cards(hand: int, laid: int) -> int:
    """The hand cards that may still be laid after ``laid`` when ids must ascend (6)."""
    if laid == NONE:
        return hand
    return hand & (-2 << int(laid))


@jit
def apply(row: np.void, action: int, book: np.void) -> None:
    """Play a legal action of the actor."""
    seat = int(row["actor"])
    row["ply"] += 1
    if row["phase"] == PHASE_GIVE:
        give(row, seat, action - DISCARD)
        return
    record(row, seat, action)
    if action >= DISCARD:
        discard(row, seat, action - DISCARD)
    elif action >= LAY:
        lay(row, seat, action - LAY, book)
    elif action == TAKE:
        take(row, seat, book)
    elif action == FORCE:
        take(row, 1 - seat, book)
    elif row["phase"] == PHASE_FORCE:
        stand(row, 1 - seat, book)
    else:
        decline(row, seat, book)


@jit
def give(row: np.void, seat: int, card_id: int) -> None:
    """Choose a card to give; once both have, they swap and the first card is turned."""
    row["given"][seat] = card_id
    record(row, seat, GAVE)
    if row["given"][1 - seat] == NONE:
        row["actor"] = 1 - seat
        return
    for giver in range(2):
        card = bit(row["given"][giver])
        row["hand"][giver] ^= card
        row["hand"][1 - giver] |= card
        row["known"][giver] = card
    turn(row, starter(row))


@jit
def first_dealt(row: np.void, book: np.void) -> bool:
    """Whether the face-up card is the one that was dealt face up (``first_card``)."""
    if book["first_dealt"] == 0 or row["source"] == SOURCE_DISCARDED:
        return False
    return bool(row["stock_end"] - row["stock_next"] == book["stock"] - 1)


@jit
def turn(row: np.void, seat: int) -> None:
    """The seat turns the next stock card (3.1, 3.7)."""
    face_up = int(row["stock"][row["stock_next"]])
    row["stock_next"] += 1
    row["face_up"], row["source"] = face_up, SOURCE_TURNED
    row["phase"], row["actor"] = PHASE_TURNED, seat
    record(row, seat, TURN + face_up)


@jit
def unturned(row: np.void) -> bool:
    """Whether a card is about to be turned and the stock is not decided; nobody acts then."""
    return bool(row["phase"] == PHASE_TURNED and row["face_up"] == NONE)


@jit
def take(row: np.void, seat: int, book: np.void) -> None:
    """The face-up card goes to the seat's table, which may complete it (3.2, 4.3, 4.4, 5.1)."""
    row["table"][seat] |= bit(row["face_up"])
    row["face_up"] = row["source"] = NONE
    row["phase"], row["actor"] = PHASE_MELD, seat
    win_if_complete(row, seat, book)


@jit
def lay(row: np.void, seat: int, card_id: int, book: np.void) -> None:
    """A hand card joins the table (3.2)."""
    leave_hand(row, seat, card_id)
    row["table"][seat] |= bit(card_id)
    win_if_complete(row, seat, book)


@jit
def leave_hand(row: np.void, seat: int, card_id: int) -> None:
    """A card leaves the hand; the other seat need not remember that it is there."""
    row["hand"][seat] ^= bit(card_id)
    row["known"][1 - seat] &= ~bit(card_id)


@jit
def win_if_complete(row: np.void, seat: int, book: np.void) -> None:
    """The target reached wins at once (5.1); a completed table is legal, as no lay dead-ends."""
    if count(row["table"][seat]) == book["target"]:
        row["phase"], row["winner"] = PHASE_OVER, seat


@jit
def discard(row: np.void, seat: int, card_id: int) -> None:
    """The card that ends a take is offered to the other seat (3.5)."""
    leave_hand(row, seat, card_id)
    row["discarded"][seat] |= bit(card_id)
    row["face_up"], row["source"] = card_id, SOURCE_DISCARDED
    row["phase"], row["actor"] = PHASE_OFFERED, 1 - seat


@jit
def decline(row: np.void, seat: int, book: np.void) -> None:
    """The seat passes or declines; the other may first be asked to insist (4.1)."""
    row["declined"][seat] |= bit(row["face_up"])
    if forceable(row, seat, book):
        row["phase"], row["actor"] = PHASE_FORCE, 1 - seat
    else:
        stand(row, seat, book)


@jit
def forceable(row: np.void, seat: int, book: np.void) -> bool:
    """Whether the seat's table alone could absorb the face-up card (4.1, 4.2)."""
    table = row["table"][seat]
    if book["force"] == FORCE_OFF or table == 0:
        return False
    if book["force_discards_only"] and row["source"] != SOURCE_DISCARDED:
        return False
    return is_legal_table(table | bit(row["face_up"]), book)


@jit
def stand(row: np.void, seat: int, book: np.void) -> None:
    """The seat's refusal stands: the card is passed on, or dead and the next one turned.

    Rules 3.6 and 3.7; with the stock empty the deal is drawn.
    """
    if row["source"] == SOURCE_TURNED:
        row["source"] = SOURCE_PASSED
        row["phase"], row["actor"] = PHASE_OFFERED, 1 - seat
        return
    next_to_turn = 1 - seat if first_dealt(row, book) else seat
    row["dead"] |= bit(row["face_up"])
    row["face_up"] = row["source"] = NONE
    if row["stock_next"] < row["stock_end"]:
        turn(row, next_to_turn)
    else:
        draw(row, seat, book)


@jit
def draw(row: np.void, seat: int, book: np.void) -> None:
    """The deal is drawn (5.3): it is over, or dealt again for twice the stake (6)."""
    if row["redeal"] + 1 < book["max_deals"]:
        row["redeal"] += 1
        deal_cards(row, book)
    else:
        row["phase"], row["actor"] = PHASE_OVER, seat


@jit
def payoff(row: np.void) -> int:
    """What seat 0 has won (5.4): the stake or its negative, 0 while nobody has."""
    if row["winner"] == NONE:
        return 0
    stake = 1 << int(row["redeal"])
    return stake if row["winner"] == 0 else -stake


@jit
def record(row: np.void, seat: int, code: int) -> None:
    """Append a public event (see actions.py)."""
    row["history"][row["events"]] = seat * SEAT_FLAG + code
    row["events"] += 1


@jit
def allows(low: int, high: int, action: int) -> bool:
    """Whether an action from 0 to 82 is in the actions ``answers | lays << LAY`` and discards."""
    if action >= DISCARD:
        return (high >> (action - DISCARD)) & 1 == 1
    return (low >> action) & 1 == 1


@jit
def only_action(answers: int, lays: int, discards: int) -> int:
    """The single legal action of three legal masks, or -1 if there is a choice or none."""
    if count(answers) + count(lays) + count(discards) != 1:
        return -1
    if answers:
        return lowest(answers)
    return LAY + lowest(lays) if lays else DISCARD + lowest(discards)


@jit
def pop_action(low: int, high: int) -> tuple[int, int, int]:
    """The lowest of the actions ``answers | lays << LAY`` and discards, and those that are left."""
    if low:
        return lowest(low), low & (low - 1), high
    return DISCARD + lowest(high), low, high & (high - 1)
