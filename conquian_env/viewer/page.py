"""A replay as one HTML file that needs nothing else: no network, no font, no folder beside it.

The games are in the page as data; what a record calls its agents, or notes, is drawn as text only,
and the page forbids itself every script but its own two.
"""

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from string import Template
from typing import Any, Literal

from conquian_env.errors import OptionError, RecordError
from conquian_env.record import GameRecord, replay
from conquian_env.svg import sprite
from conquian_env.version import __version__
from conquian_env.view import View
from conquian_env.viewer.plies import plies, turned
from conquian_env.viewer.table import asset, picture

Perspective = Literal[0, 1, "open"]

_NOT_DRAWN = (
    "table", "other_table", "unseen", "declined", "other_declined", "other_discarded", "received",
    "history", "winner", "stake",
)  # fmt: skip
_FRAME = (
    '<iframe srcdoc="{}" title="A replay of Conquian" sandbox="allow-scripts" '
    'style="width: 100%; height: 760px; border: 0"></iframe>'
)


def to_html(records: Iterable[GameRecord], seat: Perspective = "open") -> str:
    """The page of some games, one at a time; ``seat`` looks at first, or both hands are open.

    Raises:
        RecordError: there is no game.
        OptionError: ``seat`` is neither 0, 1 nor ``open``.
    """
    if seat not in (0, 1, "open"):
        raise OptionError(f"seat must be 0, 1 or 'open', not {seat!r:.60}")
    games = list(map(_game, records))
    if not games:
        raise RecordError("there is no game to show")
    scripts = {"table_js": asset("table.js"), "replay_js": asset("replay.js")}
    return Template(asset("replay.html")).substitute(
        scripts,
        allowed=" ".join(map(_hash, scripts.values())),
        table_css=asset("table.css"),
        replay_css=asset("replay.css"),
        sprite=sprite(),
        data=_inert({"version": __version__, "seat": str(seat), "games": games}),
    )


class Replay:
    """Games that a notebook draws as a replay, in a frame of their own."""

    def __init__(self, *records: GameRecord, seat: Perspective = "open") -> None:
        self.page = to_html(records, seat)

    def _repr_html_(self) -> str:
        return _FRAME.format(escape(self.page))


def _hash(script: str) -> str:
    """A script as a Content-Security-Policy names it."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def _inert(data: object) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _game(record: GameRecord) -> dict[str, Any]:
    """A game as ``replay.js`` shows it: texts, plies, and for each seat what it sees at each."""
    states = list(replay(record))
    known = f"seed {record.seed}, deal {record.deal}" if record.dealt is None else "known cards"
    return {
        "rules": record.rules.to_text().replace(",", ", "),
        "origin": known,
        "agents": record.agents,
        "version": record.version,
        "result": record.result,
        "start": "; ".join(turned(states[0])),
        "plies": list(plies(record)),
        "views": [list(_changes(game.view(seat) for game in states)) for seat in (0, 1)],
    }


def _changes(views: Iterable[View]) -> Iterator[dict[str, Any]]:
    """The first picture, and of each other what is not as in the one before it."""
    before: dict[str, Any] = {}
    for view in views:
        drawn = {name: value for name, value in picture(view).items() if name not in _NOT_DRAWN}
        yield {
            name: value
            for name, value in drawn.items()
            if name not in before or before[name] != value
        }
        before = drawn
