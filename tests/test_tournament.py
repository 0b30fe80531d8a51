"""Tournaments and their reports."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from conquian_env import RuleSet
from tests.test_backends import write_policy
from tests.test_process import below, left_of
from training.backends import Limits
from training.ledger import LedgerError
from training.lock import LockError, holding
from training.match import Forfeit, estimate
from training.report import (
    ReportError,
    print_report,
    to_csv,
    to_json,
    to_markdown,
    write_curves,
    write_report,
)
from training.results import Tournament, TournamentConfig
from training.toml import checked
from training.tournament import main, play_tournament

SPECS = ["random", "tests.failing:Failing", "greedy"]
CONFIG = TournamentConfig(agents=tuple(SPECS), pairs=60, part=25)


CODE = """
class Mine:
    def act(self, views):
        return views.mask.argmax(axis=1)
"""


class Eights:
    """Plays a game of eight cards only."""

    rules = RuleSet(deal=8)

    def act(self, views):
        raise AssertionError("it must be refused before the games")


@pytest.fixture(scope="module")
def tournament(tmp_path_factory) -> Tournament:
    return play_tournament(CONFIG, tmp_path_factory.mktemp("out"))


def score(tournament: Tournament, agent: str, other: str) -> float:
    return tournament.ratings.against(agent, other).mean


def test_every_pair_meets_on_the_same_deals(tournament, tmp_path):
    met = [(match.first, match.second) for match in tournament.matches]
    assert met == [(SPECS[0], SPECS[1]), (SPECS[0], SPECS[2]), (SPECS[1], SPECS[2])]
    turned = replace(CONFIG, agents=tuple(SPECS[::-1]), part=60)
    again = play_tournament(turned, tmp_path)
    records = [
        record for match in (*tournament.matches, *again.matches) for record in match.records
    ]
    assert len(records) == 12
    assert len({record.start().to_json() for record in records}) == 1
    # Neither of these two draws anything, so the order in which they come does not matter.
    assert score(again, "greedy", SPECS[1]) == score(tournament, "greedy", SPECS[1])


def test_overall_is_the_mean_over_opponents_deal_by_deal(tournament):
    scores = np.mean(
        [-tournament.matches[1].pair_scores, -tournament.matches[2].pair_scores], axis=0
    )
    assert tournament.overall("greedy") == estimate(scores)
    assert tournament.ranking[0] == "greedy"
    assert sum(tournament.overall(spec).mean for spec in SPECS) == pytest.approx(0, abs=1e-6)


def test_the_anchor_is_0(tournament):
    assert tournament.ratings.anchor == "random"
    assert [r.elo for r in tournament.ratings.ranking if r.agent == "random"] == [0]
    other = Tournament(replace(CONFIG, anchor="greedy"), tournament.matches)
    assert [r.elo for r in other.ratings.ranking if r.agent == "greedy"] == [0]


def test_markdown_has_a_row_for_each_agent(tournament):
    lines = to_markdown(tournament).splitlines()
    first = next(line for line in lines if line.startswith("| 1 |"))
    assert tournament.overall("greedy").short in first
    assert tournament.ratings.against("greedy", "random").short in first
    assert sum(line.startswith("| ") for line in lines) == 2 * (1 + 1 + 3)
    games = next(line for line in lines if line.startswith("| random | greedy |"))
    assert str(tournament.ratings.against("random", "greedy")) in games


def test_csv_has_a_line_for_each_agent(tournament):
    header, *rows = [line.split(",") for line in to_csv(tournament).splitlines()]
    assert header[:3] == ["rank", "agent", "elo"]
    assert tuple(row[1] for row in rows) == tournament.ranking
    assert float(rows[0][2]) == tournament.ratings.ranking[0].elo


def test_json_holds_every_game(tournament):
    content = json.loads(to_json(tournament))
    assert content["config"]["rules"] == RuleSet().to_dict()
    assert tuple(entry["agent"] for entry in content["ranking"]) == tournament.ranking
    for match, saved in zip(tournament.matches, content["matches"], strict=True):
        np.testing.assert_array_equal(saved["payoff"], match.payoff)
        np.testing.assert_array_equal(saved["plies"], match.plies)
        assert saved["won"] + saved["drawn"] + saved["lost"] == 120
        assert sum(saved["pairs"]) == 60
        assert saved["mean"] == pytest.approx(match.score.mean)
        assert [saved["low"], saved["high"]] == [
            getattr(tournament.ratings.against(match.first, match.second), end)
            for end in ("low", "high")
        ]


def test_the_first_games_are_recorded(tournament):
    for match in tournament.matches:
        assert len(match.records) == 2
        for game, record in enumerate(match.records):
            assert record.agents[game] == match.first
            assert record.agents[1 - game] == match.second
            assert record.returns[game] == match.payoff[0, game]
            assert len(record.actions) == match.plies[0, game]


def test_a_ladder_and_a_gauntlet(tmp_path):
    few = replace(CONFIG, agents=("greedy", "random", "expert"), pairs=4)
    gauntlet = play_tournament(replace(few, format="gauntlet"), tmp_path / "one")
    assert [(m.first, m.second) for m in gauntlet.matches] == [
        ("greedy", "random"), ("greedy", "expert"),
    ]  # fmt: skip
    assert "| - |" in to_markdown(gauntlet)
    ladder = play_tournament(replace(few, format="ladder"), tmp_path / "two")
    assert [(m.first, m.second) for m in ladder.matches] == [
        ("greedy", "random"), ("random", "expert"),
    ]  # fmt: skip


# --- broken off, and elsewhere ---

KNOWN = TournamentConfig(agents=("random", "greedy", "rollout:worlds=2"), pairs=12, part=3)


def test_workers_change_nothing(tmp_path):
    one, two = (play_tournament(KNOWN, tmp_path / str(n), workers=n) for n in (1, 2))
    assert to_json(one) == to_json(two)


def test_ray_changes_nothing(tmp_path):
    pytest.importorskip("ray", reason="the extra ray is not installed")
    local = play_tournament(KNOWN, tmp_path / "local")
    ray = play_tournament(KNOWN, tmp_path / "ray", workers=2, backend="ray")
    assert to_json(ray) == to_json(local)


def test_a_tournament_killed_again_and_again_ends_the_same(tmp_path):
    """Each time some parts after it was started; what was written by then is not played again.

    Its own process alone is killed or ended: the workers notice, and end.
    """
    config = replace(KNOWN, pairs=40)
    (tmp_path / "c.toml").write_text(
        f"agents = {json.dumps(list(config.agents))}\npairs = 40\npart = 3\n"
    )
    expected = play_tournament(config, tmp_path / "whole")
    out, ledger, lines = tmp_path / "out", tmp_path / "out" / "ledger.jsonl", 1
    command = [sys.executable, "-m", "training.tournament", str(tmp_path / "c.toml"), "--resume",
               "--workers", "2", "--out", str(out)]  # fmt: skip
    for more in (1, 7, 3, 4, 2):
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as run:
            while written(ledger) < lines + more:
                assert run.poll() is None
                time.sleep(0.01)
            workers = below(run.pid)[1:] if sys.platform == "linux" else []
            run.send_signal(signal.SIGTERM if more == 7 else signal.SIGKILL)
        assert not left_of(workers, 20)
        assert written(ledger) >= lines + more
        lines = written(ledger)
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert (out / "tournament.json").read_text() == to_json(expected)


def written(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_two_tournaments_do_not_share_a_folder(tmp_path):
    few = replace(KNOWN, agents=("random", "greedy"))
    for how in ("resume", "overwrite"):
        with holding(tmp_path), pytest.raises(LockError, match="another run"):
            play_tournament(few, tmp_path, **{how: True})
        assert not (tmp_path / "ledger.jsonl").exists()
    play_tournament(few, tmp_path)


def test_a_part_of_another_tournament_is_not_mixed_in(tmp_path):
    few = replace(KNOWN, agents=("random", "greedy"))
    for seed in (1, 2):
        play_tournament(replace(few, seed=seed), tmp_path / str(seed))
    lines = (tmp_path / "1" / "ledger.jsonl").read_text().splitlines()[:-1]
    lines += (tmp_path / "2" / "ledger.jsonl").read_text().splitlines()[-1:]
    (tmp_path / "1" / "ledger.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(LedgerError, match="it is a part of another tournament"):
        play_tournament(few, tmp_path / "1", resume=True)


def test_the_code_of_others_belongs_to_a_tournament(tmp_path, monkeypatch):
    """One that was resumed with other code would be of neither."""
    (tmp_path / "mine_alone.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    config = TournamentConfig(agents=("random", "mine_alone:Mine"), pairs=4)
    play_tournament(config, tmp_path / "out")
    play_tournament(config, tmp_path / "out", resume=True)
    (tmp_path / "mine_alone.py").write_text(CODE + "\n")
    with pytest.raises(LedgerError, match=r"code was \{'mine_alone:Mine': '"):
        play_tournament(config, tmp_path / "out", resume=True)


def test_a_tournament_goes_on_with_the_same_checkpoint_wherever_it_lies(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_policy(tmp_path / folder / "p.pt", 0)
    config = TournamentConfig(agents=("random", "ppo:p.pt"), pairs=4)
    for folder in ("one", "two"):
        monkeypatch.chdir(tmp_path / folder)
        play_tournament(config, tmp_path / "out", resume=True)
    write_policy(tmp_path / "two" / "p.pt", 1)
    with pytest.raises(LedgerError, match="checkpoints was"):
        play_tournament(config, tmp_path / "out", resume=True)


def test_an_earlier_tournament_is_neither_lost_nor_mixed_in(tmp_path):
    few = replace(KNOWN, agents=("random", "greedy"))
    play_tournament(few, tmp_path)
    with pytest.raises(LedgerError, match="--resume or --overwrite"):
        play_tournament(few, tmp_path)
    with pytest.raises(LedgerError, match="seed was 1, and is 2"):
        play_tournament(replace(few, seed=2), tmp_path, resume=True)
    play_tournament(replace(few, seed=2), tmp_path, overwrite=True)
    play_tournament(replace(few, seed=2, anchor="greedy"), tmp_path, resume=True)


# --- agents that fail ---


@pytest.mark.parametrize(
    ("name", "kind"),
    [("Raises", "raised"), ("Illegal", "illegal"), ("Exits", "lost"), ("Sleeps", "stalled"),
     ("Eats", "memory"), ("Talks", "")],
)  # fmt: skip
def test_an_agent_that_fails_loses_those_games_alone(name, kind, tmp_path):
    """Its other games, and everybody else's, are those of an agent that does not fail."""
    limits = Limits(move_seconds=0.05 if name == "Sleeps" else 9.0, memory_mb=600)
    well, ill = (
        TournamentConfig(
            agents=("random", f"tests.failing:{one}", "greedy"), pairs=3, limits=limits
        )
        for one in ("Failing", name)
    )
    before, after = play_tournament(well, tmp_path / "a"), play_tournament(ill, tmp_path / "b")
    forfeits = after.forfeits(f"tests.failing:{name}")
    assert set(forfeits) == ({kind} if kind else set())
    assert before.forfeits("tests.failing:Failing") == {}
    for match, expected in zip(after.matches, before.matches, strict=True):
        lost = np.zeros((3, 2), np.bool_)
        for one in match.forfeits:
            lost[one.deal, one.game] = True
        np.testing.assert_array_equal(match.payoff[~lost], expected.payoff[~lost])
        assert (match.payoff[lost] == (1 if match.first != f"tests.failing:{name}" else -1)).all()
        assert not lost.all()
    assert not any(kind in to_markdown(before) for kind in ("raised", "illegal", "lost:"))
    assert kind in to_markdown(after)
    assert ("could not go on" in to_markdown(after)) == bool(kind)


def test_the_first_message_is_told_beside_the_kind(tournament, capsys):
    first, *others = tournament.matches
    message = "it raised ValueError('<no> | idea')"
    failed = tuple(
        Forfeit(deal, 0, SPECS[1], kind, said)
        for deal, kind, said in ((1, "raised", message), (2, "raised", "b"), (3, "given up", "c"))
    )
    ill = Tournament(CONFIG, (replace(first, forfeits=failed), *others))
    note = f"{SPECS[1]} could not go on with 2 games, which it lost: raised ({message})"
    print_report(ill)
    assert note in " ".join(capsys.readouterr().out.split())
    markdown = to_markdown(ill)
    assert "- " + note.replace("<", "&lt;").replace("|", "\\|") in markdown
    assert "with 1 games, which it lost: given up (c)" in markdown


# --- the command line ---


def test_command_line(tmp_path, capsys):
    out = tmp_path / "report"
    assert main(["random", "greedy", "--pairs", "20", "--out", str(out), "--tensorboard"]) == 0
    printed = capsys.readouterr().out
    assert f"report: {out / 'curves'}" in printed
    assert "greedy" in printed
    assert str(out / "tournament.md") in printed.replace("\n", "")
    assert json.loads((out / "tournament.json").read_text())["config"]["pairs"] == 20
    assert len((out / "games.jsonl").read_text().splitlines()) == 2


def test_curves_for_tensorboard_end_at_what_the_report_says(tournament, tmp_path):
    (tmp_path / "curves" / "4 of an earlier tournament").mkdir(parents=True)
    folder = write_curves(tournament, tmp_path)
    runs = sorted(folder.iterdir())
    expected = [f"{place} {name}" for place, name in enumerate(tournament.ranking, 1)]
    assert [run.name for run in runs] == [name.replace(":", "-") for name in expected]
    for run, rating in zip(runs, tournament.ratings.ranking, strict=True):
        events = EventAccumulator(str(run)).Reload()
        score, elo = (events.Scalars(f"tournament/{name}")[-1] for name in ("score", "elo"))
        assert score.step == elo.step == tournament.config.pairs
        assert score.value == pytest.approx(tournament.overall(rating.agent).mean, abs=1e-6)
        assert elo.value == pytest.approx(rating.elo)


def test_a_toml_file_says_who_plays(tmp_path):
    (tmp_path / "t.toml").write_text('agents = ["greedy", "random"]\npairs = 5\nseed = 3\n')
    out = str(tmp_path / "out")
    assert main([str(tmp_path / "t.toml"), "--seed", "4", "--out", out]) == 0
    saved = json.loads((tmp_path / "out" / "tournament.json").read_text())["config"]
    assert (saved["agents"], saved["pairs"], saved["seed"]) == (["greedy", "random"], 5, 4)


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["random"], "two agents"),
        (["random", "greedy", "--anchor", "expert"], "expert"),
        (["none.toml"], "none.toml"),
        (["random", "greedy", "--workers", "0"], "workers"),
        (["random", "random"], "'random' comes twice"),
        (["random", "gredy"], "gredy"),
        (["random", "greedy", "--rules", "clasic"], "clasic"),
        (["random", "greedy", "--rules", "none.toml"], "none.toml"),
        (["random", "greedy", "--pairs", "0"], "pairs"),
        (["random", "greedy", "--seed", "-1"], "seed"),
        (["random", "greedy", "--seed", str(1 << 40)], "seed"),
        (["random", "ppo:no/such.pt"], "no/such.pt"),
        (
            ["random", "greedy", "tests.test_tournament:Eights"],
            "Eights plays RuleSet(seven_jack_adjacent=True, deal=8",
        ),
        (["random", ":Agent"], "agent :Agent: "),
    ],
)
def test_wrong_arguments_are_named_in_one_line(arguments, culprit, tmp_path, capsys):
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(error) == 1
    assert culprit in error[0]
    assert list((tmp_path / "out").glob("*")) == []


def test_too_much_is_refused_at_once(tmp_path, capsys, monkeypatch):
    """What could not be kept in memory, and lists of parts without end."""
    monkeypatch.setattr("training.tournament.prepared", None)
    for more, culprit in (
        [["--pairs", "1000000000000"], "10000000"],
        [["--pairs", "200000", "--part", "1"], "part"],
    ):
        assert main(["random", "greedy", *more, "--out", str(tmp_path / "out")]) == 2
        assert culprit in capsys.readouterr().err


def test_an_out_that_is_a_file_is_refused_before_the_games(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr("training.tournament.play_all", None)
    assert main(["random", "greedy", "--out", str(tmp_path / "file")]) == 2
    assert "file" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_is_not_markup(tournament, capsys):
    """rich would read square brackets, and Markdown a bar."""
    odd = "ppo:[/x] a|b"
    renamed = Tournament(
        replace(CONFIG, agents=(odd, *SPECS[1:])),
        tuple(
            replace(m, first=odd if m.first == "random" else m.first) for m in tournament.matches
        ),
    )
    print_report(renamed)
    assert "[/x]" in capsys.readouterr().out
    row = next(
        line for line in to_markdown(renamed).splitlines() if "[/x]" in line and line[0] == "|"
    )
    assert "a\\|b" in row


def test_a_name_breaks_no_line_of_markdown_and_is_no_html(tournament):
    odd = "a\nb<img src=x>&amp;[x](http://x)\ud800"
    renamed = Tournament(
        replace(CONFIG, agents=(odd, *SPECS[1:]), anchor=odd),
        tuple(
            replace(m, first=odd if m.first == "random" else m.first) for m in tournament.matches
        ),
    )
    lines = to_markdown(renamed).encode().decode().splitlines()
    assert len(lines) == len(to_markdown(tournament).splitlines())
    shown = "a\\nb&lt;img src=x>&amp;amp;[x]\\(http://x)\\ud800"
    assert sum(shown in line for line in lines) == 4
    assert not any("<" in line or "](" in line for line in lines)
    assert len(to_csv(renamed).encode().splitlines()) == 4


def test_a_report_that_cannot_be_written_is_named_and_leaves_the_earlier_one(
    tournament, tmp_path, monkeypatch
):
    write_report(tournament, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReportError, match=r"tournament.html: No space left"):
        write_report(Tournament(replace(CONFIG, anchor="greedy"), tournament.matches), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rules_may_come_from_a_runs_file(tmp_path):
    (tmp_path / "run.toml").write_text("decisions = 1\nrules = {deal = 8}\n")
    eights = ["random", "greedy", "--rules", str(tmp_path / "run.toml"), "--pairs", "5"]
    assert main([*eights, "--out", str(tmp_path)]) == 0
    saved = json.loads((tmp_path / "tournament.json").read_text())
    assert saved["config"]["rules"] == RuleSet(deal=8).to_dict()


def test_the_file_on_the_page_about_tournaments_is_one():
    page = Path("docs/tournaments.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    config = checked(tomllib.loads(text), TournamentConfig, "docs")
    assert config.format == "gauntlet"
    assert config.limits.move_seconds == 1.0
