"""A tournament: ``python -m training.tournament random greedy ppo:runs/demo/policy.pt``.

The road: pairings → parts → games → ledger → results → report. Who plays and how comes from the
command line, or from a TOML file: ``python -m training.tournament configs/tournament.toml``.
"""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

from agents.registry import KNOWN
from conquian_env import __version__
from training.backends import Backend, Setting, by_pairing, is_ours, play_all, prepared
from training.command import command
from training.digests import digest_of
from training.ledger import Ledger, LedgerError
from training.lock import holding
from training.report import print_report, write_curves, write_report
from training.results import Tournament, TournamentConfig
from training.schedule import Format, pairings, parts
from training.toml import checked, load_toml

LEDGER = "ledger.jsonl"


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
        DigestError: the files of an agent cannot be told.
        LedgerError: the tournament in ``out`` is another one, or there is one in the way.
        LockError: another process plays into ``out``.
        OptionError: there is no such backend, or no worker, or there are too many parts.
        WorkerError: a worker was killed.
    """
    meetings = pairings(config.format, len(config.agents), config.rungs)
    todo = parts(meetings, config.pairs, config.part)
    setting = Setting(config.agents, config.rule_set, config.seed, config.records, config.limits)
    setting = prepared(setting, workers, backend)
    content, path = _content(config, setting), out / LEDGER
    with holding(out):
        if path.exists() and overwrite:
            path.unlink()
        if path.exists() and not resume:
            raise LedgerError(f"{path} exists: give another --out, --resume or --overwrite")
        ledger = Ledger(path, content, setting, todo)
        left = [part for part in todo if part not in ledger.played]
        done = sum(part.stop - part.start for part in ledger.played)
        for part, result in play_all(setting, left, workers, backend, done):
            ledger.add(part, result)
    return Tournament(config, by_pairing(todo, ledger.played))


def _content(config: TournamentConfig, setting: Setting) -> dict[str, Any]:
    """What a ledger is of: all that its results depend on, as JSON has it."""
    values = asdict(config) | {"rules": setting.rules.to_dict()}
    values["checkpoints"] = [digest for _, digest in setting.files]  # wherever they lie by now
    values["code"] = {spec: digest_of(spec) for spec in config.agents if not is_ours(spec)}
    del values["anchor"]  # which changes no game
    content: dict[str, Any] = json.loads(json.dumps({"version": __version__, **values}))
    return content


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
