"""Score cards: deals that belong to the agent, and results that another can check."""

import copy
import errno
import hashlib
import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import make_agent
from agents.agent import AgentError
from conquian_env import Batch
from conquian_env.errors import ConquianError
from conquian_env.seeds import decision_seeds
from training import benchmark
from training.benchmark import (
    ANCHORS,
    BenchmarkError,
    bench_parts,
    default_out,
    leaderboard,
    main,
    mean_score,
    read_card,
    run_benchmark,
    seed_of,
    verify,
)
from training.match import estimate

AGENT = "tests.failing:Failing"
CODE = """
class Mine:
    def act(self, views):
        return views.mask.argmax(axis=1)
"""
WRITES = """
from pathlib import Path

class Mine:
    def act(self, views):
        Path(__file__).with_name("log.txt").write_text("I played")
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
    (folder / "writes.py").write_text(WRITES)
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
    assert [match.anchor for match in card.matches] == ["random", "greedy"]
    assert [sum(match.pairs) for match in card.matches] == [12, 8]
    assert [match.won + match.drawn + match.lost for match in card.matches] == [24, 16]
    assert re.search(r"random +24 ", printed)
    assert main(["--verify", str(out)]) == 0
    assert "holds" in capsys.readouterr().out
    assert main(["--leaderboard", str(out)]) == 0
    assert "| `other_agents.mine:Mine` | **" in capsys.readouterr().out


def test_a_card_is_not_written_over_unasked(tmp_path, capsys, monkeypatch):
    out = tmp_path / "card.json"
    out.write_text("mine")
    with monkeypatch.context() as patch:
        patch.setattr(benchmark, "play_all", None)
        assert main(["--agent", "greedy", "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main(["--agent", "greedy", "--out", str(out), "--overwrite"]) == 0
    assert read_card(out).agent == "greedy"


@pytest.mark.parametrize("out", ["folder", "file/card.json", "/proc/card.json"])
def test_a_card_that_cannot_be_written_is_refused_before_the_games(
    out, tmp_path, capsys, monkeypatch
):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(benchmark, "play_all", None)
    assert main(["--agent", "greedy", "--out", str(tmp_path / out)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert out.split("/")[1 if out[0] == "/" else 0] in error


def test_what_was_played_is_printed_if_the_card_cannot_be_written_after_all(
    tmp_path, capsys, monkeypatch
):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main(["--agent", "greedy", "--out", str(tmp_path / "card.json")]) == 2
    printed = capsys.readouterr()
    assert "card.json: No space left" in printed.err
    (tmp_path / "saved.json").write_text(printed.out[printed.out.index("{") :])
    assert read_card(tmp_path / "saved.json").agent == "greedy"
    assert not (tmp_path / "card.json").exists()


def test_each_spec_has_a_file_of_its_own():
    specs = ["a.b:C", "a.b-C", "a.b%3AC", "a.b%2DC", "ppo:a/b", "ppo:a-b", "ppo:a:b", "ppo:../b"]
    names = [default_out(spec) for spec in specs]
    assert str(names[0]) == "runs/a.b-C.json"
    assert len(set(names)) == len(specs)
    assert all(name.parent == Path("runs") for name in names)


def test_an_agent_that_writes_into_its_own_package_gets_no_card(package, tmp_path, capsys):
    """Whoever checked it would find other files."""
    out = tmp_path / "card.json"
    assert main(["--agent", "other_agents.writes:Mine", "--out", str(out)]) == 2
    assert "its files were changed while it played" in capsys.readouterr().err
    assert not out.exists()


def test_why_an_agent_failed_is_told(tmp_path, capsys):
    out = ["--out", str(tmp_path / "card.json")]
    assert main(["--agent", "tests.failing:Raises", *out]) == 0
    printed = capsys.readouterr().out
    assert "could not go on with" in printed
    assert "raised (it raised ValueError('no idea'))" in printed


def test_the_score_counts_each_anchor_the_same():
    card = run_benchmark(AGENT)
    means = [match.score.mean for match in card.matches]
    assert card.score.mean == pytest.approx(np.mean(means))
    assert card == run_benchmark(AGENT, workers=2)


def test_no_deal_is_played_against_two_anchors():
    """So the scores that are averaged are independent."""
    deals = [(deal, p.second) for p in bench_parts() for deal in range(p.start, p.stop)]
    assert sorted(deal for deal, _ in deals) == list(range(20))
    assert [sum(anchor == number for _, anchor in deals) for number in (1, 2)] == [12, 8]


def test_the_interval_of_the_mean_holds_the_truth_as_often_as_it_says():
    """Of two scores of unlike widths; 300 samples: 90 to 99 % is four standard errors below."""
    rng = np.random.default_rng(1)
    kinds = [([-1.0, 0.0, 1.0], [0.1, 0.3, 0.6], 400), ([-0.5, 0.5], [0.5, 0.5], 100)]
    covered = 0
    for _ in range(300):
        scores = [estimate(rng.choice(v, n, p=p).astype(np.float32)) for v, p, n in kinds]
        found = mean_score(scores)
        covered += found.low <= 0.25 <= found.high
    assert 0.9 < covered / 300 < 0.99


def test_the_deals_hang_on_the_spec_and_its_files():
    seeds = [seed_of(*of) for of in ((AGENT, "0"), (AGENT, "1"), ("tests.failing:Talks", "0"))]
    assert len(set(seeds)) == 3
    assert all(0 <= seed < 1 << 40 for seed in seeds)


def test_slow_anchors_come_first_in_small_parts_and_change_nothing(monkeypatch):
    """So that no worker is left alone with them; each anchor keeps its deals."""
    before = run_benchmark(AGENT)
    monkeypatch.setattr(benchmark, "SLOW", {"greedy": 3})
    todo = bench_parts()
    assert [part.second for part in todo] == [2, 2, 2, 1, 1, 1]
    assert [part.stop - part.start for part in todo] == [3, 3, 2, 5, 5, 2]
    assert {part.start for part in todo if part.second == 2} == {12, 15, 18}
    assert run_benchmark(AGENT) == before


# --- cards of others ---


@pytest.fixture(scope="module")
def card() -> dict[str, Any]:
    """As JSON has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "ANCHORS", {"random": 12, "greedy": 8})
        return json.loads(json.dumps(asdict(run_benchmark(AGENT))))


def match(number: int, **changes):
    """A card with changes in one of its matches."""

    def changed(card):
        matches = copy.deepcopy(card["matches"])
        matches[number] |= changes
        return card | {"matches": matches}

    return changed


BROKEN = [
    (lambda card: card | {"matches": card["matches"][:1]}, "the score of the matches is"),
    (lambda card: card | {"matches": card["matches"][::-1]}, "deals or anchors are others"),
    (lambda card: card | {"matches": []}, "matches"),
    (lambda card: card | {"matches": [1]}, "matches 0"),
    (match(0, anchor="greedy"), "deals or anchors are others"),
    (match(0, anchor="a\nb"), "matches 0 anchor"),
    (match(0, won=0, drawn=0, lost=0), "matches 0 .* not those of the pairs"),
    (match(0, won=10**30), "matches 0 won"),
    (match(0, pairs=[0, 0, 0, 0, 0]), "matches 0 .*counts"),
    (match(0, pairs=[-12, 0, 24, 0, 0]), "matches 0 pairs"),
    (match(0, pairs=[12]), "matches 0 pairs"),
    (match(0, score={"mean": 0.9, "low": 0.8, "high": 1.0}), "matches 0 .*score of the pairs"),
    (match(0, games="x"), "matches 0 games"),
    (lambda card: card | {"score": card["score"] | {"mean": 0.9}}, "the score of the matches is"),
    (lambda card: card | {"score": {"mean": 9.0, "low": 9.0, "high": 9.0}}, "score of the matches"),
    (lambda card: card | {"score": card["score"] | {"mean": float("nan")}}, "score"),
    (lambda card: card | {"score": {"mean": 0.0}}, "score low"),
    (lambda card: card | {"forfeits": False}, "forfeits"),
    (lambda card: card | {"forfeits": -1}, "forfeits"),
    (lambda card: card | {"forfeits": 41}, "more games forfeited than lost"),
    (lambda card: card | {"digest": "0"}, "digest"),
    (lambda card: card | {"agent": 5}, "agent"),
    (lambda card: card | {"agent": None}, "agent"),
    (lambda card: card | {"agent": []}, "agent"),
    (lambda card: card | {"agent": ""}, "agent"),
    (lambda card: card | {"agent": "a\nb"}, "agent"),
    (lambda card: card | {"version": 1}, "version"),
    (lambda card: card | {"more": 1}, "more"),
    (lambda card: card | {"benchmark": "v0"}, "benchmark"),
    (lambda card: [card], ""),
]


@pytest.mark.parametrize(("change", "said"), BROKEN)
def test_what_is_no_card_is_refused_in_one_line(change, said, card, tmp_path, capsys):
    path = tmp_path / "card.json"
    path.write_text(json.dumps(change(card)))
    for option in ("--verify", "--leaderboard"):
        assert main([option, str(path)]) == 2
        error = capsys.readouterr().err
        assert re.search(rf"card.json is no card .*{said}", error)
        assert error.count("\n") == 1


def test_a_card_nested_too_deep_is_refused(tmp_path):
    (tmp_path / "card.json").write_text("[" * 200_000)
    with pytest.raises(BenchmarkError, match=r"card.json is no card"):
        read_card(tmp_path / "card.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card | {"forfeits": 1}, "forfeits is not what"),
        (match(1, games="0" * 64), "matches is not what"),
        (lambda card: card | {"digest": "0" * 64}, "files of tests.failing:Failing are not those"),
        (lambda card: card | {"agent": "__main__:x"}, "there is no package '__main__'"),
    ],
)
def test_a_card_that_does_not_hold_is_refused(change, said, card, tmp_path):
    path = tmp_path / "card.json"
    path.write_text(json.dumps(change(card)))
    with pytest.raises(ConquianError, match=said):
        verify(path)


def test_the_leaderboard_has_the_best_first(tmp_path):
    paths = []
    for spec in ("random", "expert"):
        paths.append(tmp_path / f"{spec}.json")
        paths[-1].write_text(json.dumps(asdict(run_benchmark(spec))))
    lines = leaderboard(paths)
    assert lines[2].startswith("| `expert` |")
    assert lines[3].startswith("| `random` |")


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--agent", "no_such_package:Mine"], "no_such_package"),
        (["--agent", "tests.failing:Nobody"], "Nobody"),
        (["--agent", ":x"], "':x'"),
        (["--agent", "__main__:x"], "__main__"),
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


def actions_of(spec: str, deals: int) -> str:
    """A digest of what an agent does in the first games of the random agent with itself."""
    agent, random = make_agent(spec), make_agent("random")
    batch, digest = Batch(deals, seed=1, skip_forced=True, autoreset=False), hashlib.sha256()
    while not batch.done.all():
        rows = np.flatnonzero(~batch.done)
        seeds = decision_seeds(1, rows, batch.actor[rows], batch.ply[rows])
        digest.update(agent.act(batch.views(rows, seeds)).astype("<i8").tobytes())
        actions = batch.mask.argmax(axis=1)
        actions[rows] = random.act(batch.views(rows, seeds))
        batch.step(actions)
    return digest.hexdigest()[:16]


# What the anchors do is what a score is worth: change it, and cards of before and after do not
# compare. So whoever has to change a line here changes benchmark.VERSION with it.
FROZEN = {  # from how many deals, and a digest
    "random": (300, "51479c197d7bb32d"),
    "greedy": (300, "267979f6104f7e1b"),
    "expert": (300, "604684edccc0d296"),
    "ppo:baseline": (60, "e82f7d83cf1c33e5"),
    "rollout:worlds=20": (5, "aa0e161cbf7271d0"),
}


@pytest.mark.parametrize("spec", ANCHORS)
def test_the_anchors_are_frozen(spec):
    deals, digest = FROZEN[spec]
    assert actions_of(spec, deals) == digest
