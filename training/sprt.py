"""Whether one agent is stronger than another: ``python -m training.sprt ppo:new.pt ppo:old.pt``.

Mirrored deals are played until the sequential probability ratio test accepts a hypothesis (see
``training.strength.Sprt``), which takes a fraction of the deals that a fixed number would.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args

from conquian_env.errors import SeedError
from conquian_env.rules import rule_set
from conquian_env.seeds import LEARNERS
from training.backends import Backend, Setting, play_parts, prepared
from training.command import command
from training.match import Forfeit, MatchResult, check_pairs
from training.schedule import Part, parts
from training.strength import Sprt, Tally, Verdict
from training.tables import forfeit_notes

MEANING = {
    "H0 accepted": "nearer to {0.nelo0:g} normalised Elo, or below it, than to {0.nelo1:g}",
    "H1 accepted": "nearer to {0.nelo1:g} normalised Elo, or beyond it, than to {0.nelo0:g}",
    "go on": "the deals ran out before the test could tell",
}


@dataclass(frozen=True)
class SprtResult:
    """How a test stands.

    Attributes:
        tally: of all that was played.
        llr: the log likelihood ratio.
        verdict: ``go on`` if the deals ran out before there was one.
        forfeits: of all games.
    """

    tally: Tally
    llr: float
    verdict: Verdict
    forfeits: tuple[Forfeit, ...] = ()


def play_sprt(
    setting: Setting,
    sprt: Sprt,
    most: int,
    size: int = 200,
    workers: int = 1,
    backend: Backend = "local",
) -> Iterator[SprtResult]:
    """Play two agents, and give the state of the test after every part until it ends.

    Args:
        setting: the two agents, rules and seed, ``prepared``.
        sprt: the hypotheses.
        most: deals, after which it ends without a verdict.
        size: deals of a part; the test looks at the results after each, in their order, so what
            it says does not depend on workers and backend.
        workers: processes.
        backend: where they are.
    """
    todo = parts([(0, 1)], most, size)
    tally, forfeits = None, tuple[Forfeit, ...]()
    for _, result in in_order(todo, play_parts(setting, todo, workers, backend)):
        played = Tally.of(result.payoff)
        tally = played if tally is None else tally + played
        llr = sprt.llr(tally)
        forfeits += result.forfeits
        state = SprtResult(tally, llr, sprt.verdict(llr), forfeits)
        yield state
        if state.verdict != "go on":
            break


def in_order(
    todo: Iterable[Part], results: Iterator[tuple[Part, MatchResult]]
) -> Iterator[tuple[Part, MatchResult]]:
    """Results as they come, held back until those before them are there."""
    early: dict[Part, MatchResult] = {}
    for part in todo:
        while part not in early:
            early.update([next(results)])
        yield part, early.pop(part)


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.sprt", description=__doc__)
    parser.add_argument("first", help="spec of the agent that may be stronger")
    parser.add_argument("second", help="spec of the other")
    parser.add_argument("--nelo0", type=float, default=0.0, help="H0 (default %(default)s)")
    parser.add_argument("--nelo1", type=float, default=10.0, help="H1 (default %(default)s)")
    parser.add_argument("--alpha", type=float, default=0.05, help="of a false H1 (%(default)s)")
    parser.add_argument("--beta", type=float, default=0.05, help="of a false H0 (%(default)s)")
    parser.add_argument(
        "--rules", default="classic", help="preset, or nano,force=off (%(default)s)"
    )
    parser.add_argument("--pairs", type=int, default=100_000, help="deals at most (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of deals and agents (%(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--backend", choices=get_args(Backend), default="local")
    options = parser.parse_args(arguments)
    sprt = Sprt(options.nelo0, options.nelo1, options.alpha, options.beta)
    check_pairs(options.pairs)
    if not 0 <= options.seed < LEARNERS:
        raise SeedError(f"seed must be 0 to {LEARNERS - 1}, not {options.seed}")
    setting = Setting((options.first, options.second), rule_set(options.rules), options.seed)
    setting = prepared(setting, options.workers, options.backend)
    for state in play_sprt(
        setting, sprt, options.pairs, workers=options.workers, backend=options.backend
    ):
        print(f"\r{_line(state, sprt)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{options.first} v {options.second}: {_line(state, sprt)}")
    print(f"{state.verdict}: {MEANING[state.verdict].format(sprt)}")
    for note in forfeit_notes(setting.specs, state.forfeits):
        print(note)


def _line(state: SprtResult, sprt: Sprt) -> str:
    low, high = sprt.bounds
    return f"{state.tally}, LLR {state.llr:+.2f} [{low:+.2f}, {high:+.2f}]"


if __name__ == "__main__":
    sys.exit(main())
