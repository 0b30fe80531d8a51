"""Luck: solved values as a control variate of match results."""

import numpy as np
import pytest

from conquian_env import Game, RuleSet, solve
from conquian_env.errors import OptionError
from training.luck import deal_values, main, savings, slope


def test_the_value_of_a_deal_is_the_solvers() -> None:
    for rules in ("nano", "classic"):  # of whose 40 deals some are won, drawn and lost
        seeds = np.arange(40, dtype=np.uint64)
        expected = [solve(Game(rules, seed=int(seed))).value for seed in seeds]
        assert deal_values(RuleSet.preset(rules), seeds).tolist() == expected
        assert set(expected) == {-1, 0, 1}


def test_the_slope_is_that_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    known = rng.integers(-1, 2, 1000).astype(float)
    results = 0.3 * known + rng.normal(size=1000)
    assert slope(results, known) == pytest.approx(np.polyfit(known, results, 1)[0])
    assert slope(results, np.zeros(1000)) == 0.0


def test_what_is_taken_out_narrows_and_does_not_move_the_score() -> None:
    """Equal but for four standard errors of the difference, which is below that of single games."""
    single, freed, mirrored, both = savings("greedy", "random", RuleSet(), pairs=300, seed=3)
    assert freed.error < single.error
    assert (single.games, mirrored.games > 0) == (1.0, True)
    assert abs(freed.mean - single.mean) < 4 * single.error
    assert abs(both.mean - mirrored.mean) < 4 * mirrored.error


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["greedy", "random", "--rules", "nano", "--pairs", "50"]) == 0
    assert "| mirrored deals |" in capsys.readouterr().out
    assert main(["greedy", "nobody", "--pairs", "50"]) == 2
    assert "unknown agent" in capsys.readouterr().err
    for rules in ("mexican", "classic,draw=double"):
        with pytest.raises(OptionError):
            deal_values(RuleSet.from_text(rules), np.zeros(2, np.uint64))
