"""A score card that others can check: ``python -m training.benchmark --agent package:Class``.

The agent meets frozen anchors on fixed numbers of deals. Which deals comes from a hash of the
benchmark's version and the agent's own files: deals that everybody knew could be learnt by heart,
for ten own cards name the deal. ``--verify card.json`` plays a card again and compares.
"""

import argparse
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, get_args
from urllib.parse import quote

import numpy as np
from pydantic import AfterValidator, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agents.registry import KNOWN
from conquian_env import RuleSet, __version__
from conquian_env.errors import ConquianError
from conquian_env.record import write_whole
from conquian_env.seeds import LEARNERS
from training.backends import Backend, Setting, by_pairing, play_all, prepared
from training.command import command
from training.digests import digest_of
from training.match import Estimate, MatchResult
from training.schedule import Part, parts
from training.strength import Tally
from training.tables import WIDE, forfeit_notes, markdown_table
from training.toml import STRICT, first_fault

VERSION: Literal["conquian-bench-v1"] = "conquian-bench-v1"
ANCHORS = {  # specs, and deals against each
    "random": 2000,
    "greedy": 5000,
    "expert": 5000,
    "ppo:baseline": 5000,
    "rollout:worlds=20": 500,
}
PART = 250  # deals played at a time
SLOW = {"rollout:worlds=20": 25}  # or so many, so that workers end together


def _printable(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError("a printable line is wanted")
    return text


Line = Annotated[str, AfterValidator(_printable)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Number = Annotated[int, Field(ge=0, le=10**9)]


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

    anchor: Line
    score: Estimate
    pairs: Annotated[tuple[Number, ...], Field(min_length=5, max_length=5)]
    won: Number
    drawn: Number
    lost: Number
    games: Digest

    def __post_init__(self) -> None:
        """Refuse what no games can have come to."""
        tally = Tally(self.pairs)
        payoff = int(np.dot(tally.counts, tally.values))
        games = self.won + self.drawn + self.lost
        if games != 2 * tally.pairs or self.won - self.lost != payoff:
            raise ValueError("games won, drawn and lost are not those of the pairs")
        if not _alike(self.score, tally.score):
            raise ValueError(f"the score of the pairs is {tally.score}")

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
    agent: Line
    digest: Digest
    version: Line
    score: Estimate
    forfeits: Number
    matches: Annotated[tuple[AnchorCard, ...], Field(min_length=1)]

    def __post_init__(self) -> None:
        """Refuse a score or forfeits that the matches do not have."""
        score = mean_score([match.score for match in self.matches])
        if not _alike(self.score, score):
            raise ValueError(f"the score of the matches is {score}")
        if self.forfeits > sum(match.lost for match in self.matches):
            raise ValueError("there are more games forfeited than lost")


def _alike(one: Estimate, other: Estimate) -> bool:
    """But for what another machine may round otherwise."""
    return all(
        math.isclose(a, b, abs_tol=1e-9)
        for a, b in zip(asdict(one).values(), asdict(other).values(), strict=True)
    )


def mean_score(scores: Sequence[Estimate]) -> Estimate:
    """The mean of scores on different deals, which are independent of each other."""
    half = np.sqrt(sum((one.high - one.low) ** 2 for one in scores)) / 2 / len(scores)
    mean = float(np.mean([one.mean for one in scores]))
    return Estimate(mean, mean - float(half), mean + float(half))


def bench_parts() -> list[Part]:
    """All that is played, the slow first, so that no worker is left alone with it at the end.

    No deal comes against two anchors, so that their scores tell apart.
    """
    todo: list[Part] = []
    begin = 0
    for number, (anchor, pairs) in enumerate(ANCHORS.items(), 1):
        todo += parts([(0, number)], pairs, SLOW.get(anchor, PART), begin)
        begin += pairs
    names = list(ANCHORS)
    return sorted(todo, key=lambda part: names[part.second - 1] not in SLOW)


def run_benchmark(spec: str, workers: int = 1, backend: Backend = "local") -> Card:
    """Play the benchmark; the card does not depend on workers and backend.

    Raises:
        AgentError: the spec names no agent, or one that does not play ``classic``.
        BenchmarkError: the agent changed its own files.
        DigestError: the files of the agent cannot be told.
        OptionError: there is no such backend, or no worker.
        WorkerError: a worker was killed.
    """
    digest = digest_of(spec)
    return card_of(spec, digest, play_benchmark(spec, digest, workers, backend))


def play_benchmark(
    spec: str, digest: str, workers: int, backend: Backend
) -> tuple[MatchResult, ...]:
    """The games against each anchor, of an agent whose files have this digest."""
    setting = Setting((spec, *ANCHORS), RuleSet(), seed_of(spec, digest))
    setting, todo = prepared(setting, workers, backend), bench_parts()
    return by_pairing(sorted(todo), dict(play_all(setting, todo, workers, backend)))


def card_of(spec: str, digest: str, matches: Sequence[MatchResult]) -> Card:
    """The card of what was played.

    Raises:
        BenchmarkError: the agent's files have another digest by now.
    """
    if digest_of(spec) != digest:
        raise BenchmarkError(
            f"agent {spec!r}: its files were changed while it played, by itself perhaps, so that "
            "nobody could check its card"
        )
    score = mean_score([match.score for match in matches])
    forfeits = sum(forfeit.agent == spec for match in matches for forfeit in match.forfeits)
    cards = tuple(map(AnchorCard.of, matches))
    return Card(VERSION, spec, digest, __version__, score, forfeits, cards)


def write_card(
    spec: str, out: Path, overwrite: bool, workers: int = 1, backend: Backend = "local"
) -> None:
    """Play the benchmark, print the card, and write it.

    Raises:
        BenchmarkError: there is a card in the way.
        ConquianError: as ``run_benchmark``.
        OSError: nothing can be written there; before the games, if that can be told.
    """
    _check_free(out, overwrite)
    digest = digest_of(spec)
    matches = play_benchmark(spec, digest, workers, backend)
    card = card_of(spec, digest, matches)
    print_card(card)
    for note in forfeit_notes([spec], [one for match in matches for one in match.forfeits]):
        print(note)
    text = json.dumps(asdict(card), indent=2) + "\n"
    try:
        write_whole(out, [text])
    except OSError as error:
        print(text)  # minutes of games are in it
        raise BenchmarkError(f"{out}: {error.strerror}; the card is printed above") from None
    print(f"card: {out}")


def _check_free(out: Path, overwrite: bool) -> None:
    """Try to write a file beside it."""
    if out.is_dir():
        raise BenchmarkError(f"{out} is a folder")
    if out.exists() and not overwrite:
        raise BenchmarkError(f"{out} exists: give another --out, or --overwrite")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=out.parent) as file:
        file.write(b"card")


def default_out(spec: str) -> Path:
    """Where the card of a spec goes: no two specs have the same file."""
    name = quote(spec, safe="=,:").replace("-", "%2D").replace(":", "-")
    return Path("runs") / f"{name}.json"


def seed_of(spec: str, digest: str) -> int:
    """Of the deals of an agent whose files have this digest."""
    text = f"{VERSION} {spec} {digest}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") % LEARNERS


def verify(path: Path, workers: int = 1, backend: Backend = "local") -> Card:
    """Play a card again.

    Raises:
        BenchmarkError: it is no card, or the agent's files or the results are others.
        ConquianError: as ``run_benchmark``.
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
        card = TypeAdapter(Card).validate_json(path.read_bytes(), strict=True)
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise BenchmarkError(f"{path} is no card of {VERSION}: {first_fault(error)}") from None
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
    table = Table(
        title=escape(f"{card.agent}: {VERSION}"),
        box=box.SIMPLE,
        caption=f"It could not go on with {card.forfeits} games." if card.forfeits else None,
    )
    for name in ("against", "games", "won", "drawn", "lost", "score", "nElo"):
        table.add_column(name, justify="left" if name == "against" else "right")
    for match in card.matches:
        nelo = f"{Tally(match.pairs).nelo.mean:+.0f}"
        numbers = (2 * sum(match.pairs), match.won, match.drawn, match.lost, match.score, nelo)
        table.add_row(escape(match.anchor), *map(str, numbers))
    table.add_section()
    table.add_row("mean", "", "", "", "", str(card.score), "")
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


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
    parser.add_argument("--overwrite", action="store_true", help="replace the card in --out")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--backend", choices=get_args(Backend), default="local")
    options = parser.parse_args(arguments)
    if options.leaderboard:
        print("\n".join(leaderboard(options.leaderboard)))
    elif options.verify:
        print_card(verify(options.verify, options.workers, options.backend))
        print(f"{options.verify} holds")
    else:
        out = options.out or default_out(options.agent)
        write_card(options.agent, out, options.overwrite, options.workers, options.backend)


if __name__ == "__main__":
    sys.exit(main())
