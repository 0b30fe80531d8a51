"""Where everything of a game lies in its picture, from views alone, as ``render.text`` does.

A scene is a list of shapes, and every back end draws nothing else; so the picture in a notebook,
the array and the window cannot differ. A view draws itself in notebooks: this module therefore
lies below it and knows its type alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from conquian_env.actions import DISCARD, FORCE, LAY, TAKE, action_name, event_text
from conquian_env.cards import NUM_RANKS, card_ids, card_mask, cards_text
from conquian_env.faces import (
    CARD_HEIGHT,
    CARD_WIDTH,
    RADIUS,
    SMALL_HEIGHT,
    SMALL_WIDTH,
    Rect,
    Shape,
    Text,
    back,
    face,
    small_face,
    text_width,
)
from conquian_env.melds import pack_mask, split_most
from conquian_env.state import Phase

if TYPE_CHECKING:
    from conquian_env.view import View

WIDTH, HEIGHT = 1280, 720

FELT, PLATE, DARK = "#1f6a4c", "#1a5b41", "#123c2c"
INK, QUIET, GOLD = "#f6f2e4", "#a8cbb8", "#f4c34f"

LEFT, ROW = 20, 904  # where the rows of cards begin, and how long they may be
PANEL, PANEL_WIDTH = 950, 320
OTHER_HAND, OTHER_TABLE, MIDDLE, OWN_TABLE, OWN_HAND = 10, 146, 288, 438, 580
UNDER_LABEL = 28  # from the top of a row to its cards
OVERLAP, APART, GAP = 27, CARD_WIDTH + 8, 16
STOCK, FACE_UP, DEAD = 56, 176, 400

PROMPTS = {
    Phase.GIVE: "choose a card to give",
    Phase.TURNED: "take it or pass it on",
    Phase.OFFERED: "take or decline it",
    Phase.MELD: "lay cards, then discard",
    Phase.FORCE: "insist that seat {other} takes it, or pass",
}


@dataclass(frozen=True, slots=True)
class Card:
    """A card with its upper left corner at ``x``, ``y``; face down if it has no id."""

    x: int
    y: int
    card_id: int | None
    small: bool = False

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What it is drawn of, from its own corner."""
        if self.card_id is None:
            return back()
        return small_face(self.card_id) if self.small else face(self.card_id)


@dataclass(frozen=True, slots=True)
class Scene:
    """Shapes on a felt of ``WIDTH`` x ``HEIGHT``, the lowest first, and a title in words."""

    title: str
    shapes: tuple[Rect | Text | Card, ...]


Part = list[Rect | Text | Card]


def scene(view: "View", other: "View | None" = None, note: str = "") -> Scene:
    """The table as ``view.seat`` sees it; with the other seat's view too, both hands open.

    Args:
        view: of the seat at the bottom.
        other: the view of the seat at the top.
        note: takes the place of whose turn it is, such as why the game was broken off.
    """
    actions = view.legal_actions or (other.legal_actions if other else ())
    about, prompt = headline(view)
    if note:
        actions, about, prompt = (), note, ""
    marked = _marked(view, other, actions)
    shapes = [
        Rect(0, 0, WIDTH, HEIGHT, FELT),
        *_seat(view, 1 - view.seat, OTHER_HAND, OTHER_TABLE),
        *_hand(_other_hand(view, other), OTHER_HAND, marked),
        *_stock(view),
        *_face_up(view, actions),
        *_dead(view),
        *_seat(view, view.seat, OWN_HAND, OWN_TABLE),
        *_hand(view.hand, OWN_HAND, marked),
        *_panel(view, about, prompt, actions),
    ]
    return Scene(f"Conquian: {about}", tuple(shapes))


# --- the felt ---


def _marked(view: "View", other: "View | None", actions: Iterable[int]) -> set[int | None]:
    """Cards in hand that may be laid, or that were chosen to be given."""
    lays = {action - LAY for action in actions if LAY <= action < DISCARD}
    if view.phase != Phase.GIVE:
        return {*lays}
    return {view.given, other.given if other else None} - {None}


def _other_hand(view: "View", other: "View | None") -> Sequence[int | None]:
    """Open, or cards that were given to the seat and backs."""
    if other:
        return other.hand
    return [*view.known, *[None] * (view.other_hand_size - len(view.known))]


def _seat(view: "View", seat: int, hand_y: int, table_y: int) -> Part:
    """The labels of a seat, gold if it is to act, and its table."""
    own = seat == view.seat
    table, hand_size = view.other_table, view.other_hand_size
    if own:
        table, hand_size = view.table, len(view.hand)
    ink = GOLD if seat == view.actor and view.phase != Phase.OVER else QUIET
    groups, loose = split_most(card_mask(table), view.rules)
    laid = f"table: {len(table)} of {view.rules.target}{', being laid' if loose else ''}"
    return [
        Rect(LEFT - 10, table_y, ROW + 20, UNDER_LABEL + CARD_HEIGHT + 6, PLATE, 10),
        _label(LEFT, hand_y, f"seat {seat}: hand of {hand_size}", ink),
        _label(LEFT, table_y, laid, ink),
        *_table([*groups, loose] if loose else groups, table_y + UNDER_LABEL),
    ]


def _label(x: int, row: int, words: str, ink: str = QUIET) -> Text:
    return Text(x, row + 20, 16, ink, words)


def _step(room: int, cards: int, wanted: int) -> int:
    """From one card to the next, so that ``cards`` more of them fit into ``room``."""
    return min(wanted, room // cards) if cards else wanted


def _hand(hand: Sequence[int | None], row: int, marked: set[int | None]) -> Part:
    step = _step(ROW - CARD_WIDTH, len(hand) - 1, APART)
    part: Part = []
    for i, card_id in enumerate(hand):
        card = Card(LEFT + i * step, row + UNDER_LABEL, card_id)
        part += [_frame(card), card] if card_id in marked else [card]
    return part


def _frame(card: Card) -> Rect:
    """Gold around a card that the actor may use."""
    width, height = CARD_WIDTH + 6, CARD_HEIGHT + 6
    return Rect(card.x - 3, card.y - 3, width, height, GOLD, RADIUS + 3)


def _table(groups: Sequence[Sequence[int]], y: int) -> Part:
    """Combinations side by side, their cards overlapped."""
    gap = _step(ROW - len(groups) * CARD_WIDTH, len(groups) - 1, GAP)
    overlapped = sum(map(len, groups)) - len(groups)
    room = ROW - len(groups) * (CARD_WIDTH + gap) + gap
    step, x, part = _step(room, overlapped, OVERLAP), LEFT, Part()
    for group in groups:
        part += [Card(x + i * step, y, card_id) for i, card_id in enumerate(group)]
        x += (len(group) - 1) * step + CARD_WIDTH + gap
    return part


def _place(x: int, y: int) -> Rect:
    """Where a card would lie."""
    return Rect(x, y, CARD_WIDTH, CARD_HEIGHT, PLATE, RADIUS)


def _stock(view: "View") -> Part:
    y = MIDDLE + UNDER_LABEL
    pile = Card(STOCK, y, None) if view.stock_count else _place(STOCK, y)
    return [_label(STOCK, MIDDLE, f"stock {view.stock_count}"), pile]


def _face_up(view: "View", actions: Iterable[int]) -> Part:
    y = MIDDLE + UNDER_LABEL
    if view.face_up is None:
        return [_label(FACE_UP, MIDDLE, "face up"), _place(FACE_UP, y)]
    card = Card(FACE_UP, y, view.face_up)
    frame = [_frame(card)] if {TAKE, FORCE} & set(actions) else []
    return [_label(FACE_UP, MIDDLE, f"{view.source}", INK), *frame, card]


def _dead(view: "View") -> Part:
    """Each card of the pack has its place, so that a look tells what is gone."""
    part: Part = [_label(DEAD, MIDDLE, f"dead {len(view.dead)}")]
    for card_id in card_ids(pack_mask(view.rules)):
        suit, rank = divmod(card_id, NUM_RANKS)
        x, y = DEAD + rank * (SMALL_WIDTH + 4), MIDDLE + UNDER_LABEL + suit * (SMALL_HEIGHT + 3)
        gone = Card(x, y, card_id, small=True)
        part.append(
            gone if card_id in view.dead else Rect(x, y, SMALL_WIDTH, SMALL_HEIGHT, PLATE, 4)
        )
    return part


# --- the panel ---


def headline(view: "View") -> tuple[str, str]:
    """Whose turn it is and what is asked, or who won."""
    if view.phase == Phase.OVER:
        stake = f", for a stake of {view.stake}" if view.stake > 1 else ""
        if view.winner is None:
            return "Draw", "the stock ran out" + stake
        return f"Seat {view.winner} wins", f"{view.rules.target} cards on the table{stake}"
    prompt = PROMPTS[view.phase].format(other=1 - view.actor)
    return f"Seat {view.actor} to act", f"{view.phase}: {prompt}"


def _choices(actions: Sequence[int], phase: Phase) -> list[str]:
    """Legal actions in a few lines, the cards of a kind together."""
    answers = [action_name(action) for action in actions if action < LAY]
    lays = [action - LAY for action in actions if LAY <= action < DISCARD]
    discards = [action - DISCARD for action in actions if action >= DISCARD]
    away = "give" if phase == Phase.GIVE else "discard"
    lines = [" or ".join(answers)]
    lines += [f"{verb} {cards_text(ids)}" for verb, ids in (("lay", lays), (away, discards)) if ids]
    return [line for line in lines if line]


def _panel(view: "View", about: str, prompt: str, actions: Sequence[int]) -> Part:
    stake = f", stake {view.stake}" if view.stake > 1 else ""
    rules = view.rules.to_text().replace(",", ", ") + stake
    events = [event_text(event) for event in reversed(view.history[-8:])]
    x, width = PANEL + 16, PANEL_WIDTH - 32
    part: Part = [Rect(PANEL, 10, PANEL_WIDTH, HEIGHT - 20, DARK, 12)]
    y = 22
    for size, ink, space, paragraphs in (
        (15, QUIET, 0, [f"conquian: {rules}"]),
        (26, GOLD, 14, [about]),
        (16, INK, 4, [prompt]),
        (15, QUIET, 20, ["legal"] if actions else []),
        (18, INK, 2, _choices(actions, view.phase)),
        (15, QUIET, 20, ["last"] if events else []),
        (18, INK, 2, events[:1]),
        (15, QUIET, 4, events[1:]),
    ):
        lines = _lines(paragraphs, size, width)
        y += space if lines else 0
        for line in lines:
            y += round(size * 1.35)
            part.append(Text(x, y, size, ink, line))
    return part


def _lines(paragraphs: Iterable[str], size: int, width: int) -> list[str]:
    letters = int(width / text_width("", size)) - 1
    return [line for paragraph in paragraphs for line in wrap(paragraph, letters)]
