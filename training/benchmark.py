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
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from tqdm import tqdm

from agents import make_agent
from agents.registry import KNOWN
from conquian_env import RuleSet, __version__
from conquian_env.errors import ConquianError
from training.backends import (
    Backend,
    Limits,
    Setting,
    check_backend,
    check_starts,
    is_ours,
    play_parts,
)
from training.command import command
from training.match import Estimate, MatchResult, join
from training.report import WIDE, markdown_table
from training.schedule import Part
from training.strength import Tally

VERSION = "conquian-bench-v1"
ANCHORS = {  # specs, and deals against each
    "random": 2000,
    "greedy": 5000,
    "expert": 5000,
    "ppo:baseline": 5000,
    "rollout:worlds=20": 500,
}
PART = 250  # deals played at a time
KEYS = ("benchmark", "agent", "digest", "version", "score", "forfeits", "matches")


class BenchmarkError(ConquianError):
    """A score card that cannot be read, or that does not hold."""


@dataclass(frozen=True)
class Card:
    """What an agent made of the benchmark.

    Attributes:
        agent: its spec.
        digest: of its files, hexadecimal.
        version: of this package.
        matches: against each anchor.
    """

    agent: str
    digest: str
    version: str
    matches: tuple[MatchResult, ...]

    @property
    def score(self) -> Estimate:
        """Mean of the scores against the anchors, each counting the same."""
        scores = [match.score for match in self.matches]
        half = np.sqrt(sum((one.high - one.low) ** 2 for one in scores)) / 2 / len(scores)
        mean = float(np.mean([one.mean for one in scores]))
        return Estimate(mean, mean - half, mean + half)

    @property
    def forfeits(self) -> int:
        """Games that the agent could not go on with."""
        return sum(forfeit.agent == self.agent for m in self.matches for forfeit in m.forfeits)

    def to_json(self) -> dict[str, Any]:
        """What is written, and compared by whoever checks it."""
        return {
            "benchmark": VERSION,
            "agent": self.agent,
            "digest": self.digest,
            "version": self.version,
            "score": asdict(self.score),
            "forfeits": self.forfeits,
            "matches": [_match(match) for match in self.matches],
        }


def _match(match: MatchResult) -> dict[str, Any]:
    return {
        "anchor": match.second,
        "pairs": list(Tally.of(match.payoff).counts),
        **asdict(match.score),
        "games": hashlib.sha256(match.payoff.astype("<f4").tobytes()).hexdigest(),
    }


def run_benchmark(
    spec: str, workers: int = 1, backend: Backend = "local", limits: Limits | None = None
) -> Card:
    """Play the benchmark; the card does not depend on workers and backend.

    Raises:
        AgentError: the spec names no agent, or one that does not play ``classic``.
        OptionError: there is no such backend, or no worker.
    """
    limits, rules, digest = limits or Limits(), RuleSet(), digest_of(spec)
    check_backend(workers, backend)
    check_starts(spec, rules, limits)
    setting = Setting((spec, *ANCHORS), rules, seed_of(spec, digest), 0, limits)
    todo = [
        Part(0, number, start, min(start + PART, pairs))
        for number, pairs in enumerate(ANCHORS.values(), 1)
        for start in range(0, pairs, PART)
    ]
    played: dict[Part, MatchResult] = {}
    with tqdm(total=2 * sum(ANCHORS.values()), unit=" games", unit_scale=True) as bar:
        for part, result in play_parts(setting, todo, workers, backend):
            played[part] = result
            bar.update(2 * (part.stop - part.start))
    matches = (
        join([played[part] for part in todo if part.second == number])
        for number in range(1, len(setting.specs))
    )
    return Card(spec, digest, __version__, tuple(matches))


def seed_of(spec: str, digest: str) -> int:
    """Of the deals of an agent whose files have this digest."""
    text = f"{VERSION} {spec} {digest}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=5).digest(), "little")


def digest_of(spec: str) -> str:
    """SHA-256 of an agent's own files, hexadecimal: its package and, if it has one, its checkpoint.

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
    path = getattr(make_agent(spec), "path", None) if is_ours(spec) else None
    digest = hashlib.sha256()
    for name, file in [*files, *([("checkpoint", Path(path))] if path else [])]:
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
    agent = theirs["agent"]
    if digest_of(agent) != theirs["digest"]:
        raise BenchmarkError(f"{path}: the files of {agent} are not those that were measured")
    card = run_benchmark(agent, workers, backend)
    ours = json.loads(json.dumps(card.to_json()))
    for key in theirs:
        if theirs[key] != ours.get(key):
            raise BenchmarkError(f"{path}: {key} is not what was played now: {ours.get(key)}")
    return card


def read_card(path: Path) -> dict[str, Any]:
    """What is in the file of a card.

    Raises:
        BenchmarkError: it is no card of this benchmark.
    """
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
        if card["benchmark"] != VERSION or set(card) != set(KEYS):
            raise BenchmarkError(f"{path} is no card of {VERSION}")
        return dict(card)
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise BenchmarkError(f"{path} is no score card: {error}") from None


def leaderboard(paths: Iterable[Path]) -> list[str]:
    """A Markdown table of cards, the best first."""
    cards = sorted(map(read_card, paths), key=lambda card: -float(card["score"]["mean"]))
    rows = [
        [
            f"`{card['agent']}`",
            f"**{Estimate(**card['score']).short}**",
            *(Estimate(*(m[k] for k in ("mean", "low", "high"))).short for m in card["matches"]),
        ]
        for card in cards
    ]
    return markdown_table(["agent", "score", *(f"v `{anchor}`" for anchor in ANCHORS)], rows)


def print_card(card: Card) -> None:
    """The score against each anchor, and their mean, on the terminal."""
    table = Table(title=f"{card.agent}: {VERSION}", box=box.SIMPLE)
    for name in ("against", "deals", "won", "drawn", "lost", "score", "nElo"):
        table.add_column(name, justify="left" if name == "against" else "right")
    for match in card.matches:
        nelo = f"{Tally.of(match.payoff).nelo.mean:+.0f}"
        numbers = (len(match.payoff), *match.counts, match.score, nelo)
        table.add_row(escape(match.second), *map(str, numbers))
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
        out.write_text(json.dumps(card.to_json(), indent=2) + "\n", encoding="utf-8")
        print_card(card)
        print(f"card: {out}")


if __name__ == "__main__":
    sys.exit(main())
