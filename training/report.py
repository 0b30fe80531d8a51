"""A tournament on the terminal, as a page, Markdown, CSV and JSON, and in TensorBoard."""

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conquian_env import __version__
from conquian_env.errors import ConquianError
from conquian_env.record import write_records, write_whole
from training.charts import Course
from training.match import MatchResult
from training.page import to_html
from training.results import Tournament
from training.strength import Tally
from training.tables import (
    GAMES,
    WIDE,
    caption,
    cross_table,
    game_table,
    markdown,
    markdown_table,
    notes,
    visible,
)

FORMAT = "conquian-tournament-2"


class ReportError(ConquianError):
    """A report that cannot be written; names the file."""


def print_report(tournament: Tournament) -> None:
    """The cross table, drawn for the terminal."""
    header, rows = cross_table(tournament)
    table = Table(
        title="Tournament",
        box=box.SIMPLE,
        collapse_padding=True,
        pad_edge=False,
        caption=escape("\n".join([caption(tournament), *notes(tournament)])),
        caption_justify="left",
    )
    for name in header:
        fixed = name != "agent"
        table.add_column(name, overflow="fold", no_wrap=fixed, min_width=None if fixed else 12)
    for row in rows:
        table.add_row(*map(escape, row))
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def to_markdown(tournament: Tournament) -> str:
    """The cross table and each pairing's games as Markdown."""
    lines = [
        "# Tournament",
        "",
        markdown(caption(tournament)),
        "",
        *markdown_table(*cross_table(tournament)),
        "",
    ]
    lines += [f"- {markdown(note)}" for note in notes(tournament)]
    lines += ["", "## Games", "", *markdown_table(list(GAMES), game_table(tournament))]
    return "\n".join(lines) + "\n"


def to_csv(tournament: Tournament) -> str:
    """One line for each agent: rank, name, rating and score with their intervals."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(
        ("rank", "agent", "elo", "elo_low", "elo_high", "score", "score_low", "score_high")
    )
    for place, rating in enumerate(tournament.ratings.ranking, 1):
        score = tournament.overall(rating.agent)
        name = visible(rating.agent)
        rows.writerow((place, name, rating.elo, rating.low, rating.high, *asdict(score).values()))
    return text.getvalue()


def to_json(tournament: Tournament) -> str:
    """Everything in the tables, with the payoffs of every game."""
    ratings = tournament.ratings
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "config": asdict(tournament.config) | {"rules": tournament.config.rule_set.to_dict()},
        "ranking": [
            {**asdict(rating), "score": asdict(tournament.overall(rating.agent))}
            for rating in ratings.ranking
        ],
        "notes": notes(tournament),
        "matches": [_match(tournament, match) for match in tournament.matches],
    }
    return json.dumps(content)


def _match(tournament: Tournament, match: MatchResult) -> dict[str, Any]:
    return {
        "first": match.first,
        "second": match.second,
        **asdict(tournament.ratings.against(match.first, match.second)),
        **dict(zip(("won", "drawn", "lost"), match.counts, strict=True)),
        "pairs": list(Tally.of(match.payoff).counts),
        "payoff": match.payoff.astype(int).tolist(),
        "plies": match.plies.tolist(),
        "forfeits": [asdict(forfeit) for forfeit in match.forfeits],
    }


def write_report(tournament: Tournament, out: Path) -> list[Path]:
    """Write the report in every form, and the records, into the folder ``out``; the paths.

    Each file is written whole, or stays as it was.

    Raises:
        ReportError: one of them cannot be written; names it.
    """
    texts = {
        "tournament.html": to_html(tournament),
        "tournament.md": to_markdown(tournament),
        "tournament.csv": to_csv(tournament),
        "tournament.json": to_json(tournament),
    }
    for name, text in texts.items():
        with _naming(out / name) as path:
            write_whole(path, [text])
    with _naming(out / "games.jsonl") as records:
        write_records(records, [record for match in tournament.matches for record in match.records])
    return [*(out / name for name in texts), records]


@contextmanager
def _naming(path: Path) -> Iterator[Path]:
    """Name the file if it cannot be written: when a disk is full, the system does not."""
    try:
        yield path
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror}") from None


def write_curves(tournament: Tournament, out: Path) -> Path:
    """For TensorBoard, each agent a run of its own: its score as deals came, and its rating.

    Earlier curves go: an agent that has another rank now would have two.
    """
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  # torch takes seconds

    folder = out / "curves"
    shutil.rmtree(folder, ignore_errors=True)
    for place, rating in enumerate(tournament.ratings.ranking, 1):
        course = Course.of(tournament.deal_scores(rating.agent))
        name = re.sub(r"[^A-Za-z0-9=.,]+", "-", rating.agent)
        with SummaryWriter(str(folder / f"{place} {name}")) as writer:
            for count, mean in zip(course.count.tolist(), course.mean.tolist(), strict=True):
                writer.add_scalar("tournament/score", mean, count)
            writer.add_scalar("tournament/elo", rating.elo, course.count[-1])
    return folder
