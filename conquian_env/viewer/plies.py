"""The actions of a record in words, and what its notes say of the decisions, for the page."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from conquian_env.actions import CODE_MASK, GAVE, SEAT_BIT, TURN, action_name
from conquian_env.cards import card_name
from conquian_env.game import Game
from conquian_env.record import GameRecord, replay
from conquian_env.scene import headline
from conquian_env.state import Phase

MISTAKE = 0.1  # what an action must give away, on the average of worlds, to be called one

_PASSES = {
    Phase.TURNED: "passes {} on",
    Phase.OFFERED: "declines {}",
    Phase.FORCE: "does not insist on {}",
}


def plies(record: GameRecord) -> Iterator[dict[str, Any]]:
    """For each action who did what, as JSON values.

    ``action`` is its name, ``words`` say it and ``then`` what followed by itself; ``public``, only
    with a card given unseen, is all that the other seat may read of it. ``note`` is what
    ``rating`` makes of the record's note, if anything.
    """
    states = pairwise(replay(record))
    notes = record.notes or ({},) * len(record.actions)
    for (before, after), action, note in zip(states, record.actions, notes, strict=True):
        ply: dict[str, Any] = {
            "seat": before.actor,
            "action": action_name(action),
            "words": deed(before, action),
            "then": "; ".join(consequences(before, after)),
        }
        if before.phase == Phase.GIVE:
            ply["public"] = "gives a card"
        if rated := rating(before, action, note):
            ply["note"] = rated
        yield ply


def deed(game: Game, action: int) -> str:
    """What the actor does by a legal action, as in ``lays 7D``; ``game`` is as it was before."""
    verb, _, card = action_name(action).partition(" ")
    match verb:
        case "pass":
            return _PASSES[game.phase].format(game.face_up)
        case "take":
            return f"takes {game.face_up}"
        case "force":
            return f"insists on {game.face_up}"
        case "lay":
            return f"lays {card}"
    return f"{'gives' if game.phase == Phase.GIVE else 'discards'} {card}"


def consequences(before: Game, after: Game) -> Iterator[str]:
    """What followed an action without anybody's doing."""
    if after.is_over:
        about, why = headline(after.view(0))
        yield f"{about[0].lower()}{about[1:]}, {why}"
    elif after.redeal > before.redeal:
        yield f"a draw: dealt again for a stake of {after.stake}"
        yield from turned(after)
    elif before.phase != after.phase:
        yield from turned(after)


def turned(game: Game) -> Iterator[str]:
    """The card that has just been turned, in words, if one has."""
    event = game.history[-1] if game.history else GAVE
    if TURN <= event & CODE_MASK < GAVE:
        yield f"seat {event >> SEAT_BIT} turns {card_name((event & CODE_MASK) - TURN)}"


def rating(game: Game, action: int, note: dict[str, Any]) -> dict[str, Any] | None:
    """What a note in the form of ``training.analyse`` says of a decision, from the actor's side.

    Whatever has another form is left out; None if nothing remains. ``rows`` hold for each legal
    action its ``mean``, its value with the cards ``open``, and the agents' probabilities.
    """
    sign = 1 if game.actor == 0 else -1
    legal = [action_name(each) for each in game.legal_actions()]
    means, values = _numbers(note.get("means"), legal), _numbers(note.get("values"), legal)
    agents = _agents(note.get("agents"), legal)
    if not (means or values or agents):
        return None
    value, loss = _number(note.get("value")), _number(note.get("loss"))
    return {
        "rows": [
            {
                "action": name.replace("discard", "give") if game.phase == Phase.GIVE else name,
                "played": name == action_name(action),
                "mean": means.get(name),
                "open": sign * values[name] if name in values else None,
                "agents": [shares.get(name) for shares in agents.values()],
            }
            for name in legal
        ],
        "agents": list(agents),
        "value": None if value is None else sign * value,
        "loss": loss,
        "mistake": loss is not None and loss >= MISTAKE,
    }


def _agents(noted: object, legal: list[str]) -> dict[str, dict[str, float]]:
    """Probabilities of legal actions by agent; what cannot be probabilities is no agent's."""
    tables = noted if isinstance(noted, dict) else {}
    agents = {agent: _numbers(table, legal) for agent, table in tables.items()}
    return {
        agent: shares
        for agent, shares in agents.items()
        if shares and all(0 <= share <= 1 for share in shares.values())
    }


def _numbers(noted: object, legal: list[str]) -> dict[str, float]:
    """The numbers that a note has for legal actions."""
    table = noted if isinstance(noted, dict) else {}
    found = {name: _number(table.get(name)) for name in legal}
    return {name: number for name, number in found.items() if number is not None}


def _number(noted: object) -> float | None:
    return noted if isinstance(noted, int | float) and not isinstance(noted, bool) else None
