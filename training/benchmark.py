"""A score card that others can check: ``python -m training.benchmark --agent package:Class``.

The agent meets frozen anchors on fixed numbers of deals. Which deals comes from a hash of the
benchmark's version and the agent's own files: deals that everybody knew could be learnt by heart,
for ten own cards name the deal. ``--verify card.json`` plays a card again and compares.
"""

import argparse
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents import make_agent
from agents.registry import KNOWN, files_of
from conquian_env import RuleSet, __version__
from conquian_env.errors import ConquianError
from conquian_env.seeds import LEARNERS
from training.backends import Backend, Setting, by_pairing, is_ours, play_all, prepared
from training.command import command
from training.match import Estimate, MatchResult
from training.schedule import Part, parts
from training.strength import Tally
from training.tables import WIDE, markdown_table
from training.toml import STRICT

VERSION: Literal["conquian-bench-v1"] = "conquian-bench-v1"
ANCHORS = {  # specs, and deals against each
    "random": 2000,
    "greedy": 5000,
    "expert": 5000,
    "ppo:baseline": 5000,
    "rollout:worlds=20": 500,
}
PART = 250  # deals played at a time


class BenchmarkError(ConquianError):
    """A score card that cannot be read, or that does not hold."""


@dataclass(frozen=True, config=STRICT)
class AnchorCard:
    """What an agent made of one anchor.

    Attributes:
        pairs: how many pairs came to -2, -1, 0, 1 and 2, see ``training.strength.Tally``.
        won, drawn, lost: games.
        games: SHA-256 of the payoffs of all games, hexadecimal.
    """

    anchor: str
    score: Estimate
    pairs: Annotated[tuple[int, ...], Field(min_length=5, max_length=5)]
    won: int
    drawn: int
    lost: int
    games: str

    @classmethod
    def of(cls, match: MatchResult) -> "AnchorCard":
        """Of all games against an anchor, the match's second agent."""
        games = hashlib.sha256(match.payoff.astype("<f4").tobytes()).hexdigest()
        pairs = tuple(Tally.of(match.payoff).counts)
        return cls(match.second, match.score, pairs, *match.counts, games)


@dataclass(frozen=True, config=STRICT)
class Card:
    """What an agent made of the benchmark, as it is written, and compared by whoever checks it.

    Attributes:
        agent: its spec.
        digest: of its files, hexadecimal.
        version: of this package.
        score: mean of the scores against the anchors, each counting the same.
        forfeits: games that the agent could not go on with.
    """

    benchmark: Literal["conquian-bench-v1"]
    agent: str
    digest: str
    version: str
    score: Estimate
    forfeits: int
    matches: tuple[AnchorCard, ...]


def mean_score(scores: Sequence[Estimate]) -> Estimate:
    """The mean of scores on different deals, which are independent of each other."""
    half = np.sqrt(sum((one.high - one.low) ** 2 for one in scores)) / 2 / len(scores)
    mean = float(np.mean([one.mean for one in scores]))
    return Estimate(mean, mean - float(half), mean + float(half))


def bench_parts() -> list[Part]:
    """All that is played; no deal comes against two anchors, so that their scores tell apart."""
    todo: list[Part] = []
    begin = 0
    for number, pairs in enumerate(ANCHORS.values(), 1):
        todo += parts([(0, number)], pairs, PART, begin)
        begin += pairs
    return todo


def run_benchmark(spec: str, workers: int = 1, backend: Backend = "local") -> Card:
    """Play the benchmark; the card does not depend on workers and backend.

    Raises:
        AgentError: the spec names no agent, or one that does not play ``classic``.
        OptionError: there is no such backend, or no worker.
    """
    digest, todo = digest_of(spec), bench_parts()
    setting = Setting((spec, *ANCHORS), RuleSet(), seed_of(spec, digest))
    setting = prepared(setting, workers, backend)
    matches = by_pairing(todo, dict(play_all(setting, todo, workers, backend)))
    score = mean_score([match.score for match in matches])
    forfeits = sum(forfeit.agent == spec for match in matches for forfeit in match.forfeits)
    cards = tuple(map(AnchorCard.of, matches))
    return Card(VERSION, spec, digest, __version__, score, forfeits, cards)


def seed_of(spec: str, digest: str) -> int:
    """Of the deals of an agent whose files have this digest."""
    text = f"{VERSION} {spec} {digest}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") % LEARNERS


def digest_of(spec: str) -> str:
    """SHA-256 of an agent's own files, hexadecimal: its package, and checkpoints it plays by.

    Raises:
        BenchmarkError: no files are found.
    """
    package = "agents" if is_ours(spec) else spec.partition(":")[0].partition(".")[0]
    found = importlib.util.find_spec(package) if package else None
    if found is None:
        raise BenchmarkError(f"agent {spec!r}: there is no package {package!r}")
    roots = [Path(place) for place in found.submodule_search_locations or [found.origin or ""]]
    files = [file for root in roots for file in _files(root)]
    if not files:
        raise BenchmarkError(f"agent {spec!r}: there are no files of {package!r}")
    if is_ours(spec):
        files += [("checkpoint", Path(path)) for path in files_of(make_agent(spec))]
    digest = hashlib.sha256()
    for name, file in files:
        digest.update(f"{name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _files(root: Path) -> list[tuple[str, Path]]:
    """The files of a package, with their names in it, or a module of one file."""
    if root.is_file():
        return [(root.name, root)]
    files = (file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return sorted((file.relative_to(root).as_posix(), file) for file in files)


def verify(path: Path, workers: int = 1, backend: Backend = "local") -> Card:
    """Play a card again.

    Raises:
        BenchmarkError: it is no card, or the agent's files or the results are others.
    """
    theirs = read_card(path)
    if digest_of(theirs.agent) != theirs.digest:
        raise BenchmarkError(f"{path}: the files of {theirs.agent} are not those of the card")
    card = run_benchmark(theirs.agent, workers, backend)
    ours = asdict(card)
    for key, value in asdict(theirs).items():
        if value != ours[key]:
            raise BenchmarkError(f"{path}: {key} is not what was played now: {ours[key]}")
    return card


def read_card(path: Path) -> Card:
    """What is in the file of a card.

    Raises:
        BenchmarkError: it is no card of this benchmark.
    """
    try:
        card = TypeAdapter(Card).validate_json(path.read_bytes())
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        what = " ".join([*map(str, first["loc"]), first["msg"]])
        raise BenchmarkError(f"{path} is no card of {VERSION}: {what}") from None
    if [(match.anchor, sum(match.pairs)) for match in card.matches] != list(ANCHORS.items()):
        raise BenchmarkError(f"{path} is no card of {VERSION}: its deals or anchors are others")
    return card


def leaderboard(paths: Iterable[Path]) -> list[str]:
    """A Markdown table of cards, the best first."""
    cards = sorted(map(read_card, paths), key=lambda card: -card.score.mean)
    rows = [
        [f"`{card.agent}`", f"**{card.score.short}**", *(m.score.short for m in card.matches)]
        for card in cards
    ]
    return markdown_table(["agent", "score", *(f"v `{anchor}`" for anchor in ANCHORS)], rows)


def print_card(card: Card) -> None:
    """The score against each anchor, and their mean, on the terminal."""
    table = Table(title=f"{card.agent}: {VERSION}", box=box.SIMPLE)
    for name in ("against", "deals", "won", "drawn", "lost", "score", "nElo"):
        table.add_column(name, justify="left" if name == "against" else "right")
    for match in card.matches:
        nelo = f"{Tally(match.pairs).nelo.mean:+.0f}"
        numbers = (sum(match.pairs), match.won, match.drawn, match.lost, match.score, nelo)
        table.add_row(escape(match.anchor), *map(str, numbers))
    table.add_section()
    table.add_row("mean", "", "", "", "", str(card.score), "")
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)
    if card.forfeits:
        print(f"It could not go on with {card.forfeits} games, which it lost.")


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.benchmark", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--agent", help=f"spec: package.module:Class, {', '.join(KNOWN)}")
    what.add_argument("--verify", type=Path, metavar="CARD", help="play a card again, and compare")
    what.add_argument(
        "--leaderboard", type=Path, nargs="+", metavar="CARD", help="a table of cards"
    )
    parser.add_argument("--out", type=Path, help="the card's file (default runs/AGENT.json)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--backend", choices=get_args(Backend), default="local")
    options = parser.parse_args(arguments)
    if options.leaderboard:
        print("\n".join(leaderboard(options.leaderboard)))
    elif options.verify:
        print_card(verify(options.verify, options.workers, options.backend))
        print(f"{options.verify} holds")
    else:
        out = options.out or Path("runs") / f"{re.sub(r'[^A-Za-z0-9=.]+', '-', options.agent)}.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        card = run_benchmark(options.agent, options.workers, options.backend)
        out.write_text(json.dumps(asdict(card), indent=2) + "\n", encoding="utf-8")
        print_card(card)
        print(f"card: {out}")


if __name__ == "__main__":
    sys.exit(main())
