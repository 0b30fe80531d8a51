"""The sequential test of two agents: in order, early, and the same on any workers."""

import numpy as np
import pytest

from agents import make_agent
from conquian_env import RuleSet
from training.backends import Setting, prepared
from training.match import MatchResult, play_match
from training.schedule import parts
from training.sprt import in_order, main, play_sprt
from training.strength import Sprt, Tally

SPRT = Sprt(0, 10)


def setting(*specs: str) -> Setting:
    return prepared(Setting(specs, RuleSet(), 1), 1, "local")


def test_it_stops_at_the_first_part_that_decides():
    states = list(play_sprt(setting("expert", "greedy"), SPRT, 4000, size=50))
    assert [s.tally.pairs for s in states] == [50 * (k + 1) for k in range(len(states))]
    assert {s.verdict for s in states[:-1]} <= {"go on"}
    assert states[-1].verdict == "H1 accepted"
    pairs = states[-1].tally.pairs
    assert pairs < 2000
    agents = ((name, make_agent(name)) for name in ("expert", "greedy"))
    match = play_match(*agents, RuleSet(), pairs, seed=1)
    assert states[-1].tally == Tally.of(match.payoff)
    assert states[-1].llr == SPRT.llr(states[-1].tally) >= SPRT.bounds[1]


def test_the_weaker_agent_is_found_out():
    *_, last = play_sprt(setting("greedy", "expert"), SPRT, 4000)
    assert last.verdict == "H0 accepted"


def test_deals_may_run_out():
    *_, last = play_sprt(setting("greedy", "greedy:"), SPRT, 20, size=8)
    assert (last.verdict, last.tally.pairs) == ("go on", 20)


def test_workers_change_nothing():
    arguments = setting("rollout:worlds=1", "greedy"), SPRT, 30, 5
    one, two = (list(play_sprt(*arguments, workers=n)) for n in (1, 2))
    assert one == two


def test_results_are_put_in_order():
    todo = parts([(0, 1)], 25, 5)
    zeros = np.zeros((5, 2), np.float32)
    results = {part: MatchResult("a", "b", zeros, zeros.astype(np.int16)) for part in todo}
    shuffled = iter([(todo[i], results[todo[i]]) for i in (3, 0, 1, 4, 2)])
    assert list(in_order(todo, shuffled)) == [(part, results[part]) for part in todo]


def test_command_line(capsys):
    assert main(["expert", "random"]) == 0
    printed = capsys.readouterr().out
    assert "H1 accepted: nearer to 10 normalised Elo, or beyond it, than to 0" in printed
    assert "200 pairs, score +0." in printed
    assert "200 pairs" in printed


def test_rules_may_be_a_preset_with_changes(capsys):
    assert main(["expert", "random", "--rules", "classic,deal=8", "--pairs", "200"]) == 0
    assert "200 pairs" in capsys.readouterr().out


def test_forfeits_are_told_beside_the_verdict(capsys):
    assert main(["random", "tests.failing:Raises", "--pairs", "200"]) == 0
    *_, verdict, given_up, raised = capsys.readouterr().out.splitlines()
    assert verdict.startswith("H1 accepted")
    assert given_up.startswith("tests.failing:Raises could not go on with ")
    assert given_up.endswith("games, which it lost: given up (it had failed too often)")
    assert raised == (
        "tests.failing:Raises could not go on with 6 games, which it lost: raised "
        "(it raised ValueError('no idea'))"
    )


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["expert", "nobody"], "nobody"),
        (["expert", "greedy", "--nelo1", "-1"], "nelo0"),
        (["expert", "greedy", "--pairs", "0"], "pairs"),
        (["expert", "greedy", "--pairs", str(10**12)], "pairs"),
        (["expert", "greedy", "--seed", "-1"], "seed"),
        (["expert", "greedy", "--seed", str(1 << 40)], "seed"),
        (["expert", "greedy", "--workers", "0"], "workers"),
        (["expert", "greedy", "--rules", "x"], "x"),
    ],
)
def test_wrong_arguments_are_named(arguments, culprit, capsys):
    assert main(arguments) == 2
    assert culprit in capsys.readouterr().err
