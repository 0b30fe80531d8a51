"""A state as plain values and back, with every check that keeps a state possible."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from conquian_env.actions import CODE_MASK, GAVE, SEAT_BIT
from conquian_env.cards import (
    card,
    card_ids,
    card_mask,
    card_name,
    card_names,
    cards,
    cards_text,
)
from conquian_env.deal import check_deal, seed_bits, unsigned
from conquian_env.engine import clear, forceable, last_laid, later_cards, starter
from conquian_env.errors import CardError, ConquianError, PositionError
from conquian_env.jit import jit
from conquian_env.melds import can_complete, legal_table, pack_mask, rulebook
from conquian_env.rules import RuleSet
from conquian_env.state import MAX_EVENTS, NONE, PHASES, SOURCES, STATE, Phase, Source

BY_SEAT = ("hands", "tables", "declined", "discarded", "known")
SOURCES_OF: dict[Phase, tuple[Source | None, ...]] = {
    Phase.GIVE: (None,),
    Phase.TURNED: (Source.TURNED,),
    Phase.OFFERED: (Source.PASSED, Source.DISCARDED),
    Phase.FORCE: SOURCES,
    Phase.MELD: (None,),
    Phase.OVER: (None,),
}


NO_FACE_UP = tuple(phase for phase, sources in SOURCES_OF.items() if None in sources)


def to_values(row: np.void) -> dict[str, Any]:
    """A state as JSON values; cards as text, the stock in the order it will be turned."""

    def text(mask: int) -> str:
        return cards_text(card_ids(mask))

    source, winner, face_up = int(row["source"]), int(row["winner"]), int(row["face_up"])
    stock = row["stock"][row["stock_next"] : row["stock_end"]].tolist()
    return {
        "hands": [text(mask) for mask in row["hand"]],
        "tables": [text(mask) for mask in row["table"]],
        "declined": [text(mask) for mask in row["declined"]],
        "discarded": [text(mask) for mask in row["discarded"]],
        "known": [text(mask) for mask in row["known"]],
        "given": [None if given == NONE else card_name(int(given)) for given in row["given"]],
        "removed": text(row["removed"]),
        "dead": text(row["dead"]),
        "face_up": None if face_up == NONE else card_name(face_up),
        "source": None if source == NONE else str(SOURCES[source]),
        "stock": cards_text(stock),
        "phase": str(PHASES[row["phase"]]),
        "actor": int(row["actor"]),
        "winner": None if winner == NONE else winner,
        "ply": int(row["ply"]),
        "redeal": int(row["redeal"]),
        "history": row["history"][: row["events"]].tolist(),
        "seed": unsigned(row["seed"]),
        "deal": int(row["deal"]),
    }


def from_values(values: dict[str, Any], rules: RuleSet) -> NDArray[np.void]:
    """The inverse of ``to_values``: a checked state in an array of shape (1,).

    Raises:
        PositionError, CardError, SeedError: a value is missing, malformed or impossible.
    """
    rows = np.zeros(1, STATE)
    row = rows[0]
    clear(row)
    for name in BY_SEAT:
        field = {"hands": "hand", "tables": "table"}.get(name, name)
        row[field] = [_mask(name, text) for text in _pair(name, values[name])]
    row["given"] = [
        NONE if given is None else card(_text("given", given))
        for given in _pair("given", values["given"])
    ]
    row["dead"], row["removed"] = _mask("dead", values["dead"]), _mask("removed", values["removed"])
    row["pack"] = pack_mask(rules)
    face_up, source, winner = values["face_up"], values["source"], values["winner"]
    row["face_up"] = NONE if face_up is None else card(_text("face_up", face_up))
    row["source"] = NONE if source is None else _index("source", source, SOURCES)
    row["winner"] = NONE if winner is None else _number("winner", winner, 1)
    row["phase"] = _index("phase", values["phase"], PHASES)
    row["actor"] = _number("actor", values["actor"], 1)
    row["redeal"] = _number("redeal", values["redeal"], rules.deals_a_game - 1)
    row["ply"] = _number("ply", values["ply"], MAX_EVENTS * (int(row["redeal"]) + 1))
    stock = cards(_text("stock", values["stock"]))
    _mask("stock", values["stock"])
    row["stock_end"] = len(stock)
    row["stock"][: len(stock)] = stock
    row["seed"], row["deal"] = seed_bits(values["seed"]), check_deal(values["deal"])
    _write_history(row, values["history"])
    _check(rows, rules)
    return rows


def check_states(rows: NDArray[np.void], rules: RuleSet) -> None:
    """Refuse states (dtype STATE [n]) of unknown origin on which the engine could not play.

    Half a millisecond a row: each is read as values, which are checked, and back, which must give
    the same state.

    Raises:
        PositionError: a state cannot be; names the row.
    """
    for number, row in enumerate(rows):
        try:
            same = _same_state(row, from_values(to_values(row), rules)[0])
        except (ConquianError, IndexError) as error:
            raise PositionError(f"state {number}: {error}") from None
        if not same:
            raise PositionError(f"state {number} is none of these rules")


def _same_state(row: np.void, made: np.void) -> bool:
    """Whether a state is the one made of its values, where cards that are turned are no more."""
    begin, end = int(row["stock_next"]), int(row["stock_end"])
    if not 0 <= begin <= end <= len(row["stock"]) or end - begin != made["stock_end"]:
        return False
    if (row["stock"][begin:end] != made["stock"][: end - begin]).any():
        return False
    names = {*(STATE.names or ())} - {"stock", "stock_next", "stock_end", "history"}
    return all(np.array_equal(row[name], made[name]) for name in names)


def _write_history(row: np.void, history: object) -> None:
    if not isinstance(history, (list, tuple)) or not all(type(e) is int for e in history):
        raise PositionError(f"history must be a list of whole numbers, not {history!r:.60}")
    for event in history:
        if not 0 <= event <= 255 or event & CODE_MASK > GAVE:
            raise PositionError(f"history holds {event}, which is no event")
        if event & CODE_MASK == GAVE and row["given"][event >> SEAT_BIT] == NONE:
            raise PositionError(f"history: seat {event >> SEAT_BIT} gave a card, given names none")
    hand_cards = sum(int(hand).bit_count() for hand in row["hand"])
    stock = int(row["stock_end"])
    # What can still happen: two events an offer, one a card laid or discarded, one a card turned.
    left = 2 * (2 * stock + hand_cards + 2) + hand_cards + stock
    if len(history) + left > MAX_EVENTS:
        raise PositionError(f"history of {len(history)} events is too long for this position")
    if row["ply"] + left > MAX_EVENTS * (int(row["redeal"]) + 1):
        raise PositionError(f"ply {row['ply']} is too late for this position")
    row["events"] = len(history)
    row["history"][: len(history)] = history


def _check(rows: NDArray[np.void], rules: RuleSet) -> None:
    """Cards conserved, sizes and phase possible; reachability is not checked."""
    row = rows[0]
    phase, actor = PHASES[row["phase"]], int(row["actor"])
    if phase == Phase.GIVE and not rules.exchange:
        raise PositionError(f"phase {phase} is not played under these rules")
    _check_conservation(row)
    source = None if row["source"] == NONE else SOURCES[row["source"]]
    if (row["face_up"] == NONE) != (phase in NO_FACE_UP):
        raise PositionError(f"face_up: phase {phase} needs {_needs_face_up(phase)}")
    if source not in SOURCES_OF[phase]:
        allowed = ", ".join(str(s or "none") for s in SOURCES_OF[phase])
        raise PositionError(f"source: phase {phase} needs one of {allowed}, not {source or 'none'}")
    if row["stock_end"] > rules.stock_size:
        raise PositionError(f"stock: these rules leave only {rules.stock_size} cards")
    winner = int(row["winner"])
    if winner != NONE and phase != Phase.OVER:
        raise PositionError(f"winner: nobody has won in phase {phase}")
    if phase == Phase.OVER and winner == NONE and row["stock_end"] > 0:
        raise PositionError("stock: a draw needs an empty stock")
    for seat in range(2):
        _check_seat(row, seat, rules, phase, to_act=seat == actor)
        _check_gift(row, seat, phase)
    _check_laid(row, rules, phase)
    if phase == Phase.FORCE and not _forceable(rows, 1 - actor, rulebook(rules)):
        raise PositionError(
            f"phase force: {card_name(int(row['face_up']))} cannot be forced on seat {1 - actor}"
        )


def _check_conservation(row: np.void) -> None:
    """Every card of the pack is in exactly one place."""
    places = [(f"hand {s}", int(row["hand"][s])) for s in range(2)]
    places += [(f"table {s}", int(row["table"][s])) for s in range(2)]
    places += [("dead", int(row["dead"])), ("removed", int(row["removed"]))]
    places += [("stock", card_mask(row["stock"][: row["stock_end"]].tolist()))]
    if row["face_up"] != NONE:
        places += [("face_up", 1 << int(row["face_up"]))]
    seen = 0
    for name, mask in places:
        if seen & mask:
            raise PositionError(f"{name}: {card_names(seen & mask)[0]} is also somewhere else")
        seen |= mask
    pack = int(row["pack"])
    if seen & ~pack:
        raise PositionError(f"card {card_names(seen & ~pack)[0]} is not in this pack")
    if seen != pack:
        raise PositionError(f"card {card_names(pack & ~seen)[0]} is missing")


def _check_gift(row: np.void, seat: int, phase: Phase) -> None:
    """A gift being made is in the giver's hand; a known card is in the other's."""
    given, known = int(row["given"][seat]), int(row["known"][seat])
    hand, other_hand = int(row["hand"][seat]), int(row["hand"][1 - seat])
    if known & ~other_hand:
        raise PositionError(f"known: {card_names(known & ~other_hand)[0]} is not in the other hand")
    if phase != Phase.GIVE:
        return
    first, actor = starter(row), int(row["actor"])
    if (given != NONE) != (seat == first != actor):
        raise PositionError(f"given: seat {first} chooses first, and seat {actor} is to act")
    if given != NONE and not hand >> given & 1:
        raise PositionError(f"given: {card_name(given)} is not in hand {seat}")


def _check_laid(row: np.void, rules: RuleSet, phase: Phase) -> None:
    """Where the order matters, the card laid last is on the table of who is still laying."""
    laid, actor = last_laid(row), int(row["actor"])
    ordered = rules.lay_order == "ascending" and phase in (Phase.MELD, Phase.TURNED)
    if ordered and laid != NONE and not int(row["table"][actor]) >> laid & 1:
        raise PositionError(f"history: {card_name(laid)} is not on the table of seat {actor}")


def can_lay_out(row: np.void, table: int, hand: int, rules: RuleSet) -> bool:
    """Whether the actor of ``row`` can make a table legal that he is laying, with such a hand."""
    ordered = rules.lay_order == "ascending"
    return can_complete(table, later_cards(hand, last_laid(row)) if ordered else hand, rules)


def _check_seat(row: np.void, seat: int, rules: RuleSet, phase: Phase, to_act: bool) -> None:
    melding = to_act and phase == Phase.MELD
    laying = melding or (to_act and phase == Phase.TURNED and rules.hand_melds)
    hand, table = int(row["hand"][seat]), int(row["table"][seat])
    size = hand.bit_count() + table.bit_count()
    won = row["winner"] == seat
    expected = rules.target if melding or won else rules.deal
    if size != expected:
        raise PositionError(
            f"seat {seat} has {size} cards in hand and table, this phase needs {expected}"
        )
    if table.bit_count() == rules.target and not won:
        raise PositionError(f"table {seat} has {rules.target} cards and has won")
    if won and hand:
        raise PositionError(f"hand {seat}: the winner holds no card")
    if (laying and not can_lay_out(row, table, hand, rules)) or (melding and table == 0):
        raise PositionError(f"table {seat} can not be made legal with the hand")
    if not laying and not legal_table(table, rules):
        raise PositionError(
            f"table {seat}: {' '.join(card_names(table))} are no separate combinations"
        )


def _needs_face_up(phase: Phase) -> str:
    return "no face-up card" if phase in NO_FACE_UP else "a face-up card"


@jit
def _forceable(rows: NDArray[np.void], seat: int, books: NDArray[np.void]) -> bool:
    return forceable(rows[0], seat, books[0])


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise PositionError(f"{name} must be text of cards, not {value!r}")
    return value


def _pair(name: str, value: object) -> tuple[object, object]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise PositionError(f"{name} must be two texts, one a seat, not {value!r}")
    return value[0], value[1]


def _mask(name: str, value: object) -> int:
    try:
        return card_mask(cards(_text(name, value)))
    except CardError as error:
        raise CardError(f"{name}: {error}") from None


def _index(name: str, value: object, names: tuple[str, ...]) -> int:
    if value not in names:
        raise PositionError(f"{name} must be one of {', '.join(names)}, not {value!r}")
    return names.index(str(value))


def _number(name: str, value: object, highest: int) -> int:
    if type(value) is not int or not 0 <= value <= highest:
        raise PositionError(f"{name} must be a whole number from 0 to {highest}, not {value!r}")
    return value


def unnamed(rules: RuleSet, *places: object) -> str:
    """The cards of the pack that no text among the places names; what is no text is ignored."""
    texts = [
        part
        for place in places
        for part in (place if isinstance(place, (tuple, list)) else (place,))
    ]
    named = {word for text in texts if isinstance(text, str) for word in text.split()}
    return " ".join(name for name in card_names(pack_mask(rules)) if name not in named)
