"""What a card looks like: its face, its back, and the small card of the dead pile.

All pictures are made of three shapes in pixels, y downwards. The suits are polygons, since fonts
lack their signs.
"""

from dataclasses import dataclass
from functools import cache
from math import cos, pi, sin

from conquian_env.cards import card_name

CARD_WIDTH, CARD_HEIGHT = 72, 100
SMALL_WIDTH, SMALL_HEIGHT = 38, 25
RADIUS = 7

WHITE, EDGE, TINT = "#fdfbf4", "#b9b09a", "#f3e9cf"
BACK, WEAVE = "#2e4a78", "#45659b"
INKS = {"C": "#1c2530", "D": "#c2283a", "H": "#c2283a", "S": "#1c2530"}

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """A filled rectangle with round corners."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: int = 0


@dataclass(frozen=True, slots=True)
class Polygon:
    """A filled outline that does not cross itself."""

    points: tuple[Point, ...]
    fill: str


@dataclass(frozen=True, slots=True)
class Text:
    """Bold words on a baseline; ``x`` is where they start, or their middle."""

    x: float
    y: float
    size: int
    fill: str
    words: str
    centred: bool = False


Shape = Rect | Polygon | Text


def text_width(words: str, size: int) -> float:
    """What a text is at most as wide as; capitals are wider than the mean letter."""
    return 0.6 * size * (len(words) + 1)


# --- suits, each a few outlines in a square of side 1 about the origin ---


def _circle(x: float, y: float, radius: float) -> tuple[Point, ...]:
    turns = [2 * pi * i / 16 for i in range(16)]
    return tuple((x + radius * cos(turn), y + radius * sin(turn)) for turn in turns)


def _heart(scale: float, lift: float) -> tuple[Point, ...]:
    """The usual curve; a negative scale stands it on its head."""
    curve = []
    for turn in [2 * pi * i / 28 for i in range(28)]:
        height = 13 * cos(turn) - 5 * cos(2 * turn) - 2 * cos(3 * turn) - cos(4 * turn)
        curve.append((scale * 16 * sin(turn) ** 3 / 32, lift - scale * (height + 2.5) / 30))
    return tuple(curve)


_STEM = ((-0.04, 0.1), (0.04, 0.1), (0.08, 0.36), (0.2, 0.5), (-0.2, 0.5), (-0.08, 0.36))
_SUITS: dict[str, tuple[tuple[Point, ...], ...]] = {
    "C": (*(_circle(x, y, 0.235) for x, y in ((0, -0.265), (-0.25, 0.1), (0.25, 0.1))),
          _circle(0, 0, 0.12), _STEM),
    "D": (((0, -0.52), (0.38, 0), (0, 0.52), (-0.38, 0)),),
    "H": (_heart(0.95, 0),),
    "S": (_heart(-0.88, -0.07), _STEM),
}  # fmt: skip


def _pip(suit: str, x: float, y: float, size: float) -> list[Shape]:
    def placed(outline: tuple[Point, ...]) -> tuple[Point, ...]:
        return tuple((round(x + size * px, 1), round(y + size * py, 1)) for px, py in outline)

    return [Polygon(placed(outline), INKS[suit]) for outline in _SUITS[suit]]


# --- cards, their upper left corner at the origin ---

_LEFT, _MIDDLE, _RIGHT = 35, 47, 60
_TOP, _UPPER, _CENTRE, _BOTTOM = 19, 35, 50, 81
_SIDES = [(x, y) for x in (_LEFT, _RIGHT) for y in (_TOP, _BOTTOM)]
_PLACES: dict[str, list[tuple[int, int]]] = {
    "2": [(_MIDDLE, _TOP), (_MIDDLE, _BOTTOM)],
    "3": [(_MIDDLE, _TOP), (_MIDDLE, _CENTRE), (_MIDDLE, _BOTTOM)],
    "4": _SIDES,
    "5": [*_SIDES, (_MIDDLE, _CENTRE)],
    "6": [*_SIDES, (_LEFT, _CENTRE), (_RIGHT, _CENTRE)],
    "7": [*_SIDES, (_LEFT, _CENTRE), (_RIGHT, _CENTRE), (_MIDDLE, _UPPER)],
}
_HATS: dict[str, tuple[Point, ...]] = {
    "J": ((34, 31), (31, 24), (38, 18), (49, 18), (64, 11), (59, 22), (60, 31)),
    "Q": ((34, 31), (31, 18), (40, 24), (47, 14), (54, 24), (63, 18), (60, 31)),
    "K": ((34, 31), (30, 15), (38, 22), (42, 12), (47, 21), (52, 12), (56, 22), (64, 15), (60, 31)),
}


def _paper(width: int, height: int, radius: int) -> list[Shape]:
    inner = Rect(1, 1, width - 2, height - 2, WHITE, radius - 1)
    return [Rect(0, 0, width, height, EDGE, radius), inner]


@cache
def face(card_id: int) -> tuple[Shape, ...]:
    """A card face up; the index in its corner is all that an overlapped card shows."""
    rank, suit = tuple(card_name(card_id))
    index = [Text(14, 23, 22, INKS[suit], rank, centred=True), *_pip(suit, 14, 35, 14)]
    return (*_paper(CARD_WIDTH, CARD_HEIGHT, RADIUS), *index, *_middle(rank, suit))


def _middle(rank: str, suit: str) -> list[Shape]:
    if rank == "A":
        return _pip(suit, _MIDDLE, _CENTRE, 36)
    if rank in _PLACES:
        return [shape for x, y in _PLACES[rank] for shape in _pip(suit, x, y, 16)]
    hat = Polygon(_HATS[rank], INKS[suit])
    letter = Text(_MIDDLE, 65, 40, INKS[suit], rank, centred=True)
    return [Rect(27, 7, 40, 86, TINT, 4), hat, letter, *_pip(suit, _MIDDLE, 80, 17)]


@cache
def back() -> tuple[Shape, ...]:
    """A card face down."""
    diamonds = [
        Polygon(((x, y - 9), (x + 7, y), (x, y + 9), (x - 7, y)), WEAVE)
        for x in range(15, CARD_WIDTH - 8, 14)
        for y in range(14, CARD_HEIGHT - 8, 18)
    ]
    cloth = Rect(5, 5, CARD_WIDTH - 10, CARD_HEIGHT - 10, BACK, RADIUS - 2)
    return (*_paper(CARD_WIDTH, CARD_HEIGHT, RADIUS), cloth, *diamonds)


@cache
def small_face(card_id: int) -> tuple[Shape, ...]:
    """A card of the dead pile: rank and suit side by side."""
    rank, suit = tuple(card_name(card_id))
    words = Text(12, 19, 18, INKS[suit], rank, centred=True)
    return (*_paper(SMALL_WIDTH, SMALL_HEIGHT, 4), words, *_pip(suit, 27, 12.5, 14))
