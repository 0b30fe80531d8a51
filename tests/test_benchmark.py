"""Score cards: deals that belong to the agent, and results that another can check."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents.agent import AgentError
from training import benchmark
from training.benchmark import (
    BenchmarkError,
    digest_of,
    leaderboard,
    main,
    read_card,
    run_benchmark,
    seed_of,
    verify,
)

AGENT = "tests.failing:Failing"
CODE = """
class Mine:
    def act(self, views):
        return views.mask.argmax(axis=1)
"""


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(benchmark, "ANCHORS", {"random": 12, "greedy": 8})
    monkeypatch.setattr(benchmark, "PART", 5)


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package of somebody else's, ``other_agents``, on the path."""
    folder = tmp_path / "elsewhere" / "other_agents"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "mine.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def test_a_card_of_an_agent_from_another_package(package, tmp_path, capsys):
    """One command; the card can be checked by playing it again, and stands in a table."""
    out = tmp_path / "card.json"
    assert main(["--agent", "other_agents.mine:Mine", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert str(out) in printed
    assert "greedy" in printed
    card = read_card(out)
    assert [m["anchor"] for m in card["matches"]] == ["random", "greedy"]
    assert [sum(m["pairs"]) for m in card["matches"]] == [12, 8]
    assert main(["--verify", str(out)]) == 0
    assert "holds" in capsys.readouterr().out
    assert main(["--leaderboard", str(out)]) == 0
    assert "| `other_agents.mine:Mine` | **" in capsys.readouterr().out


def test_the_score_counts_each_anchor_the_same():
    card = run_benchmark(AGENT)
    means = [match.score.mean for match in card.matches]
    assert card.score.mean == pytest.approx(np.mean(means))
    widths = [match.score.high - match.score.low for match in card.matches]
    assert card.score.high - card.score.low == pytest.approx(np.hypot(*widths) / 2)
    assert card.to_json() == run_benchmark(AGENT, workers=2).to_json()


def test_the_deals_hang_on_every_file_of_the_agent(package):
    spec = "other_agents.mine:Mine"
    first = digest_of(spec)
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert digest_of(spec) == first
    (package / "weights.bin").write_bytes(b"1")
    second = digest_of(spec)
    (package / "weights.bin").write_bytes(b"2")
    seeds = {seed_of(spec, digest) for digest in (first, second, digest_of(spec))}
    assert len(seeds) == 3
    assert seed_of("other_agents.mine:Other", first) not in seeds
    assert all(0 <= seed < 1 << 40 for seed in seeds)


def test_a_checkpoint_is_one_of_an_agents_files():
    assert digest_of("ppo:baseline") != digest_of("greedy") == digest_of("random")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card | {"score": card["score"] | {"mean": 0.9}}, "score is not what"),
        (lambda card: card | {"matches": card["matches"][:1]}, "matches is not what"),
        (lambda card: card | {"digest": "0"}, "files of tests.failing:Failing are not those"),
        (lambda card: card | {"more": 1}, "is no card"),
        (lambda card: card | {"benchmark": "v0"}, "is no card"),
        (lambda card: [card], "is no score card"),
    ],
)
def test_a_card_that_does_not_hold_is_refused(change, said, tmp_path):
    card = run_benchmark(AGENT).to_json()
    path = tmp_path / "card.json"
    path.write_text(json.dumps(change(card)))
    with pytest.raises(BenchmarkError, match=said):
        verify(path)


def test_the_leaderboard_has_the_best_first(tmp_path):
    paths = []
    for spec in ("random", "expert"):
        paths.append(tmp_path / f"{spec}.json")
        paths[-1].write_text(json.dumps(run_benchmark(spec).to_json()))
    lines = leaderboard(paths)
    assert lines[2].startswith("| `expert` |")
    assert lines[3].startswith("| `random` |")


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--agent", "no_such_package:Mine"], "no_such_package"),
        (["--agent", "tests.failing:Nobody"], "Nobody"),
        (["--agent", ":x"], "':x'"),
        (["--agent", "greedy", "--workers", "0"], "workers"),
        (["--verify", "none.json"], "none.json"),
        (["--leaderboard", "README.md"], "README.md"),
    ],
)
def test_wrong_arguments_are_named_in_one_line(arguments, culprit, tmp_path, capsys):
    out = ["--out", str(tmp_path / "card.json")]
    assert main([*arguments, *out]) == 2
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(error) == 1
    assert culprit in error[0]


def test_an_agent_that_cannot_be_started_is_named():
    with pytest.raises(AgentError, match="Nobody"):
        run_benchmark("tests.failing:Nobody")
