"""A tournament as one HTML file that needs nothing else: no network, no script, no font.

What agents are called and what they say when they fail is not to be trusted: all texts are escaped
by the template, and the page forbids itself whatever is not in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from conquian_env import Game, GameRecord, __version__
from conquian_env.actions import action_name
from conquian_env.errors import OptionError
from conquian_env.record import replay
from training.charts import Axis, Bar, Course, Frame, histogram
from training.match import Estimate, Forfeit, MatchResult
from training.ratings import Rating
from training.results import Tournament
from training.tables import GAMES, caption, game_table, notes, points, visible

TEMPLATE = "page.html.jinja"
MOST_SHOWN = 200  # recorded games, or two of each pairing where that is more

_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def to_html(tournament: Tournament) -> str:
    """The page; it links to the other files of ``report.write_report``, which lie beside it."""
    ranking = tournament.ratings.ranking
    page = _PAGES.get_template(TEMPLATE).render(
        tournament=tournament,
        version=__version__,
        caption=caption(tournament),
        notes=notes(tournament),
        ranking=ranking,
        scores={agent: tournament.overall(agent) for agent in tournament.ranking},
        mixed=ranking[0].share is not None,
        points=points,
        elo=_elo_axis(ranking),
        cross=[_cross_row(tournament, agent) for agent in tournament.ranking],
        **_courses(tournament),
        games=GAMES,
        pairings=list(zip(tournament.matches, game_table(tournament), strict=True)),
        **_lengths(tournament),
        forfeits=list(_forfeits(tournament)),
        samples=list(_samples(tournament.matches)),
        recorded=sum(len(match.records) for match in tournament.matches),
    )
    return "\n".join(map(visible, page.split("\n")))


def _elo_axis(ranking: tuple[Rating, ...]) -> Axis:
    ends = [0.0, *(end for rating in ranking for end in (rating.low, rating.high))]
    return Axis.over(min(ends), max(ends))


@dataclass(frozen=True)
class Cell:
    """What an agent made of another.

    Attributes:
        kind: ``won`` or ``lost`` where the interval says so, else ``ahead``, ``behind`` or
            ``even``; ``self`` for itself, ``unmet`` for one it did not meet.
        payoff: none for the last two.
    """

    kind: str
    payoff: Estimate | None = None


def _cross_row(tournament: Tournament, agent: str) -> list[Cell]:
    return [_cell(tournament, agent, other) for other in tournament.ranking]


def _cell(tournament: Tournament, agent: str, other: str) -> Cell:
    if agent == other:
        return Cell("self")
    try:
        payoff = tournament.ratings.against(agent, other)
    except OptionError:
        return Cell("unmet")
    return Cell(_kind(payoff), payoff)


def _kind(payoff: Estimate) -> str:
    if payoff.low > 0 or payoff.high < 0:
        return "won" if payoff.mean > 0 else "lost"
    return {1: "ahead", -1: "behind"}.get(int(np.sign(payoff.mean)), "even")


def _courses(tournament: Tournament) -> dict[str, object]:
    """The course of each agent's score, and a frame that holds them all."""
    courses = {agent: Course.of(tournament.deal_scores(agent)) for agent in tournament.ranking}
    most = max(float(abs(match.payoff).max()) for match in tournament.matches)
    low = min(float(course.low.min()) for course in courses.values())
    high = max(float(course.high.max()) for course in courses.values())
    deals = max(int(course.count[-1]) for course in courses.values())
    frame = Frame(Axis.over(0, deals, 5), Axis.over(max(low, -most), min(high, most)))
    return {"courses": courses, "frame": frame}


def _lengths(tournament: Tournament) -> dict[str, object]:
    """How long all games were, with what else is said of all together."""
    matches = tournament.matches
    plies = np.concatenate([match.plies for match in matches])
    bars = histogram(plies)
    return {
        "plies": plies,
        "bars": bars,
        "often": Axis.over(0, max(bar.count for bar in bars), 2),
        "long": Axis.over(*_reach(bars)),
        "drawn": sum(match.counts[1] for match in matches),
        "seat_0": sum(match.seat_0_wins for match in matches),
    }


def _reach(bars: list[Bar]) -> tuple[int, int]:
    return bars[0].low, bars[-1].high + 1


def _forfeits(tournament: Tournament) -> Iterator[tuple[int, Forfeit, str]]:
    """By agent and kind: how many, the first of them, and against whom that was."""
    for agent in tournament.ranking:
        for kind, forfeits in tournament.forfeits(agent).items():
            yield (
                len(forfeits),
                *next(
                    (forfeit, other)
                    for other, match, _ in tournament.met(agent)
                    for forfeit in match.forfeits
                    if (forfeit.agent, forfeit.kind) == (agent, kind)
                ),
            )


@dataclass
class Turn:
    """What both seats did, one after the other, from an action on; either may have done nothing."""

    ply: int
    seats: tuple[list[str], list[str]]


@dataclass(frozen=True)
class Sample:
    """A recorded game.

    Attributes:
        line: its number in the file of records, from 1.
        hands: the cards that each seat was dealt.
        ending: the result in words.
    """

    line: int
    record: GameRecord
    hands: tuple[str, str]
    turns: list[Turn]
    ending: str


def _samples(matches: tuple[MatchResult, ...]) -> Iterator[Sample]:
    """The first recorded games of each match."""
    line, each = 1, max(2, MOST_SHOWN // len(matches))
    for match in matches:
        for number, record in enumerate(islice(match.records, each), line):
            start = record.start()
            hands = " ".join(start.hand(0)), " ".join(start.hand(1))
            yield Sample(number, record, hands, _turns(record), _ending(record))
        line += len(match.records)


def _turns(record: GameRecord) -> list[Turn]:
    """A game as on a score sheet, seat 0 on the left."""
    turns: list[Turn] = []
    before = 1
    for game, action in zip(replay(record), record.actions, strict=False):
        if game.actor < before or not turns:
            turns.append(Turn(game.ply + 1, ([], [])))
        turns[-1].seats[game.actor].append(_said(game, action))
        before = game.actor
    return turns


def _said(game: Game, action: int) -> str:
    """An action, with the card that it answers."""
    name = action_name(action)
    return name if " " in name or game.face_up is None else f"{name} ({game.face_up})"


def _ending(record: GameRecord) -> str:
    if record.outcome is None:
        return "not played to its end"
    winner = record.outcome.winner
    if winner is None:
        return "drawn, the stock ran out"
    return f"{record.agents[winner]} in seat {winner} went out: {record.result.split()[0]}"
