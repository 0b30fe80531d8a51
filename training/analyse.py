"""What each decision of a game was worth: ``python -m training.analyse games.jsonl``.

For every decision that is one: its value and that of each action with all cards known (the solver),
the mean value of each action over deals that look the same to the seat (which is what it could
know; too hopeful, as every average of that kind), and what other agents would have done. A mistake
is what the mean says an action gave away.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from agents import Agent, make_agent
from conquian_env import Game, GameRecord, action_name
from conquian_env.deal import seed_bits
from conquian_env.errors import OptionError
from conquian_env.record import read_records, replay, write_records
from conquian_env.seeds import derive
from conquian_env.solver import NODE_LIMIT, UNKNOWN, Solver
from conquian_env.state import Phase
from conquian_env.viewer.plies import MISTAKE
from conquian_env.worlds import redeal
from training.command import command
from training.match import ask_probabilities, check_plays


@dataclass(frozen=True)
class Analyst:
    """How games are looked at.

    Attributes:
        worlds: deals to solve for each decision.
        agents: by spec; what they would do is noted.
        seed: of worlds and agents.
        limit: positions to look at in one solution; what is left open, in any world, is null.
    """

    worlds: int = 50
    agents: tuple[str, ...] = ("greedy",)
    seed: int = 0
    limit: int = NODE_LIMIT

    def annotate(self, record: GameRecord) -> GameRecord:
        """The record with a note for each action, empty for those without a choice.

        A note holds ``value`` (seat 0's with best play, cards known), ``values`` and ``means`` by
        action name (those of the actor's side are ``means``), ``loss`` (the best mean less that
        of what was played) and ``agents`` (probabilities by agent and action name). Gifts, which
        are chosen unseen, have ``agents`` alone.

        Raises:
            OptionError: the rules have no such values.
            AgentError: an agent cannot be asked.
        """
        return replace(record, notes=tuple(self.notes(record)))

    def notes(self, record: GameRecord) -> Iterator[dict[str, Any]]:
        """The notes of ``annotate``, each as soon as it is known."""
        solver = Solver(record.rules, self.limit)
        agents = {spec: make_agent(spec) for spec in self.agents}
        for spec, agent in agents.items():
            check_plays(spec, agent, record.rules)
        for game, action in zip(replay(record), record.actions, strict=False):
            yield self._note(game, action, solver, agents)

    def _note(
        self, game: Game, action: int, solver: Solver, agents: dict[str, Agent]
    ) -> dict[str, Any]:
        legal = game.legal_actions()
        if len(legal) == 1:
            return {}
        note: dict[str, Any] = {} if game.phase == Phase.GIVE else self._values(game, solver)
        if note:
            known = [mean for mean in note["means"].values() if mean is not None]
            mean = note["means"][action_name(action)]
            note["loss"] = None if mean is None else round(max(known) - mean, 4)
        seeds = derive("analyse", self.seed, np.array([game.ply]), np.array([game.actor]))
        note["agents"] = {
            spec: named(ask_probabilities(spec, agent, game.views(seeds))[0], legal)
            for spec, agent in agents.items()
        }
        return note

    def _values(self, game: Game, solver: Solver) -> dict[str, Any]:
        """What the solver says, of the true cards and of others."""
        true = solver.solve(game)
        rng = np.random.default_rng((self.seed, game.ply))
        worlds = redeal(game.view(game.actor), rng, self.worlds)
        values, _ = solver.action_values(worlds.states())
        sign, means = 1 if game.actor == 0 else -1, {}
        for action in game.legal_actions():
            known = values[:, action][values[:, action] != UNKNOWN]
            mean = round(sign * float(known.mean()), 4) if len(known) == self.worlds else None
            means[action_name(action)] = mean
        return {
            "value": true.value,
            "values": {action_name(action): value for action, value in true.actions.items()},
            "means": means,
        }


def named(values: NDArray[Any], legal: list[int]) -> dict[str, float]:
    """The values of legal actions ([83]) by action name."""
    return {action_name(action): round(float(values[action]), 4) for action in legal}


def mistakes(record: GameRecord) -> Iterator[str]:
    """The decisions of an annotated record that gave ``MISTAKE`` or more away, the worst first."""
    found = [
        (loss, ply)
        for ply, note in enumerate(record.notes)
        if (loss := note.get("loss") or 0.0) >= MISTAKE
    ]
    seats = [game.actor for game in replay(record)]
    for loss, ply in sorted(found, key=lambda pair: (-pair[0], pair[1])):
        note, seat, name = record.notes[ply], seats[ply], action_name(record.actions[ply])
        means = {other: mean for other, mean in note["means"].items() if mean is not None}
        best = max(means, key=lambda other: means[other])
        who = quote(record.agents[seat], safe="/:=?,")  # it may be any text
        yield (
            f"ply {ply + 1}, seat {seat} ({who}): {name} gives away {loss:.2f} on the average "
            f"({best} is better){_opened(note['value'], note['values'][name], seat)}"
        )


def _opened(best: int | None, played: int | None, seat: int) -> str:
    """What an action gave away with open cards, in words; nothing if that is nothing or open."""
    if best is None or played is None or best == played:
        return ""
    sign, ends = 1 if seat == 0 else -1, {1: "won", 0: "drawn", -1: "lost"}
    return f"; with open cards {ends[sign * played]} instead of {ends[sign * best]}"


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.analyse", description=__doc__)
    parser.add_argument("file", type=Path, help="records, JSON lines")
    parser.add_argument("--out", type=Path, help="where the annotated records go (FILE itself)")
    parser.add_argument("--worlds", type=int, default=50, help="deals for each decision (50)")
    parser.add_argument("--agents", nargs="*", default=["greedy"], help="specs (greedy)")
    parser.add_argument("--seed", type=int, default=0, help="of worlds and agents (0)")
    options = parser.parse_args(arguments)
    if options.worlds < 1:
        raise OptionError(f"worlds must be at least 1, not {options.worlds}")
    analyst = Analyst(options.worlds, tuple(options.agents), options.seed)
    seed_bits(options.seed)
    records, out = read_records(options.file), options.out or options.file
    for record in records:
        Solver(record.rules, memory=1)  # rules without values are refused before the work
    if not out.parent.is_dir():
        raise OptionError(f"{out}: there is no folder {out.parent}")
    annotated = []
    with tqdm(total=sum(len(record.actions) for record in records), unit=" actions") as bar:
        for number, record in enumerate(records, 1):
            annotated.append(_annotated(analyst, record, bar))
            with bar.external_write_mode():
                print(f"{options.file}, line {number}: {record.heading} | {record.result}")
                for line in mistakes(annotated[-1]):
                    print(f"  {line}")
    write_records(out, annotated)
    print(f"annotated: {out}")


def _annotated(analyst: Analyst, record: GameRecord, bar: "tqdm[None]") -> GameRecord:
    """An annotated record; each of its actions moves the bar."""
    notes = list[dict[str, Any]]()
    for note in analyst.notes(record):
        notes.append(note)
        bar.update()
    return replace(record, notes=tuple(notes))


if __name__ == "__main__":
    sys.exit(main())
