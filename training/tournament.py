"""A tournament: ``python -m training.tournament random greedy ppo:runs/demo/policy.pt``.

The road: pairings → parts → games → ledger → results → report. Who plays and how comes from the
command line, or from a TOML file: ``python -m training.tournament configs/tournament.toml``.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as strict
from tqdm import tqdm

from agents.agent import AgentError
from agents.registry import KNOWN, make_agent
from conquian_env import RuleSet, __version__
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
from training.ledger import Ledger, LedgerError
from training.match import Estimate, MatchResult, estimate, join
from training.ratings import Pairing, Ratings, rate
from training.report import print_report, write_curves, write_report
from training.schedule import Format, Part, pairings, parts
from training.toml import STRICT, Count, Rules, checked, load_toml, rules_of

LEDGER = "ledger.jsonl"


@strict(frozen=True, config=STRICT)
class TournamentConfig:
    """What is played.

    Attributes:
        agents: specs, at least two different ones.
        rules: the name of a preset, or a table of rule fields.
        format: ``round-robin``, ``gauntlet`` (the first agent meets all others) or ``ladder``
            (each meets its neighbours in the list).
        rungs: how far away a neighbour may be.
        pairs: deals of each pairing, each played twice with the seats swapped.
        seed: of deals and agents; those from 2**40 on are the learner's.
        part: deals that are played at a time; what a broken tournament loses at most.
        records: deals of each pairing whose games are recorded.
        anchor: the agent whose rating is 0; the first one if none is named.
        limits: of agents outside this project, which play in processes of their own.
    """

    agents: tuple[str, ...]
    rules: Rules = "classic"
    format: Format = "round-robin"
    rungs: Count = 1
    pairs: Annotated[int, Field(ge=2)] = 2000
    seed: Annotated[int, Field(ge=0, lt=1 << 40)] = 1
    part: Count = 1000
    records: Annotated[int, Field(ge=0)] = 1
    anchor: str = ""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse agents that cannot meet."""
        if len(self.agents) < 2:
            raise AgentError("a tournament needs at least two agents")
        for spec in self.agents:
            if self.agents.count(spec) > 1:
                raise AgentError(f"agent {spec!r} comes twice")
        if self.anchor and self.anchor not in self.agents:
            raise AgentError(f"the anchor {self.anchor!r} is none of the agents")

    @property
    def rule_set(self) -> RuleSet:
        """The rules that are played."""
        return rules_of(self.rules)


@dataclass(frozen=True)
class Tournament:
    """All games of a tournament.

    Attributes:
        matches: one for each pairing, the first agent being the earlier one.
    """

    config: TournamentConfig
    matches: tuple[MatchResult, ...]

    @cached_property
    def ratings(self) -> Ratings:
        """Ratings, payoffs and the mixture of agents."""
        anchor = self.config.anchor or self.config.agents[0]
        return rate(self.config.agents, [Pairing.of(match) for match in self.matches], anchor)

    @property
    def ranking(self) -> tuple[str, ...]:
        """Agents by rating, the best first."""
        return self.ratings.agents

    def overall(self, agent: str) -> Estimate:
        """Mean score of ``agent`` against all it met, bootstrapped over the deals they shared."""
        return estimate(self.deal_scores(agent))

    def deal_scores(self, agent: str) -> NDArray[np.float32]:
        """Mean score of ``agent`` on each deal against all it met, float32 [pairs]."""
        scores = [sign * match.pair_scores for _, match, sign in self.met(agent)]
        means: NDArray[np.float32] = np.mean(scores, axis=0)
        return means

    def forfeits(self, agent: str) -> dict[str, int]:
        """How many games an agent could not go on with, by the kind of its fault."""
        kinds = [f.kind for match in self.matches for f in match.forfeits if f.agent == agent]
        return {kind: kinds.count(kind) for kind in sorted(set(kinds))}

    def met(self, agent: str) -> Iterator[tuple[str, MatchResult, int]]:
        """Whom an agent met, the match, and 1, or -1 where the agent is the match's second."""
        for match in self.matches:
            if agent in (match.first, match.second):
                first = agent == match.first
                yield (match.second if first else match.first), match, 1 if first else -1


def play_tournament(
    config: TournamentConfig,
    out: Path,
    workers: int = 1,
    backend: Backend = "local",
    resume: bool = False,
    overwrite: bool = False,
) -> Tournament:
    """Play what has not been played yet; the results do not depend on workers and backend.

    Args:
        config: what is played.
        out: folder of the ledger, in which each part is noted when it is over.
        workers: processes.
        backend: where they are.
        resume: go on with the tournament in ``out``.
        overwrite: replace the tournament in ``out``.

    Raises:
        AgentError: a spec names no agent, or its agent plays other rules.
        LedgerError: the tournament in ``out`` is another one, or there is one in the way.
        OptionError: there is no such backend, or no worker.
    """
    check_backend(workers, backend)
    out.mkdir(parents=True, exist_ok=True)
    for spec in config.agents:
        check_starts(spec, config.rule_set, config.limits)
    path = out / LEDGER
    if path.exists() and overwrite:
        path.unlink()
    if path.exists() and not resume:
        raise LedgerError(f"{path} exists: give another --out, --resume or --overwrite")
    ledger = Ledger(path, _head(config))
    meetings = pairings(config.format, len(config.agents), config.rungs)
    todo = parts(meetings, config.pairs, config.part)
    _play(config, ledger, [part for part in todo if part not in ledger.played], workers, backend)
    matches = (
        join([ledger.played[part] for part in todo if part[:2] == meeting]) for meeting in meetings
    )
    return Tournament(config, tuple(matches))


def _play(
    config: TournamentConfig, ledger: Ledger, todo: list[Part], workers: int, backend: Backend
) -> None:
    setting = Setting(config.agents, config.rule_set, config.seed, config.records, config.limits)
    done = sum(part.stop - part.start for part in ledger.played)
    left = sum(part.stop - part.start for part in todo)
    with tqdm(total=2 * (done + left), initial=2 * done, unit=" games", unit_scale=True) as bar:
        for part, result in play_parts(setting, todo, workers, backend):
            ledger.add(part, result)
            bar.update(2 * (part.stop - part.start))


def _head(config: TournamentConfig) -> dict[str, Any]:
    """What a ledger is of: all that its results depend on, as JSON has it."""
    paths = {
        spec: getattr(make_agent(spec), "path", None) for spec in config.agents if is_ours(spec)
    }
    files = {spec: _digest(Path(path)) for spec, path in paths.items() if path}
    values = asdict(config) | {"rules": config.rule_set.to_dict()}
    head: dict[str, Any] = json.loads(
        json.dumps({"version": __version__, **values, "files": files})
    )
    return head


def _digest(path: Path) -> str:
    """Of a checkpoint, which may change while its path stays the same."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _config(options: argparse.Namespace) -> TournamentConfig:
    """From the TOML file, or from the command line."""
    names = ("rules", "format", "pairs", "seed", "part", "anchor", "records")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if str(given.get("rules", "")).endswith(".toml"):
        given["rules"] = load_toml(Path(given["rules"])).get("rules", "classic")
    path = options.agents[0]
    if len(options.agents) == 1 and path.endswith(".toml"):
        return checked(load_toml(Path(path)) | given, TournamentConfig, path)
    return checked({"agents": options.agents, **given}, TournamentConfig, "arguments")


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.tournament", description=__doc__)
    parser.add_argument(
        "agents",
        nargs="+",
        help=f"a TOML file, or specs: {', '.join(KNOWN)} with options as in rollout:worlds=20, "
        "ppo:PATH, package.module:Class",
    )
    parser.add_argument("--rules", help="preset, or a run's TOML file (default classic)")
    parser.add_argument("--format", choices=get_args(Format), help="default round-robin")
    parser.add_argument("--pairs", type=int, help="deals, each played twice (default 2000)")
    parser.add_argument("--seed", type=int, help="of deals and agents (default 1)")
    parser.add_argument("--part", type=int, help="deals played at a time (default 1000)")
    parser.add_argument("--anchor", help="agent whose rating is 0 (default the first)")
    parser.add_argument("--records", type=int, help="recorded deals of a pairing (default 1)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--backend", choices=get_args(Backend), default="local")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/tournament"), help="folder (default %(default)s)"
    )
    parser.add_argument("--tensorboard", action="store_true", help="write curves, too")
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--resume", action="store_true", help="go on with the tournament in --out")
    earlier.add_argument("--overwrite", action="store_true", help="replace the one in --out")
    options = parser.parse_args(arguments)
    tournament = play_tournament(
        _config(options), options.out, options.workers, options.backend, options.resume,
        options.overwrite,
    )  # fmt: skip
    paths = write_report(tournament, options.out)
    paths += [write_curves(tournament, options.out)] if options.tensorboard else []
    print_report(tournament)
    for path in paths:
        print(f"report: {path}")


if __name__ == "__main__":
    sys.exit(main())
