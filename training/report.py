"""A tournament on the terminal, as Markdown and as JSON."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from conquian_env import __version__

if TYPE_CHECKING:
    from training.tournament import Tournament

FORMAT = "conquian-tournament-1"
WIDE = 120  # columns where no terminal sets them


def cross_table(tournament: "Tournament") -> tuple[list[str], list[list[str]]]:
    """Header and rows: rank, agent, overall score, and score against each rank."""
    ranking = tournament.ranking()
    header = ["", "agent", "score", *(f"v {rank + 1}" for rank in range(len(ranking)))]
    rows = [
        [
            str(place),
            agent,
            tournament.overall(agent).short,
            *("" if o == agent else tournament.against(agent, o).short for o in ranking),
        ]
        for place, agent in enumerate(ranking, 1)
    ]
    return header, rows


def _caption(tournament: "Tournament") -> str:
    return (
        f"{tournament.pairs} deals, each played twice with the seats swapped; seed "
        f"{tournament.seed}. Score: mean of +1, 0, -1 a game, against all others and against each; "
        "± is half the 95 % interval, by bootstrap over the deals."
    )


def print_report(tournament: "Tournament") -> None:
    """The cross table, drawn for the terminal."""
    header, rows = cross_table(tournament)
    table = Table(
        title="Tournament",
        box=box.SIMPLE,
        collapse_padding=True,
        pad_edge=False,
        caption=_caption(tournament),
        caption_justify="left",
    )
    for name in header:
        fixed = name != "agent"
        table.add_column(name, overflow="fold", no_wrap=fixed, min_width=None if fixed else 12)
    for row in rows:
        table.add_row(*map(escape, row))
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def to_markdown(tournament: "Tournament") -> str:
    """The cross table and each match's games as Markdown."""
    header, rows = cross_table(tournament)
    lines = [
        "# Tournament",
        "",
        _caption(tournament),
        "",
        *_table(header, rows),
        "",
        "## Games",
        "",
    ]
    games = [
        [match.first, match.second, *map(str, match.counts), str(match.score)]
        for match in tournament.matches
    ]
    lines += _table(["first", "second", "won", "drawn", "lost", "score of the first"], games)
    return "\n".join(lines) + "\n"


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    ruled = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in ruled]


def to_json(tournament: "Tournament") -> str:
    """Everything in the tables, with the payoffs of every game."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "rules": tournament.rules.to_dict(),
        "seed": tournament.seed,
        "pairs": tournament.pairs,
        "ranking": [
            {"agent": agent, **asdict(tournament.overall(agent))} for agent in tournament.ranking()
        ],
        "matches": [
            {
                "first": match.first,
                "second": match.second,
                **asdict(match.score),
                **dict(zip(("won", "drawn", "lost"), match.counts, strict=True)),
                "payoff": match.payoff.astype(int).tolist(),
            }
            for match in tournament.matches
        ],
    }
    return json.dumps(content)


def write_report(tournament: "Tournament", out: Path) -> list[Path]:
    """Write ``tournament.md`` and ``tournament.json`` into the folder ``out``; their paths."""
    texts = {"tournament.md": to_markdown(tournament), "tournament.json": to_json(tournament)}
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    return [out / name for name in texts]
