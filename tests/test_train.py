"""Training from a configuration: files, metrics, the command line; and the mirror."""

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import make_agent
from agents.checkpoint import CheckpointError, load
from agents.network import NetworkConfig
from agents.symmetry import ACTION_PLACES, HIDDEN_PLACES, OBSERVATION_PLACES
from conquian_env import Game, RuleSet, cards
from conquian_env.actions import DISCARD, LAY
from conquian_env.cards import NAMES, cards_text
from tests.test_run import Killed, killing
from training import run as run_module
from training import train as module
from training.config import Config, EvaluationConfig, PoolConfig, PPOConfig, load_config
from training.match import play_match
from training.run import Run
from training.run import _revision as revision
from training.train import METRICS, main, train

SMALL = Config(
    decisions=1000,
    num_games=32,
    rollout=8,
    network=NetworkConfig(width=16, layers=1),
    ppo=PPOConfig(minibatch=64),
    evaluation=EvaluationConfig(anchors=("random",), pairs=4),
)
TINY = {"suits": 1, "ranks": 6, "deal": 2, "stock": 1, "exchange": True}


def logged(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder)).Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


# --- what a run leaves behind ---


def test_a_run_writes_its_policy_and_logs_at_every_update(tmp_path):
    path = train(SMALL, tmp_path)
    assert path == tmp_path / "policy.pt"
    checkpoint = load(path)
    assert checkpoint.rules == RuleSet()
    assert checkpoint.decisions == 1024  # whole rollouts
    assert checkpoint.revision == revision()
    metrics = logged(tmp_path)
    assert [step for step, _ in metrics["charts/SPS"]] == [256, 512, 768, 1024]
    rates = [rate for _, rate in metrics["charts/learning_rate"]]
    assert rates[0] == pytest.approx(SMALL.ppo.learning_rate)
    assert rates == sorted(set(rates), reverse=True)


def test_every_metric_is_logged_and_described(tmp_path):
    config = replace(
        SMALL,
        rules=TINY,
        pool=PoolConfig(share=0.5, anchors=("random",)),
        network=replace(SMALL.network, other_hand=True),
        ppo=replace(SMALL.ppo, critic=True),
        evaluation=EvaluationConfig(("random", "greedy"), pairs=4, exact=True),
    )
    train(config, tmp_path)
    metrics = logged(tmp_path)
    names = {re.sub("vs_(random|greedy)", "vs_NAME", name) for name in metrics}
    assert names == set(METRICS)
    assert {"eval/vs_random", "eval/vs_random_last", "eval/vs_greedy"} <= metrics.keys()
    assert metrics["losses/critic_loss"][0][1] > 0
    assert metrics["losses/other_hand_loss"][0][1] > 0
    assert 0 < metrics["eval/nash_conv"][0][1] < 2
    (_, opponents), *_ = metrics["perf/opponents"]
    assert opponents > 0


def test_the_revision_is_named_by_git():
    assert re.fullmatch(r"|[0-9a-f]{40}(-dirty)?|.+-g[0-9a-f]{40}(-dirty)?", revision())


def test_without_git_there_is_no_revision(monkeypatch):
    def run(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(run_module.subprocess, "run", run)
    assert revision() == ""


@pytest.mark.parametrize(("every", "steps"), [(100, [1024]), (2, [512, 1024]), (3, [768, 1024])])
def test_the_last_policy_is_always_evaluated(every, steps, tmp_path):
    train(replace(SMALL, evaluation=replace(SMALL.evaluation, every=every)), tmp_path)
    metrics = logged(tmp_path)
    for name in ("eval/vs_random", "eval/vs_random_last", "perf/evaluation"):
        assert [step for step, _ in metrics[name]] == steps
    assert load(tmp_path / "best.pt").decisions in steps


def scored(monkeypatch: pytest.MonkeyPatch, *scores: tuple[float, float]) -> None:
    """Evaluations come out so, against random and greedy."""
    left = iter(scores)

    def evaluate(_: Run) -> dict[str, float]:
        first, second = next(left)
        return {"eval/vs_random": first, "eval/vs_greedy": second, "eval/vs_random_last": 9.0}

    monkeypatch.setattr(Run, "evaluate", evaluate)


EVERY = replace(SMALL, evaluation=replace(SMALL.evaluation, anchors=("random", "greedy"), every=1))


def test_the_policy_that_did_best_is_kept(tmp_path, monkeypatch):
    """By the mean over the anchors; the last ties with the second."""
    scored(monkeypatch, (0.25, -0.5), (0.5, 0.125), (1.0, -0.5), (0.375, 0.25))
    train(EVERY, tmp_path)
    assert load(tmp_path / "best.pt").decisions == 512
    assert load(tmp_path / "policy.pt").decisions == 1024


def test_the_best_so_far_outlives_a_resumption(tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "step", killing(Run.step, at=3))
    scored(monkeypatch, (0.5, 0.5), (0.1, 0.1), (0.2, 0.2), (0.4, 0.4))
    with pytest.raises(Killed):
        train(replace(EVERY, checkpoint_every=1), tmp_path)
    train(replace(EVERY, checkpoint_every=1), tmp_path, resume=True)
    assert load(tmp_path / "policy.pt").decisions == 1024
    assert load(tmp_path / "best.pt").decisions == 256


def test_without_anchors_the_newest_is_the_best(tmp_path):
    train(replace(SMALL, evaluation=EvaluationConfig(anchors=(), pairs=4)), tmp_path)
    assert load(tmp_path / "best.pt").decisions == 1024


def test_what_a_resumed_run_logs_replaces_what_was_lost(tmp_path, monkeypatch):
    """Saved after two updates, broken off after three: each step is logged once."""
    real, calls = Run.step, []

    def step(run: Run) -> dict[str, float]:
        calls.append(run)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(run)

    monkeypatch.setattr(Run, "step", step)
    config = replace(SMALL, checkpoint_every=2)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path)
    time.sleep(1.1)  # TensorBoard reads its files in the order of the seconds in their names
    train(config, tmp_path, resume=True)
    assert [step for step, _ in logged(tmp_path)["charts/SPS"]] == [256, 512, 768, 1024]


# --- the command line ---

TEXT = """
decisions = 64
num_games = 8
rollout = 8
rules = {deal = 4}
network = {width = 8, layers = 1}
evaluation = {anchors = ["random"], pairs = 2}
"""


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    (tmp_path / "tiny.toml").write_text(TEXT)
    return [str(tmp_path / "tiny.toml"), "--out", str(tmp_path / "out")]


def test_the_command_line_says_where_everything_is(given, tmp_path, capsys):
    assert main(given) == 0
    out = tmp_path / "out"
    printed = capsys.readouterr().out
    assert f"checkpoint: {out / 'policy.pt'}\n" in printed
    assert f"tensorboard --logdir {out}\n" in printed
    assert json.loads((out / "config.json").read_text())["decisions"] == 64
    assert {path.name for path in out.glob("*.pt")} == {"policy.pt", "best.pt", "state.pt"}


@pytest.mark.parametrize("name", ["policy.pt", "best.pt", "state.pt"])
def test_runs_are_not_mixed(name, given, tmp_path, capsys):
    """Whichever file an earlier one has left."""
    (tmp_path / "out").mkdir()
    path = tmp_path / "out" / name
    path.write_text("earlier")
    assert main(given) == 2
    assert capsys.readouterr().err == (
        f"error: {path} exists: give another --out, --resume or --overwrite\n"
    )
    assert path.read_text() == "earlier"


def test_an_earlier_run_is_replaced_when_told_to(given, tmp_path):
    out = tmp_path / "out"
    assert main(given) == 0
    (first,) = out.glob("events*")
    (out / "notes.txt").write_text("mine")
    assert main([*given, "--overwrite"]) == 0
    (second,) = out.glob("events*")
    assert second != first
    assert [step for step, _ in logged(out)["charts/SPS"]] == [64]
    assert (out / "notes.txt").read_text() == "mine"


def test_an_earlier_run_is_gone_on_with_when_told_to(given, tmp_path):
    config = load_config(Path(given[0]))
    run = Run(config, module.Ranks())
    run.save(tmp_path / "out" / "state.pt")
    assert main([*given, "--resume"]) == 0
    assert load(tmp_path / "out" / "policy.pt").decisions == 64


@pytest.mark.parametrize(
    ("extra", "arguments", "said"),
    [
        ("", ["--resume"], "state.pt: No such file or directory"),
        ("sede = 4", [], "tiny.toml: sede: unknown key"),
        ("threads = 3", [], "num_games: 8 games are no equal parts for 3 threads"),
        ("pool = {anchors = ['gredy']}", [], "unknown agent 'gredy'"),
        ("pool = {folder = 'FOLDER'}", [], "foreign.pt: not a checkpoint"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(extra, arguments, said, given, tmp_path, capsys):
    (tmp_path / "foreign.pt").write_text("something else")
    Path(given[0]).write_text(TEXT + extra.replace("FOLDER", str(tmp_path)))
    assert main([*given, *arguments]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert said in printed
    assert printed.count("\n") == 1
    assert not (tmp_path / "out" / "policy.pt").exists()


def test_another_configuration_is_not_gone_on_with(given, tmp_path, capsys):
    assert main(given) == 0
    Path(given[0]).write_text(f"{TEXT}seed = 4")
    before = (tmp_path / "out" / "config.json").read_text()
    assert main([*given, "--resume"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == f"error: {tmp_path / 'out' / 'state.pt'}: seed was 0, and is 4"
    assert (tmp_path / "out" / "config.json").read_text() == before


def test_a_missing_configuration_is_refused(tmp_path, capsys):
    assert main([str(tmp_path / "none.toml")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'none.toml'}: No such file")


def test_a_failed_write_is_an_error_of_the_command(given, monkeypatch, capsys):
    def write(path: Path, *_: object) -> None:
        raise CheckpointError(f"{path}: No space left on device; what was there is kept")

    monkeypatch.setattr("agents.checkpoint.write", write)
    assert main(given) == 2
    assert "No space left on device" in capsys.readouterr().err.splitlines()[-1]


# --- the mirror ---


def mirrored(text: str) -> str:
    """Cards as text, each with its rank counted from the king down."""
    return cards_text(i - i % 10 + 9 - i % 10 for i in cards(text))


def mirror(value: object) -> object:
    """The mirrored cards in a saved game's value, if it holds cards."""
    if isinstance(value, list):
        return [mirror(part) for part in value]
    if isinstance(value, str) and all(word in NAMES for word in value.split()):
        return mirrored(value)
    return value


def test_reversing_ranks_is_a_symmetry_of_the_game():
    """The mirrored state's observation, mask and hidden part, made afresh, are rearranged ones."""
    game, rng, compared = Game(seed=2), np.random.default_rng(0), 0
    while not game.is_over:
        saved = json.loads(game.to_json())
        other = Game.from_json(
            json.dumps({k: mirror(v) for k, v in saved.items()} | {"history": []})
        )
        ours, theirs = game.state(game.actor), other.state(other.actor)
        np.testing.assert_array_equal(ours[:416][OBSERVATION_PLACES], theirs[:416])
        np.testing.assert_array_equal(ours[416:][HIDDEN_PLACES], theirs[416:])
        np.testing.assert_array_equal(game.legal_mask()[ACTION_PLACES], other.legal_mask())
        compared += 1
        game.apply(int(rng.choice(game.legal_actions())))
    assert compared > 30
    assert ACTION_PLACES[[0, LAY, DISCARD + 39]].tolist() == [0, LAY + 9, DISCARD + 30]


# --- the promise ---


@pytest.mark.slow
def test_the_demo_beats_random_and_passes_greedy(tmp_path):
    """As the README and the config say; lower bounds; +0.52 and +0.155 were seen."""
    path = train(load_config(Path("configs/demo.toml")), tmp_path)
    trained = ("trained", make_agent(f"ppo:{path}"))
    for name, least in (("random", 0.35), ("greedy", 0.05)):
        score = play_match(trained, (name, make_agent(name)), RuleSet(), 2000, 1).score
        assert score.low >= least, (name, score)
