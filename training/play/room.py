"""A game that any number of pages look at and decide in, and the next one after it."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from itertools import count
from queue import SimpleQueue
from typing import Any, NoReturn

from conquian_env.errors import ConquianError, OptionError
from conquian_env.viewer import picture
from training.play.session import Session
from training.play.words import question, result


class StaleError(ConquianError):
    """What was to be decided has been decided before."""


class Room:
    """The games of a server, one at a time.

    Args:
        sessions: the games; the next is begun when a page asks for it after the end of one.

    Attributes:
        session: the game that is played, or was played last.
        state: all that the pages are shown, as JSON. It holds what the person knows, and the rest
            only when the game is over.
    """

    def __init__(self, sessions: Iterator[Session]) -> None:
        self._sessions = sessions
        self._asked = SimpleQueue[tuple[object, object, Future[None]]]()
        self._versions = count(time.time_ns() // 1000)  # later than those of a server before
        self._begin()
        self._renew()

    def run(self) -> NoReturn:
        """Do what ``decide`` asks for, until this thread is interrupted.

        Agents are asked in one thread: that of Ctrl-C, and libraries of networks like no other.
        """
        while True:
            version, what, done = self._asked.get()
            try:
                if version != self._version:
                    raise StaleError("this was decided already, here or in another tab")
                self._do(what)
                self._renew()
            except Exception as error:  # it is the asking thread's
                done.set_exception(error)
            else:
                done.set_result(None)

    def decide(self, version: object, what: object) -> None:
        """Decide something, and play until the person's next choice; from any other thread.

        Args:
            version: of the state on which it was decided.
            what: the id of an action, ``hint``, ``undo``, or ``new`` for the next game.

        Raises:
            StaleError: there is a later state.
            ConquianError: it cannot be. Nothing has changed.
        """
        done: Future[None] = Future()
        self._asked.put((version, what, done))
        done.result()

    def _do(self, what: Any) -> None:
        match what:
            case "hint":
                self.session.hint()
            case "undo":
                self.session.undo()
            case "new" if self.session.over:
                self._keep()
                self._begin()
            case "new":
                raise OptionError("the game is not over")
            case action:
                self.session.choose(action)

    def _keep(self) -> None:
        """Save the last game if that failed before; there is no next one while it fails."""
        try:
            self.session.save()
        except OSError as error:
            raise OptionError(f"the last game could not be saved: {error}") from None

    def _begin(self) -> None:
        self.session = next(self._sessions)
        self.session.begin()

    def _renew(self) -> None:
        """Make the state anew; a game that is over is saved first."""
        self._version, session = next(self._versions), self.session
        after = {"saved": _save(session), **_after(session)} if session.over else None
        self.state = json.dumps({"version": self._version, **shown(session), "after": after})


def shown(session: Session) -> dict[str, Any]:
    """What a page shows of a game that is played: what the person knows, and nothing else."""
    view, setting = session.view, session.setting
    you, spec = "you", setting.opponent.spec
    return {
        "opponent": spec,
        "rules": setting.rules.to_text(),
        "seats": (you, spec) if session.seat == 0 else (spec, you),
        "view": picture(view),
        "actions": session.legal,
        "headline": "Game over" if session.over else "Your move",
        "prompt": "" if session.over else question(view),
        "story": [(line.who, line.what) for line in session.story()],
        "news": len(session.news()),
        "adviser": setting.adviser.spec if setting.adviser else None,
        "hint": session.hinted,
        "undo": session.can_undo if setting.undo else None,
    }


def _after(session: Session) -> dict[str, Any]:
    """What may be known when a game is over."""
    failure, spec = session.failure, session.setting.opponent.spec
    broken = f"The game is broken off: {failure}"
    return {
        "result": broken if failure else result(session.view, spec),
        "other": picture(session.other_view),
        "thoughts": [(line.what, thought) for line, thought in session.thoughts()],
    }


def _save(session: Session) -> str:
    """Save a game and say where; if it cannot be, that is tried again before the next game."""
    try:
        return f"Saved in {session.setting.out}, line {session.save()}"
    except OSError as error:
        return f"The game could not be saved: {error}"
