"""The sequential test of two agents: in order, early, and the same on any workers."""

import numpy as np
import pytest

from conquian_env import RuleSet
from training.backends import Limits, Setting
from training.match import MatchResult
from training.schedule import parts
from training.sprt import in_order, main, play_sprt
from training.strength import Sprt, Tally

SPRT = Sprt(0, 10)


def setting(*specs: str) -> Setting:
    return Setting(specs, RuleSet(), 1, 0, Limits())


def test_it_stops_at_the_first_part_that_decides():
    states = list(play_sprt(setting("expert", "greedy"), SPRT, 4000, size=50))
    assert [len(s.match.payoff) for s in states] == [50 * (k + 1) for k in range(len(states))]
    assert {s.verdict for s in states[:-1]} <= {"go on"}
    assert states[-1].verdict == "H1 accepted"
    assert len(states[-1].match.payoff) < 2000
    assert states[-1].llr == SPRT.llr(Tally.of(states[-1].match.payoff)) >= SPRT.bounds[1]


def test_the_weaker_agent_is_found_out():
    *_, last = play_sprt(setting("greedy", "expert"), SPRT, 4000)
    assert last.verdict == "H0 accepted"


def test_deals_may_run_out():
    *_, last = play_sprt(setting("greedy", "greedy:"), SPRT, 20, size=8)
    assert (last.verdict, len(last.match.payoff)) == ("go on", 20)


def test_workers_change_nothing():
    arguments = setting("rollout:worlds=1", "greedy"), SPRT, 30, 5
    one, two = (list(play_sprt(*arguments, workers=n)) for n in (1, 2))
    assert [s.llr for s in one] == [s.llr for s in two]
    np.testing.assert_array_equal(one[-1].match.payoff, two[-1].match.payoff)


def test_results_are_put_in_order():
    todo = parts([(0, 1)], 25, 5)
    zeros = np.zeros((5, 2), np.float32)
    results = {part: MatchResult("a", "b", zeros, zeros.astype(np.int16)) for part in todo}
    shuffled = iter([(todo[i], results[todo[i]]) for i in (3, 0, 1, 4, 2)])
    assert list(in_order(todo, shuffled)) == [(part, results[part]) for part in todo]


def test_command_line(capsys):
    assert main(["expert", "random"]) == 0
    printed = capsys.readouterr().out
    assert "H1 accepted: stronger by 10" in printed
    assert "200 pairs" in printed


def test_rules_may_be_a_preset_with_changes(capsys):
    assert main(["expert", "random", "--rules", "classic,deal=8", "--pairs", "200"]) == 0
    assert "200 pairs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["expert", "nobody"], "nobody"),
        (["expert", "greedy", "--nelo1", "-1"], "nelo0"),
        (["expert", "greedy", "--pairs", "0"], "pairs"),
        (["expert", "greedy", "--seed", "-1"], "seed"),
        (["expert", "greedy", "--workers", "0"], "workers"),
        (["expert", "greedy", "--rules", "x"], "x"),
    ],
)
def test_wrong_arguments_are_named(arguments, culprit, capsys):
    assert main(arguments) == 2
    assert culprit in capsys.readouterr().err
