"""The picture: everything visible is in it once, all keeps its place, and SVG says the same."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest

from conquian_env import Game, RuleSet, View
from conquian_env.actions import TAKE, parse_action
from conquian_env.cards import card, card_name, cards
from conquian_env.faces import (
    CARD_HEIGHT,
    CARD_WIDTH,
    SMALL_HEIGHT,
    SMALL_WIDTH,
    Polygon,
    Rect,
    Shape,
    Text,
    back,
    face,
    small_face,
    text_width,
)
from conquian_env.rules import PRESETS
from conquian_env.scene import GOLD, HEIGHT, WIDTH, Card, Scene, scene
from conquian_env.svg import svg
from tests.playing import playthroughs
from tests.positions import drawn, force, meld, offered, position, won

EVERY_FIELD = RuleSet(
    deal=18, seven_jack_adjacent=False, first_card="dealt", force="auto", force_source="discard",
    hand_melds=True, exchange=True, draw="double", max_deals=7, lay_order="ascending", stock=3,
)  # fmt: skip
RULES = (*map(RuleSet.preset, PRESETS), RuleSet(deal=19), EVERY_FIELD)
INDEX = 23  # of a card, what must be seen to read it
Box = tuple[float, float, float, float]


def pictures(rules: RuleSet) -> Iterator[tuple[View, View | None]]:
    """What either seat sees of the states of a few games, and both hands open."""
    for game in playthroughs(rules, 4, seed=11):
        first, second = game.view(0), game.view(1)
        yield from ((first, None), (second, None), (first, second))


@cache
def scenes(rules: RuleSet) -> list[tuple[View, View | None, Scene]]:
    return [(view, other, scene(view, other)) for view, other in pictures(rules)]


def box(shape: Rect | Text | Card) -> Box:
    """Left, top, right and bottom."""
    match shape:
        case Rect(x, y, width, height):
            return x, y, x + width, y + height
        case Card(x, y, small=small):
            width, height = (SMALL_WIDTH, SMALL_HEIGHT) if small else (CARD_WIDTH, CARD_HEIGHT)
            return x, y, x + width, y + height
        case Text(x, y, size, words=words):
            return x, y - 0.75 * size, x + text_width(words, size), y + 0.25 * size


def meet(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]


def within(one: Box, two: Box) -> bool:
    return one[0] >= two[0] and one[1] >= two[1] and one[2] <= two[2] and one[3] <= two[3]


def of(picture: Scene, kind: type) -> list:
    return [shape for shape in picture.shapes if isinstance(shape, kind)]


def texts(picture: Scene) -> list[str]:
    return [text.words for text in of(picture, Text)]


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_everything_keeps_its_place(rules: RuleSet) -> None:
    for _, _, picture in scenes(rules):
        boxes = {shape: box(shape) for shape in picture.shapes}
        assert all(within(boxes[shape], (0, 0, WIDTH, HEIGHT)) for shape in boxes)
        words = [boxes[text] for text in of(picture, Text)]
        cards = [boxes[card] for card in of(picture, Card)]
        for i, text in enumerate(words):
            assert not any(meet(text, other) for other in words[i + 1 :])
            assert not any(meet(text, other) for other in cards)
        for plate in map(boxes.get, of(picture, Rect)):  # words lie on a plate or off it
            assert all(within(text, plate) or not meet(text, plate) for text in words)


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_cards_overlap_in_their_row_alone_and_show_their_index(rules: RuleSet) -> None:
    for _, _, picture in scenes(rules):
        rows: dict[int, list[int]] = {}
        for shape in of(picture, Card):
            rows.setdefault(shape.y, []).append(shape.x)
        for xs in rows.values():
            assert all(two - one >= INDEX for one, two in pairwise(xs))
        tops = sorted({(box(c)[1], box(c)[3]) for c in of(picture, Card) if not c.small})
        assert all(one[1] <= two[0] for one, two in pairwise(tops))


@pytest.mark.parametrize("rules", RULES, ids=RuleSet.to_text)
def test_every_visible_card_is_there_once(rules: RuleSet) -> None:
    for view, other, picture in scenes(rules):
        seen = [*view.hand, *view.table, *view.other_table, *view.dead]
        seen += [] if view.face_up is None else [view.face_up]
        seen += other.hand if other else view.known
        hidden = 0 if other else view.other_hand_size - len(view.known)
        expected = Counter(map(card_name, seen)) + Counter(back=hidden + (view.stock_count > 0))
        root = ET.fromstring(svg(picture))
        assert Counter(group.get("data-card") for group in root if group.get("data-card")) == (
            expected
        )


def test_svg_draws_every_shape() -> None:
    picture = scene(Game(seed=3).view(0))
    root = ET.fromstring(svg(picture))
    assert root.get("viewBox") == f"0 0 {WIDTH} {HEIGHT}"
    count = Counter(element.tag.rpartition("}")[2] for element in root.iter())
    inside = [part for shape in of(picture, Card) for part in shape.shapes]
    for tag, kind in (("rect", Rect), ("text", Text), ("polygon", Polygon)):
        shapes = [*picture.shapes, *inside]
        assert count[tag] == sum(isinstance(shape, kind) for shape in shapes)
    assert count["title"] == 1
    assert "seat &lt;&amp;" in svg(scene(Game().view(0), note="seat <& loses"))


def extent(shape: Shape) -> Box:
    if isinstance(shape, Polygon):
        xs, ys = zip(*shape.points, strict=True)
        return min(xs), min(ys), max(xs), max(ys)
    if isinstance(shape, Text):
        half = text_width(shape.words, shape.size) / 2
        return shape.x - half, shape.y - 0.75 * shape.size, shape.x + half, shape.y
    return box(shape)


def test_faces_differ_and_stay_on_their_card() -> None:
    assert len({face(card_id) for card_id in range(40)}) == 40
    assert len({small_face(card_id) for card_id in range(40)}) == 40
    for card_id in range(40):
        assert all(within(extent(s), (0, 0, CARD_WIDTH, CARD_HEIGHT)) for s in face(card_id))
        assert all(
            within(extent(s), (0, 0, SMALL_WIDTH, SMALL_HEIGHT)) for s in small_face(card_id)
        )
        _, _, *index = face(card_id)[:8]
        assert index[0].words == card_name(card_id)[0]
    assert all(within(extent(shape), (0, 0, CARD_WIDTH, CARD_HEIGHT)) for shape in back())


@pytest.mark.parametrize(("name", "pips"), [("AD", 1), ("2D", 2), ("5D", 5), ("7D", 7), ("KD", 2)])
def test_a_face_has_as_many_pips_as_its_rank(name: str, pips: int) -> None:
    """Besides the index; a king has a crown and a pip."""
    assert sum(isinstance(shape, Polygon) for shape in face(card(name))) == pips + 1


# --- what the panel says ---


@pytest.mark.parametrize(
    ("game", "said"),
    [
        (Game("mexican"), ["Seat 0 to act", "give: choose a card to give"]),
        (position(), ["Seat 0 to act", "turned: take it or pass it on", "pass or take"]),
        (offered(), ["Seat 1 to act", "offered: take or decline it", "pass or take"]),
        (meld(), ["Seat 1 to act", "meld: lay cards, then discard", "table: 1 of 11, being laid"]),
        (force(), ["Seat 0 to act", "takes it, or pass", "pass or force", "discarded"]),
        (won(), ["Seat 1 wins", "11 cards on the table", "seat 1 take", "table: 11 of 11"]),
        (drawn(), ["Draw", "the stock ran out", "seat 0 pass", "stock 0", "face up"]),
    ],
)
def test_what_is_said(game: Game, said: list[str]) -> None:
    words = texts(scene(game.view(0), game.view(1)))
    assert [line for line in said if line not in words] == []


def test_choices_are_shown_to_who_has_them() -> None:
    game = Game("mexican", seed=1, deal=288)
    assert any(line.startswith("give ") for line in texts(scene(game.view(0))))
    assert not any(line.startswith("give ") for line in texts(scene(game.view(1))))


def golden(picture: Scene) -> set[int | None]:
    """The cards drawn on a golden frame."""
    pairs = pairwise(picture.shapes)
    return {
        c.card_id for frame, c in pairs if isinstance(c, Card) and frame_of(c) == frame_box(frame)
    }


def frame_of(shape: Card) -> Box:
    left, top, right, bottom = box(shape)
    return left - 3, top - 3, right + 3, bottom + 3


def frame_box(shape: object) -> Box | None:
    return box(shape) if isinstance(shape, Rect) and shape.fill == GOLD else None


def test_gold_marks_what_can_be_used() -> None:
    assert golden(scene(position().view(0))) == {card("6S")}
    assert golden(scene(position().view(1))) == set()
    assert golden(scene(meld().view(1))) == set(cards("2C 2D 2H 4S 5S"))
    game = Game("mexican", seed=1)
    given = game.hand(0)[2]
    game.apply(parse_action(f"discard {given}"))
    assert golden(scene(game.view(0))) == {card(given)}
    assert golden(scene(game.view(1))) == set()


def test_a_stake_is_named() -> None:
    view = position(rules="classic,draw=double", redeal=2).view(0)
    assert any("stake 4" in line for line in texts(scene(view)))


def test_a_note_takes_the_place_of_the_turn() -> None:
    words = texts(scene(position().view(0), note="player_0 loses"))
    assert "player_0 loses" in words
    assert "Seat 0 to act" not in words
    assert "pass or take" not in words


def test_combinations_lie_apart_and_loose_cards_after_them() -> None:
    game = position(
        hands=("AC 3C 5D 7D 2H 4H 2C QC KS JD", "5H 7H 6C"),
        tables=("", "AS 2S 3S 4S AD 2D 3D 6H"),
        face_up=None,
        actor=1,
        phase="meld",
    )
    view = game.view(1)
    row = [c for c in of(scene(view), Card) if c.card_id in view.table]
    starts = [row[0], *(two for one, two in pairwise(row) if two.x - one.x > CARD_WIDTH)]
    assert [card_name(c.card_id) for c in starts] == ["AD", "AS", "6H"]
    assert [c.y for c in row] == [row[0].y] * 8


def test_notebooks_show_a_view_as_it_is_and_a_game_open() -> None:
    game = Game(seed=5)
    game.apply(game.legal_actions()[-1])
    assert game.view(1)._repr_html_() == svg(scene(game.view(1)))
    assert game._repr_html_() == svg(scene(game.view(0), game.view(1)))
    assert game.legal_actions() != [TAKE]
