"""Exact game theory on small decks: equilibria by CFR+, best responses, NashConv of any agent.

``python -m training.exact nano --agents random greedy`` prints the size of a game, its value, and
how much a best response would win against each agent. A *strategy* gives each sequence (see
``sequence_form``) the probability of its action, a *plan* that of all its owner's actions up to it.
"""

import argparse
import resource
import sys
import time

import numpy as np
from numpy.typing import NDArray

from agents import Agent, make_agent
from conquian_env.deal import WORD
from conquian_env.jit import jit
from conquian_env.rules import rule_set
from conquian_env.seeds import derive
from conquian_env.view import views_of
from training.command import command
from training.match import ask_probabilities, check_plays
from training.sequence_form import Found, SequenceForm, sequence_form

Floats = NDArray[np.float64]
Strategy = tuple[Floats, Floats]  # by seat, [sequences]


def uniform_strategy(form: SequenceForm) -> Strategy:
    """Every action of an information state is equally likely."""
    one, other = (_normal(form.first[s], np.ones(len(form.action[s]))) for s in range(2))
    return one, other


def random_strategy(form: SequenceForm, seed: int) -> Strategy:
    """Probabilities drawn anew for every information state, uniform on the simplex."""
    rng = np.random.default_rng(seed)
    one, other = (
        _normal(form.first[s], rng.exponential(size=len(form.action[s]))) for s in range(2)
    )
    return one, other


def agent_strategy(
    form: SequenceForm, agent: Agent, name: str = "agent", seed: int = 0
) -> Strategy:
    """What an agent does in every information state.

    Its ``probabilities`` are asked for; an agent without them is asked to ``act``, with a seed
    hashed from ``seed`` and what its seat has seen.

    Raises:
        AgentError: the agent cannot play these rules, or its answer is no strategy.
    """
    check_plays(name, agent, form.rules)
    strategy = np.ones_like(form.action[0], np.float64), np.ones_like(form.action[1], np.float64)
    filled = [0, 0]

    def visit(found: Found) -> None:
        seeds = derive("exact", seed, found.keys & WORD, found.keys >> 32 & WORD)
        views = views_of(found.rows, form.rules, seeds)
        probabilities = ask_probabilities(name, agent, views)
        for seat in range(2):
            rows = np.flatnonzero(found.seats == seat)
            states = slice(filled[seat], filled[seat] + len(rows))
            filled[seat] = states.stop
            ends = form.first[seat][states.start : states.stop + 1]
            row = np.repeat(rows, np.diff(ends))
            sequences = slice(ends[0], ends[-1])
            strategy[seat][sequences] = probabilities[row, form.action[seat][sequences]]

    sequence_form(form.rules, visit)
    return strategy


# --- measuring ---


def value(form: SequenceForm, strategy: Strategy) -> float:
    """What seat 0 wins on average."""
    return float((form.win_value * _reached(form, strategy)).sum())


def draw_rate(form: SequenceForm, strategy: Strategy) -> float:
    """How often nobody wins."""
    return float(1 - (np.abs(form.win_value) * _reached(form, strategy)).sum())


def _reached(form: SequenceForm, strategy: Strategy) -> Floats:
    """How likely both seats play to each end that is won; float64 [wins]."""
    one, other = (_plan(form.parent[s], form.first[s], strategy[s]) for s in range(2))
    reached: Floats = one[form.win_sequence[:, 0]] * other[form.win_sequence[:, 1]]
    return reached


def action_values(form: SequenceForm, seat: int, strategy: Strategy) -> Floats:
    """What each sequence of ``seat`` is worth if it goes on at its best; float64 [sequences].

    Values are counterfactual: times the probability that the cards and the other's strategy let
    the sequence come about. Entry 0 is the whole game.
    """
    other = 1 - seat
    plan = _plan(form.parent[other], form.first[other], strategy[other])
    values = _earned(form, seat, plan)
    _add_best(form.parent[seat], form.first[seat], values)
    return values


def best_response(form: SequenceForm, seat: int, strategy: Strategy) -> float:
    """What ``seat`` wins on average if it plays its best against the other's strategy."""
    return float(action_values(form, seat, strategy)[0])


def nash_conv(form: SequenceForm, strategy: Strategy) -> float:
    """What both seats together would gain by playing their best responses; 0 in equilibrium."""
    return best_response(form, 0, strategy) + best_response(form, 1, strategy)


# --- learning ---


class CFR:
    """Counterfactual regret minimisation, CFR+ with alternating updates.

    Tammelin, "Solving large imperfect information games using CFR+" (arXiv 1407.5042); the average
    weighs iteration t by t squared.
    """

    def __init__(self, form: SequenceForm) -> None:
        self.form, self.iterations = form, 0
        self.current = uniform_strategy(form)
        self._plans = [_plan(form.parent[s], form.first[s], self.current[s]) for s in range(2)]
        self._regrets = [np.zeros_like(strategy) for strategy in self.current]
        self._sums = [np.zeros_like(strategy) for strategy in self.current]

    def step(self, iterations: int = 1) -> None:
        """Learn on."""
        form = self.form
        for _ in range(iterations):
            self.iterations += 1
            for seat in range(2):
                parent, first = form.parent[seat], form.first[seat]
                earned = _earned(form, seat, self._plans[1 - seat])
                _learn(parent, first, earned, self.current[seat], self._regrets[seat])
                self._plans[seat] = _plan(parent, first, self.current[seat])
                self._sums[seat] += self.iterations**2 * self._plans[seat]

    @property
    def average(self) -> Strategy:
        """The strategy that converges to an equilibrium."""
        one, other = (_normal(self.form.first[s], self._sums[s]) for s in range(2))
        return one, other


# --- over all information states of a seat ---


def _earned(form: SequenceForm, seat: int, other_plan: Floats) -> Floats:
    """What each sequence of ``seat`` earns at the ends it comes to, against the other's plan."""
    own, other = form.win_sequence[:, seat], form.win_sequence[:, 1 - seat]
    worth = form.win_value if seat == 0 else -form.win_value
    sums = np.bincount(own, worth * other_plan[other], len(form.action[seat]))
    return sums.astype(np.float64)


@jit
def _plan(parent: NDArray[np.int32], first: NDArray[np.int32], strategy: Floats) -> Floats:
    plan = np.empty_like(strategy)
    plan[0] = 1.0
    for state in range(len(parent)):
        for sequence in range(first[state], first[state + 1]):
            plan[sequence] = plan[parent[state]] * strategy[sequence]
    return plan


@jit
def _normal(first: NDArray[np.int32], weights: Floats) -> Floats:
    """Weights of the sequences scaled to sum to 1 in each information state, uniform if all 0."""
    strategy = np.ones_like(weights)
    for state in range(len(first) - 1):
        begin, end = first[state], first[state + 1]
        total = weights[begin:end].sum()
        for sequence in range(begin, end):
            strategy[sequence] = weights[sequence] / total if total > 0 else 1 / (end - begin)
    return strategy


@jit
def _add_best(parent: NDArray[np.int32], first: NDArray[np.int32], earned: Floats) -> None:
    """Add to each sequence the best of what can follow it, from the last state back."""
    for state in range(len(parent) - 1, -1, -1):
        earned[parent[state]] += earned[first[state] : first[state + 1]].max()


@jit
def _learn(
    parent: NDArray[np.int32],
    first: NDArray[np.int32],
    earned: Floats,
    strategy: Floats,
    regret: Floats,
) -> None:
    """Regret matching+ in every information state; ``strategy`` is replaced."""
    for state in range(len(parent) - 1, -1, -1):
        begin, end = first[state], first[state + 1]
        worth = 0.0
        for sequence in range(begin, end):
            worth += strategy[sequence] * earned[sequence]
        earned[parent[state]] += worth
        total = 0.0
        for sequence in range(begin, end):
            regret[sequence] = max(0.0, regret[sequence] + earned[sequence] - worth)
            total += regret[sequence]
        for sequence in range(begin, end):
            strategy[sequence] = regret[sequence] / total if total > 0 else 1 / (end - begin)


# --- command line ---


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.exact", description=__doc__)
    parser.add_argument("rules", help="small deck: nano, micro, mini, or nano,force=off")
    parser.add_argument("--nash-conv", type=float, default=1e-3, help="when to stop (default 1e-3)")
    parser.add_argument(
        "--iterations", type=int, default=1000, help="at most (default 1000; 0: none)"
    )
    parser.add_argument("--agents", nargs="*", default=[], help="specs of agents to score")
    options = parser.parse_args(arguments)
    if not options.nash_conv > 0 or options.iterations < 0:
        parser.error("--nash-conv must be above 0, --iterations 0 or more")
    agents = {spec: make_agent(spec) for spec in options.agents}
    rules = rule_set(options.rules)
    start = time.monotonic()
    form = sequence_form(rules)
    _print_size(options.rules, form, time.monotonic() - start)
    _solve(form, options.nash_conv, options.iterations)
    _print_score("uniform", form, uniform_strategy(form))
    for spec, agent in agents.items():
        _print_score(spec, form, agent_strategy(form, agent, spec))


def _print_size(name: str, form: SequenceForm, seconds: float) -> None:
    states, sequences = (len(p) for p in form.parent), (len(a) for a in form.action)
    print(f"{name}: {form.histories:,} histories, {len(form.win_value):,} of them won")
    print("information states by seat: {:,} and {:,}".format(*states))
    print("sequences by seat: {:,} and {:,}".format(*sequences))
    print(f"built in {seconds:.1f} s")


def _solve(form: SequenceForm, target: float, most: int) -> None:
    start, cfr = time.monotonic(), CFR(form)
    print("iterations   NashConv    value of seat 0       draws     time  peak memory")
    while cfr.iterations < most:
        cfr.step(min(10, most - cfr.iterations))
        average = cfr.average
        high, low = best_response(form, 0, average), -best_response(form, 1, average)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{cfr.iterations:10} {high - low:10.7f}  {low:+.5f} to {high:+.5f} "
            f"{draw_rate(form, average):9.4f} {time.monotonic() - start:6.1f} s {peak:8,.0f} MB",
            flush=True,
        )
        if high - low < target:
            return


def _print_score(name: str, form: SequenceForm, strategy: Strategy) -> None:
    print(
        f"{name}: NashConv {nash_conv(form, strategy):.5f}, against itself "
        f"{value(form, strategy):+.5f} with {draw_rate(form, strategy):.4f} draws"
    )


if __name__ == "__main__":
    sys.exit(main())
