"""A scene as SVG, for notebooks and reports; the text is the same wherever it is made."""

from functools import cache
from html import escape

from conquian_env.cards import NUM_CARDS, card_name
from conquian_env.faces import (
    CARD_HEIGHT,
    CARD_WIDTH,
    SMALL_HEIGHT,
    SMALL_WIDTH,
    Polygon,
    Rect,
    Shape,
    Text,
)
from conquian_env.scene import HEIGHT, WIDTH, Card, Scene

# Metrics of the fonts are those of the one that pygame brings.
_FONT = "Helvetica, Arial, 'Liberation Sans', FreeSans, sans-serif"


def svg(scene: Scene) -> str:
    """A picture as text, its size left to the page; ``data-card`` names each card."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'style="max-width: {WIDTH}px" font-family="{_FONT}" font-weight="bold">'
        f"<title>{escape(scene.title)}</title>{''.join(map(_element, scene.shapes))}</svg>"
    )


@cache
def sprite() -> str:
    """Every card as a symbol of one SVG that shows nothing, for pages that use them by id.

    The ids are ``card-7D`` for a face, ``small-7D`` for a card of the dead pile, ``card-back``.
    """
    faces = [_symbol(f"card-{card_name(i)}", _inside(i, False)) for i in range(NUM_CARDS)]
    small = [_symbol(f"small-{card_name(i)}", _inside(i, True), True) for i in range(NUM_CARDS)]
    symbols = "".join([*faces, *small, _symbol("card-back", _inside(None, False))])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="0" height="0" aria-hidden="true" '
        f'style="position: absolute" font-family="{_FONT}" font-weight="bold">{symbols}</svg>'
    )


def _symbol(name: str, inside: str, small: bool = False) -> str:
    width, height = (SMALL_WIDTH, SMALL_HEIGHT) if small else (CARD_WIDTH, CARD_HEIGHT)
    return f'<symbol id="{name}" viewBox="0 0 {width} {height}">{inside}</symbol>'


def _element(shape: Shape | Card) -> str:
    match shape:
        case Card(x, y, card_id, small):
            name = "back" if card_id is None else card_name(card_id)
            inside = _inside(card_id, small)
            return f'<g data-card="{name}" transform="translate({x} {y})">{inside}</g>'
        case Rect(x, y, width, height, fill, radius):
            return (
                f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}" '
                f'fill="{fill}"/>'
            )
        case Polygon(points, fill):
            corners = " ".join(f"{x},{y}" for x, y in points)
            return f'<polygon points="{corners}" fill="{fill}"/>'
        case Text(x, y, size, fill, words, centred):
            anchor = ' text-anchor="middle"' if centred else ""
            return (
                f'<text x="{x}" y="{y}" font-size="{size}" fill="{fill}"{anchor}>'
                f"{escape(words)}</text>"
            )


@cache
def _inside(card_id: int | None, small: bool) -> str:
    return "".join(map(_element, Card(0, 0, card_id, small).shapes))
