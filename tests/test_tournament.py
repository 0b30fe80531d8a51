"""Tournaments and their reports."""

import json
from dataclasses import replace

import numpy as np
import pytest

from agents.agent import AgentError
from conquian_env import RuleSet
from training.match import estimate
from training.report import print_report, to_json, to_markdown
from training.tournament import Tournament, main, play_tournament

SPECS = ["random", "tests.test_agents:First", "greedy"]


class Eights:
    """Plays a game of eight cards only."""

    rules = RuleSet(deal=8)

    def act(self, views):
        raise AssertionError("it must be refused before the games")


@pytest.fixture(scope="module")
def tournament() -> Tournament:
    return play_tournament(SPECS, RuleSet(), 60, 1)


def test_every_pair_meets_on_the_same_deals(tournament):
    met = [(match.first, match.second) for match in tournament.matches]
    assert met == [(SPECS[0], SPECS[1]), (SPECS[0], SPECS[2]), (SPECS[1], SPECS[2])]
    again = play_tournament(SPECS[::-1], RuleSet(), 60, 1)
    for one in SPECS:
        for other in SPECS:
            if one != other:
                assert again.against(one, other).mean == -again.against(other, one).mean
    assert again.against("greedy", SPECS[1]) == tournament.against("greedy", SPECS[1])


def test_overall_is_the_mean_over_opponents_deal_by_deal(tournament):
    scores = np.mean(
        [-tournament.matches[1].pair_scores, -tournament.matches[2].pair_scores], axis=0
    )
    assert tournament.overall("greedy") == estimate(scores)
    assert tournament.ranking()[0] == "greedy"
    assert sum(tournament.overall(spec).mean for spec in SPECS) == pytest.approx(0, abs=1e-6)


def test_markdown_has_a_row_for_each_agent(tournament):
    lines = to_markdown(tournament).splitlines()
    first = next(line for line in lines if line.startswith("| 1 |"))
    assert tournament.overall("greedy").short in first
    assert tournament.against("greedy", "random").short in first
    assert sum(line.startswith("| ") for line in lines) == 2 * (1 + 1 + 3)


def test_json_holds_every_game(tournament):
    content = json.loads(to_json(tournament))
    assert content["rules"] == RuleSet().to_dict()
    assert [entry["agent"] for entry in content["ranking"]] == tournament.ranking()
    for match, saved in zip(tournament.matches, content["matches"], strict=True):
        np.testing.assert_array_equal(saved["payoff"], match.payoff)
        assert saved["won"] + saved["drawn"] + saved["lost"] == 120
        assert saved["mean"] == match.score.mean


def test_command_line(tmp_path, capsys):
    out = tmp_path / "report"
    assert main(["random", "greedy", "--pairs", "20", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "greedy" in printed
    assert str(out / "tournament.md") in printed.replace("\n", "")
    assert json.loads((out / "tournament.json").read_text())["pairs"] == 20


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["random"], "two agents"),
        (["random", "random"], "'random' comes twice"),
        (["random", "gredy"], "gredy"),
        (["random", "greedy", "--rules", "clasic"], "clasic"),
        (["random", "greedy", "--rules", "none.toml"], "none.toml"),
        (["random", "greedy", "--pairs", "0"], "pairs"),
        (["random", "greedy", "--seed", "-1"], "seed -1"),
        (["random", "ppo:no/such.pt"], "no/such.pt"),
        (
            ["random", "greedy", "tests.test_tournament:Eights"],
            "Eights plays RuleSet(seven_jack_adjacent=True, deal=8",
        ),
        (["random", ":Agent"], "':Agent'"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(arguments, culprit, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(error) == 1
    assert culprit in error[0]
    assert list((tmp_path / "out").glob("*")) == []


def test_a_result_that_does_not_exist_is_an_error(tournament):
    with pytest.raises(AgentError, match="nobody"):
        tournament.against("greedy", "nobody")


def test_an_out_that_is_a_file_is_refused_before_the_games(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr("training.tournament.play_tournament", None)
    assert main(["random", "greedy", "--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_is_not_markup(tournament, capsys):
    """rich would read square brackets, and Markdown a bar."""
    odd = "ppo:[/x] a|b"
    renamed = replace(
        tournament,
        agents=(odd, *SPECS[1:]),
        matches=tuple(
            replace(m, first=odd if m.first == "random" else m.first) for m in tournament.matches
        ),
    )
    print_report(renamed)
    assert "[/x]" in capsys.readouterr().out
    row = next(line for line in to_markdown(renamed).splitlines() if "[/x]" in line)
    assert "a\\|b" in row


def test_rules_may_come_from_a_runs_file(tmp_path):
    (tmp_path / "run.toml").write_text("decisions = 1\nrules = {deal = 8}\n")
    eights = ["random", "greedy", "--rules", str(tmp_path / "run.toml"), "--pairs", "5"]
    assert main([*eights, "--out", str(tmp_path)]) == 0
    saved = json.loads((tmp_path / "tournament.json").read_text())
    assert saved["rules"] == RuleSet(deal=8).to_dict()
