"""What happened in a game, in words: what one seat saw of it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from conquian_env import Game, Phase, View, card_name
from conquian_env.actions import CODE_MASK, DISCARD, FORCE, LAY, SEAT_BIT, TAKE, TURN

START = -1  # the ply of what was there before the first action
YOU = "You"


class Line(NamedTuple):
    """Something that happened.

    Attributes:
        ply: of the action that it came with, or ``START``.
        who: ``You``, the agent's name, or nobody.
        what: with cards by their names, as in ``took 6H``.
    """

    ply: int
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.who} {self.what}".strip()


def tell(start: Game, actions: Sequence[int], seat: int, other: str) -> list[Line]:
    """All that happened to a person in ``seat``, whose opponent is called ``other``."""
    names = (YOU, other) if seat == 0 else (other, YOU)
    game, view = start.copy(), start.view(seat)
    lines = [Line(START, *told) for told in _turned(view, names)]
    for ply, action in enumerate(actions):
        game.apply(action)
        before, view = view, game.view(seat)
        lines += [Line(ply, *told) for told in _step(before, action, view, names)]
    return lines


def _step(
    before: View, action: int, view: View, names: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Who did what between two views of a seat."""
    forced = " (the only choice)" if len(before.legal_actions) == 1 else ""
    yield names[before.actor], _done(before, action, names) + forced
    if view.received is not None and before.received is None:
        yield names[1 - view.seat], f"had given {card_name(view.received)} for it"
    if view.stake != before.stake:
        yield "", f"The stock is used up: dealt again, for {view.stake}"
    yield from _turned(view, names)
    if view.phase == Phase.OVER:
        yield "", result(view, names[1 - view.seat])


def _turned(view: View, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Who turned a card, if that was the last that happened."""
    event = view.history[-1] if view.history else 0
    if event & CODE_MASK >= TURN and view.face_up is not None:
        yield names[event >> SEAT_BIT], f"turned {card_name(view.face_up)}"


def _done(before: View, action: int, names: tuple[str, str]) -> str:
    """An action of the actor; a gift of the other seat is not looked at."""
    if before.phase == Phase.GIVE:
        own = before.actor == before.seat
        return f"gave {card_name(action - DISCARD)}" if own else "gave a card"
    if action >= DISCARD:
        return f"discarded {card_name(action - DISCARD)}"
    if action >= LAY:
        return f"laid {card_name(action - LAY)}"
    assert before.face_up is not None
    card = card_name(before.face_up)
    if action == TAKE:
        return f"took {card}"
    if action == FORCE:
        return f"insisted: {names[1 - before.actor].replace(YOU, 'you')} had to take {card}"
    refused = {Phase.TURNED: "passed {} on", Phase.OFFERED: "declined {}"}
    return refused.get(before.phase, "did not insist on {}").format(card)


def addressed(why: str, seat: int) -> str:
    """Why an action of ``seat`` is not legal, said to the person who sits there."""
    for said, meant in (
        (f"the hand of seat {seat}", "your hand"),
        (f"the table of seat {seat}", "your table"),
        (f"no legal table of seat {seat}", "no legal table of yours"),
        (f"seat {seat} has", "you have"),
        (f"seat {seat}", "you"),
    ):
        why = why.replace(said, meant)
    return why


def result(view: View, other: str) -> str:
    """How a game that is over ended for the seat of a view."""
    if view.winner is None:
        return "A draw: the stock is used up"
    who = "You win" if view.winner == view.seat else f"{other} wins"
    won = f", for {view.stake}" if view.stake > 1 else ""
    return f"{who} with {view.rules.target} cards on the table{won}"


def question(view: View) -> str:
    """What a seat that is to act is asked."""
    if view.phase == Phase.GIVE:
        return "Choose a card to give away"
    if view.phase == Phase.MELD:
        may_discard = view.legal_actions[-1] >= DISCARD
        return "Lay a card, or discard one" if may_discard else "Lay a card"
    assert view.face_up is not None
    card = card_name(view.face_up)
    if view.phase == Phase.FORCE:
        return f"The other table could take {card} in: insist on it?"
    return f"Take {card}?"
