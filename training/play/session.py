"""One game between a person and an agent, whatever shows it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from agents import Agent
from agents.agent import AgentError
from conquian_env import Game, GameRecord, RuleSet, View, action_name
from conquian_env.errors import IllegalActionError, OptionError
from conquian_env.record import append_record
from conquian_env.seeds import decision_seeds
from conquian_env.state import Phase
from training.analyse import named
from training.match import ask, ask_probabilities
from training.play.words import START, Line, addressed, tell

PERSON = "person"  # in records
ADVICE, PLAY = 1, 0  # two streams of an agent's randomness


class Named(NamedTuple):
    """An agent and its spec."""

    spec: str
    agent: Agent


@dataclass(frozen=True)
class Setting:
    """What is the same in all games of a program.

    Attributes:
        opponent: who sits in the other seat.
        adviser: whose hints the person may ask for; None for no hints.
        out: the file of records that a game is added to.
        undo: whether the person may take decisions back.
    """

    opponent: Named
    adviser: Named | None
    rules: RuleSet
    out: Path
    undo: bool = False


class Session:
    """A game in play. Whatever leaves nobody a choice is played by itself.

    The agents are shown views, and the person ``view`` and ``story``; the hidden cards are in
    ``record`` and ``other_view``, for after the game.

    Args:
        setting: who plays what.
        seed, deal: of the cards, which are told after the game.
        seat: the person's.

    Attributes:
        seed, deal: the cards'; for after the game.
        failure: one line that says why the game was broken off, or "".
    """

    def __init__(self, setting: Setting, seed: int, deal: int, seat: int) -> None:
        self.setting, self.seat, self.failure = setting, seat, ""
        self.seed, self.deal = seed, deal
        self._start = Game(setting.rules, seed, deal)
        self._game, self._actions = self._start.copy(), list[int]()
        self._decisions = list[int]()  # the plies of the person's choices
        self._notes = dict[int, dict[str, Any]]()
        self._line: int | None = None  # of the record in its file

    # --- what the person sees ---

    @property
    def view(self) -> View:
        """What the person knows."""
        return self._game.view(self.seat)

    @property
    def legal(self) -> list[int]:
        """What the person may do; nothing when the game is over or was broken off."""
        mine = self._game.actor == self.seat and not self.failure
        return self._game.legal_actions() if mine else []

    @property
    def ply(self) -> int:
        """Actions so far."""
        return len(self._actions)

    @property
    def over(self) -> bool:
        """Whether nothing can be played any more."""
        return self._game.is_over or bool(self.failure)

    @property
    def can_undo(self) -> bool:
        """Whether there is a decision that the person may take back."""
        return self.setting.undo and bool(self._decisions) and not self.over

    def story(self) -> list[Line]:
        """What happened so far, in words."""
        return tell(self._start, self._actions, self.seat, self.setting.opponent.spec)

    def news(self) -> list[Line]:
        """What happened since the person's last choice, which comes first."""
        last = self._decisions[-1] if self._decisions else START
        return [line for line in self.story() if line.ply >= last]

    # --- play ---

    def begin(self) -> None:
        """Play until the person has a choice, as ``choose`` does."""
        self._advance()

    def choose(self, *actions: int) -> None:
        """Play what the person chose, one or more actions in a row, and all until the next choice.

        An agent that fails leaves ``failure`` behind.

        Raises:
            IllegalActionError: one of them is not legal; nothing was played.
        """
        self._check(actions)
        self._decisions.append(self.ply)
        for action in actions:
            self._apply(action)
        self._advance()

    def undo(self) -> None:
        """Go back to the person's last choice; the record says so once something is played there.

        Raises:
            OptionError: that is not allowed, or there is none.
        """
        if not self.setting.undo:
            raise OptionError("nothing can be undone in this game; start one with --undo")
        if not self.can_undo:
            raise OptionError("there is nothing to undo")
        ply = self._decisions.pop()
        later = (note for other, note in self._notes.items() if other >= ply)
        undone = 1 + sum(note.get("undone", 0) for note in later)
        self._actions = self._actions[:ply]
        hint = {name: told for name, told in self._notes.get(ply, {}).items() if name == "agents"}
        self._notes = {earlier: note for earlier, note in self._notes.items() if earlier < ply}
        self._notes[ply] = {**hint, "undone": undone}  # a hint that was given stays known
        self._game = self._start.copy()
        for action in self._actions:
            self._game.apply(action)

    @property
    def adviser(self) -> Named:
        """Who gives hints.

        Raises:
            OptionError: nobody does.
        """
        if self.setting.adviser is None:
            raise OptionError("there are no hints in this game")
        return self.setting.adviser

    def hint(self) -> dict[str, float]:
        """How likely the adviser would do what, by action name; noted in the record.

        Raises:
            AgentError: it failed.
            OptionError: there is no choice to make, or no adviser.
        """
        spec, agent = self.adviser
        if not self.legal:
            raise OptionError("there is no choice to make")
        views = self._game.views(self._seeds(ADVICE))
        hint = named(ask_probabilities(spec, agent, views)[0], self.legal)
        self._notes.setdefault(self.ply, {})["agents"] = {spec: hint}
        return hint

    @property
    def hinted(self) -> dict[str, float]:
        """The hint that was given for this choice; empty without one."""
        adviser, noted = self.setting.adviser, self._notes.get(self.ply, {}).get("agents", {})
        return dict(noted.get(adviser.spec, {})) if adviser else {}

    def _check(self, actions: Sequence[int]) -> None:
        """Refuse what the person cannot play in a row."""
        if not self.legal:
            raise IllegalActionError("there is no choice to make")
        game = self._game.copy()
        for number, action in enumerate(actions):
            if game.actor != self.seat and not game.is_over:
                raise IllegalActionError(f"{action_name(action)}: it is not your turn then")
            if number and game.phase in (Phase.GIVE, Phase.TURNED):  # else a refusal would tell it
                raise IllegalActionError(
                    f"{action_name(action)}: first see the card that is turned"
                )
            try:
                game.apply(action)
            except IllegalActionError as error:
                raise IllegalActionError(addressed(str(error), self.seat)) from None

    def _advance(self) -> None:
        """Play until the person has a choice, or the game is over."""
        try:
            while not self._game.is_over:
                legal = self._game.legal_actions()
                if len(legal) > 1 and self._game.actor == self.seat:
                    return
                self._apply(legal[0] if len(legal) == 1 else self._answer(legal))
        except AgentError as error:
            self.failure = " ".join(str(error).split())

    def _answer(self, legal: list[int]) -> int:
        """What the agent does; its thoughts are noted."""
        spec, agent = self.setting.opponent
        seeds = self._seeds(PLAY)
        action = int(ask(spec, agent, self._game.views(seeds))[0])
        thoughts = {action_name(other): float(other == action) for other in legal}
        if hasattr(agent, "probabilities"):
            thoughts = named(ask_probabilities(spec, agent, self._game.views(seeds))[0], legal)
        self._notes[self.ply] = {"agents": {spec: thoughts}}
        return action

    def _seeds(self, stream: int) -> Any:
        """The agent's own randomness at this ply, as in a match, uint64 [1]."""
        game, ply = 2 * self._start.deal + stream, np.array([self.ply])
        seat = np.array([self._game.actor])
        return decision_seeds(self._start.seed, np.array([game]), seat, ply)

    def _apply(self, action: int) -> None:
        self._game.apply(action)
        self._actions.append(action)

    # --- after the game ---

    @property
    def other_view(self) -> View:
        """What the agent knows, its hand included."""
        return self._game.view(1 - self.seat)

    def thoughts(self) -> list[tuple[Line, dict[str, float]]]:
        """The agent's decisions in words, each with how likely it was to do what."""
        spec, seats = self.setting.opponent.spec, self._seats()
        noted = {
            ply: note["agents"][spec]
            for ply, note in sorted(self._notes.items())
            if ply < len(seats) and seats[ply] != self.seat
        }
        first = {line.ply: line for line in reversed(self.story())}
        return [(first[ply], thought) for ply, thought in noted.items()]

    def _seats(self) -> list[int]:
        """Who acted, by ply."""
        game, seats = self._start.copy(), []
        for action in self._actions:
            seats.append(game.actor)
            game.apply(action)
        return seats

    def record(self) -> GameRecord:
        """The game so far, with the agent's thoughts and the hints in its notes."""
        actions = tuple(self._actions)
        agents = [PERSON, self.setting.opponent.spec]
        record = GameRecord.of(self._start, actions, (agents[self.seat], agents[1 - self.seat]))
        notes = tuple(dict(self._notes.get(ply, {})) for ply in range(len(actions)))
        return replace(record, notes=notes)

    def save(self) -> int | None:
        """Add the game to the file of records, once; its line there, None without an action.

        Raises:
            OSError: it cannot be written; the file is as it was.
        """
        if self._line is None and self._actions:
            self._line = append_record(self.setting.out, self.record())
        return self._line
