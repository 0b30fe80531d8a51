"""How much of a match is the deals, and how many games knowing that saves.

``python -m training.luck greedy random`` plays one match twice as calibration and measurement. The
value of a deal with best play and all cards known says whom the cards favour, so what it explains
of a result can be taken out (a control variate). How much of it to take out is fitted on the
calibration's deals alone, before the others are looked at.

In single games the value itself is taken out, whose mean over both seats is 0 by definition. Over
mirrored deals it cancels; there it is whether the deal favours anyone, less the share of deals that
do, which is counted on deals that are played by nobody.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents import make_agent
from conquian_env import Batch, RuleSet
from conquian_env.errors import OptionError
from conquian_env.rules import rule_set
from conquian_env.seeds import deal_seeds, derive
from conquian_env.solver import UNKNOWN, Solver
from training.command import command
from training.match import play_match
from training.tables import markdown_table

SPARE = 10  # deals that are only solved, for each that is played


@dataclass(frozen=True)
class Saving:
    """A way to score a match.

    Attributes:
        name: what it is.
        mean: the score of the first agent.
        error: its standard error.
        games: how many games give the error of one deal's pair, relative to single games.
    """

    name: str
    mean: float
    error: float
    games: float


def deal_values(rules: RuleSet, seeds: NDArray[np.uint64]) -> NDArray[np.int8]:
    """Seat 0's value of deal 0 of each seed with best play, all cards known: int8 [n], -1 to 1.

    Raises:
        OptionError: the rules have no such values (``draw="double"``, exchange).
    """
    if rules.exchange:
        raise OptionError("exchange: the gifts are chosen unseen, a deal has no such value")
    values, _ = Solver(rules).action_values(Batch(len(seeds), rules, seeds).states())
    best: NDArray[np.int8] = np.where(values == UNKNOWN, -2, values).max(axis=1)  # seat 0 acts
    return np.maximum(best, -1)


def slope(results: NDArray[np.float64], known: NDArray[np.float64]) -> float:
    """What to take out of a result for each unit of what is known of its deal."""
    spread = float(np.var(known))
    return float(np.cov(results, known, bias=True)[0, 1]) / spread if spread else 0.0


def savings(first: str, second: str, rules: RuleSet, pairs: int, seed: int) -> list[Saving]:
    """Four ways to score the same match, single games first.

    Raises:
        AgentError, OptionError, SeedError: an argument is out of range, or an agent failed.
    """
    agents = (first, make_agent(first)), (second, make_agent(second))
    calibration, own = (int(s) for s in derive("luck", seed, np.arange(2), np.zeros(2, np.int64)))
    payoffs, values = [], []
    for match_seed in (calibration, own):
        payoffs.append(play_match(*agents, rules, pairs, match_seed).payoff.astype(np.float64))
        values.append(deal_values(rules, deal_seeds(match_seed, np.arange(pairs))))
    spare = deal_values(rules, deal_seeds(calibration, np.arange(pairs, (1 + SPARE) * pairs)))
    # A single game: the first agent in either seat of a deal, by turns.
    seats = np.arange(pairs) % 2
    singles = [payoff[np.arange(pairs), seats] for payoff in payoffs]
    favour = [np.where(seats == 0, value, -value).astype(np.float64) for value in values]
    mirrored = [payoff.mean(axis=1) for payoff in payoffs]
    decided = [np.abs(value) - float(np.abs(spare).mean()) for value in values]
    scores = {
        "single games": singles[1],
        "single games, value taken out": singles[1] - slope(singles[0], favour[0]) * favour[1],
        "mirrored deals": mirrored[1],
        "mirrored deals, decided or not taken out": (
            mirrored[1] - slope(mirrored[0], decided[0]) * decided[1]
        ),
    }
    plain = float(np.var(singles[1]))
    return [
        Saving(
            name,
            float(score.mean()),
            float(score.std() / np.sqrt(pairs)),
            (2 if name.startswith("mirrored") else 1) * float(np.var(score)) / plain,
        )
        for name, score in scores.items()
    ]


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.luck", description=__doc__)
    parser.add_argument("agents", nargs=2, help="specs")
    parser.add_argument("--rules", default="classic", help="preset (classic)")
    parser.add_argument("--pairs", type=int, default=2000, help="deals, each played twice (2000)")
    parser.add_argument("--seed", type=int, default=1, help="of deals and agents (1)")
    options = parser.parse_args(arguments)
    rules = rule_set(options.rules)
    found = savings(options.agents[0], options.agents[1], rules, options.pairs, options.seed)
    print(f"{options.agents[0]} against {options.agents[1]}, {options.pairs} deals")
    header = ["scored by", "score", "standard error", "games for the same error"]
    rows = [[w.name, f"{w.mean:+.3f}", f"{w.error:.4f}", f"{w.games:.2f}"] for w in found]
    print("\n".join(markdown_table(header, rows)))


if __name__ == "__main__":
    sys.exit(main())
