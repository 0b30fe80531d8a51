"""A round robin: ``python -m training.tournament random greedy ppo:runs/demo/policy.pt``."""

import argparse
import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from agents import Agent, make_agent
from agents.agent import AgentError
from agents.registry import KNOWN
from conquian_env import RuleSet
from conquian_env.deal import seed_bits
from conquian_env.errors import ConquianError, OptionError
from training.config import load_config
from training.match import Estimate, MatchResult, check_plays, estimate, play_match
from training.report import print_report, write_report


@dataclass(frozen=True)
class Tournament:
    """Every pair of agents on the same deals.

    Attributes:
        agents: specs, in the order given.
        matches: one for each pair, the first agent being the earlier one.
    """

    rules: RuleSet
    seed: int
    pairs: int
    agents: tuple[str, ...]
    matches: tuple[MatchResult, ...]

    def against(self, agent: str, other: str) -> Estimate:
        """Score of ``agent`` against ``other``."""
        return estimate(self._pair_scores(agent, other))

    def overall(self, agent: str) -> Estimate:
        """Mean score of ``agent`` against all others, bootstrapped over the deals they shared."""
        others = [other for other in self.agents if other != agent]
        return estimate(np.mean([self._pair_scores(agent, other) for other in others], axis=0))

    def ranking(self) -> list[str]:
        """Agents by overall score, the best first."""
        return sorted(self.agents, key=lambda agent: -self.overall(agent).mean)

    def _pair_scores(self, agent: str, other: str) -> np.ndarray:
        for match in self.matches:
            if (match.first, match.second) == (agent, other):
                return match.pair_scores
            if (match.first, match.second) == (other, agent):
                return -match.pair_scores
        raise AgentError(f"{agent} and {other} did not meet")


def play_tournament(specs: list[str], rules: RuleSet, pairs: int, seed: int) -> Tournament:
    """Play a round robin of at least two different agents.

    Raises:
        AgentError: a spec names no agent, comes twice, or its agent broke the protocol.
        OptionError, SeedError: pairs or seed are out of range.
    """
    if len(specs) < 2:
        raise AgentError("a tournament needs at least two agents")
    for spec in specs:
        if specs.count(spec) > 1:
            raise AgentError(f"agent {spec!r} comes twice")
    if pairs < 2:
        raise OptionError(f"pairs must be at least 2 for an interval, not {pairs}")
    seed_bits(seed)
    agents: dict[str, Agent] = {spec: make_agent(spec) for spec in specs}
    for spec, agent in agents.items():
        check_plays(spec, agent, rules)
    with tqdm(list(itertools.combinations(specs, 2)), unit=" match") as pairings:
        matches = [
            play_match((first, agents[first]), (second, agents[second]), rules, pairs, seed)
            for first, second in pairings
        ]
    return Tournament(rules, seed, pairs, tuple(specs), tuple(matches))


def _rules(text: str) -> RuleSet:
    """A preset, or the rules of a run's TOML file."""
    return load_config(Path(text)).rule_set if text.endswith(".toml") else RuleSet.preset(text)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.tournament", description=__doc__)
    parser.add_argument(
        "agents",
        nargs="+",
        help=f"specs: {', '.join(KNOWN)} with options as in rollout:worlds=20, ppo:PATH, "
        "package.module:Class",
    )
    parser.add_argument(
        "--rules", default="classic", help="preset, or a run's TOML file (default %(default)s)"
    )
    parser.add_argument(
        "--pairs", type=int, default=2000, help="deals, each played twice (%(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of deals and agents (default %(default)s)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("runs/tournament"),
        help="folder for the report, which takes the place of an older one (default %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        rules = _rules(options.rules)
        options.out.mkdir(parents=True, exist_ok=True)  # if it cannot be, before the games
        tournament = play_tournament(options.agents, rules, options.pairs, options.seed)
        paths = write_report(tournament, options.out)
    except (ConquianError, OSError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print_report(tournament)
    for path in paths:
        print(f"report: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
