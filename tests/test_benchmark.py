"""Score cards: deals that belong to the agent, and results that another can check."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from agents import make_agent
from agents.agent import AgentError
from conquian_env import Batch
from conquian_env.seeds import decision_seeds
from training import benchmark
from training.benchmark import (
    ANCHORS,
    BenchmarkError,
    bench_parts,
    digest_of,
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
    assert [match.anchor for match in card.matches] == ["random", "greedy"]
    assert [sum(match.pairs) for match in card.matches] == [12, 8]
    assert [match.won + match.drawn + match.lost for match in card.matches] == [24, 16]
    assert main(["--verify", str(out)]) == 0
    assert "holds" in capsys.readouterr().out
    assert main(["--leaderboard", str(out)]) == 0
    assert "| `other_agents.mine:Mine` | **" in capsys.readouterr().out


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
    assert digest_of("pimc:base=ppo:baseline") == digest_of("ppo:baseline")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card | {"score": card["score"] | {"mean": 0.9}}, "score is not what"),
        (lambda card: card | {"forfeits": 1}, "forfeits is not what"),
        (lambda card: card | {"digest": "0"}, "files of tests.failing:Failing are not those"),
        (lambda card: card | {"matches": card["matches"][:1]}, "deals or anchors are others"),
        (lambda card: card | {"matches": [1]}, "is no card .* matches 0"),
        (lambda card: card | {"score": {"mean": 0.0}}, "is no card .* score low"),
        (lambda card: card | {"more": 1}, "is no card .* more"),
        (lambda card: card | {"benchmark": "v0"}, "is no card .* benchmark"),
        (lambda card: [card], "is no card"),
    ],
)
def test_a_card_that_does_not_hold_is_refused(change, said, tmp_path):
    card = asdict(run_benchmark(AGENT))
    path = tmp_path / "card.json"
    path.write_text(json.dumps(change(card)))
    with pytest.raises(BenchmarkError, match=said):
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
