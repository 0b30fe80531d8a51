"""A run: a function of its configuration, broken off anywhere and gone on with."""

import errno
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import checkpoint, make_agent
from agents.agent import AgentError
from agents.checkpoint import Checkpoint, CheckpointError, load, save
from agents.network import NetworkConfig, make_network
from agents.policy import NetworkAgent
from conquian_env import RuleSet
from training import run as module
from training import train as train_module
from training.command import StoppedError
from training.config import Config, EvaluationConfig, PoolConfig, PPOConfig
from training.lock import LockError, holding
from training.match import play_match
from training.ranks import Ranks
from training.run import EVALUATION_SEED, DivergedError, Run
from training.toml import ConfigError
from training.train import main, train

ROOT = Path(__file__).parents[1]
# Everything that a run can carry.
FULL = Config(
    decisions=16 * 8 * 20,
    rules={"deal": 4},
    seed=3,
    num_games=16,
    rollout=8,
    checkpoint_every=2,
    threads=2,
    network=NetworkConfig(width=8, layers=1, other_hand=True),
    ppo=PPOConfig(minibatch=64, bf16=False, critic=True, reverse_ranks=True, ema=0.9, kl=0.1),
    pool=PoolConfig(share=0.5, anchors=("random",), past=2, every=1),
    evaluation=EvaluationConfig(anchors=("random",), pairs=4, every=7),
)
TOML = """
decisions = 2560
rules = {deal = 4}
seed = 3
num_games = 16
rollout = 8
checkpoint_every = 2
network = {width = 8, layers = 1, other_hand = true}
ppo = {minibatch = 64, bf16 = false, critic = true, reverse_ranks = true, ema = 0.9, kl = 0.1}
pool = {share = 0.5, anchors = ["random"], past = 2, every = 1}
evaluation = {anchors = ["random"], pairs = 4, every = 7}
"""
SHORT = replace(FULL, decisions=16 * 8 * 6)


def run_of(config: Config = SHORT, steps: int = 0) -> Run:
    run = Run(config, Ranks())
    for _ in range(steps):
        run.step()
    return run


def content(path: Path) -> dict[str, object]:
    return torch.load(path, weights_only=True)


def differences(one: object, other: object, where: str = "") -> list[str]:
    """Where two saved things differ, to the bit."""
    if isinstance(one, Tensor):
        return [] if torch.equal(one, other) else [where]
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        return [at for key in one for at in differences(one[key], other[key], f"{where}.{key}")]
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        pairs = enumerate(zip(one, other, strict=True))
        return [at for k, pair in pairs for at in differences(*pair, f"{where}.{k}")]
    return [] if one == other else [where]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The folder of FULL, never broken off."""
    folder = tmp_path_factory.mktemp("whole")
    train(FULL, folder)
    return folder


def same_as(whole: Path, folder: Path) -> None:
    assert differences(content(whole / "state.pt"), content(folder / "state.pt")) == []
    for name in ("policy.pt", "best.pt"):
        one, other = (content(where / name)["weights"] for where in (whole, folder))
        assert differences(one, other) == [], name


# --- a function of its configuration ---


def test_a_run_is_a_function_of_its_config(whole, tmp_path):
    train(FULL, tmp_path)
    same_as(whole, tmp_path)
    other = content(train(replace(FULL, seed=4), tmp_path / "other").with_name("state.pt"))
    assert ".network.value.weight" in differences(content(whole / "state.pt"), other)


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_change_nothing_but_the_rounding(threads):
    """4e-8 was seen after three updates."""
    one, other = run_of(steps=3), run_of(replace(SHORT, threads=threads), steps=3)
    for network, theirs in ((one.network, other.network), (one.critic, other.critic)):
        for ours, weights in zip(network.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(ours, weights, atol=1e-6, rtol=0)
    games = [
        np.concatenate([collector.batch.states() for collector in run.collectors])
        for run in (one, other)
    ]
    np.testing.assert_array_equal(*games)


def test_a_run_leaves_the_global_generators_alone(tmp_path):
    torch.manual_seed(7)
    np.random.seed(7)  # noqa: NPY002
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    train(SHORT, tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def test_each_update_shuffles_anew_and_as_the_same_update_of_another_run_does(monkeypatch):
    real, drawn = module.update, []

    def update(*arguments):
        drawn.append(str(arguments[-1].bit_generator.state))
        return real(*arguments)

    monkeypatch.setattr(module, "update", update)
    run_of(steps=2)
    run_of(steps=2)
    run_of(replace(SHORT, seed=4), steps=1)
    assert drawn[:2] == drawn[2:4]
    assert len(set(drawn)) == 3


def test_rates_and_weights_fall_in_a_line():
    ppo = replace(
        FULL.ppo, learning_rate=0.3, final_learning_rate=0.1, entropy=1.0, final_entropy=0.0
    )
    run = run_of(replace(SHORT, decisions=16 * 8 * 4, ppo=ppo))
    metrics = [run.step() for _ in range(4)]
    rates = [one["charts/learning_rate"] for one in metrics]
    assert rates == pytest.approx([0.3, 0.25, 0.2, 0.15])
    weights = [one["charts/entropy_weight"] for one in metrics]
    assert weights == pytest.approx([1, 0.75, 0.5, 0.25])
    assert run.optimizer.param_groups[0]["lr"] == pytest.approx(0.15)


def test_the_average_moves_towards_the_policy_faster_at_the_beginning():
    """It keeps n / (n + 10) of itself after the n-th update, and at most ``ema``."""
    config = replace(SHORT, ppo=replace(FULL.ppo, ema=0.15, learning_rate=0.01))
    run = run_of(config)
    for kept in (1 / 11, 0.15, 0.15):
        before = run.average.value.weight.detach().clone()
        run.step()
        new = run.network.value.weight.detach()
        torch.testing.assert_close(run.average.value.weight, kept * before + (1 - kept) * new)
    none = run_of(replace(SHORT, ppo=replace(FULL.ppo, ema=0.0)), steps=2)
    for mean, weights in zip(none.average.parameters(), none.network.parameters(), strict=True):
        torch.testing.assert_close(mean, weights)


def test_the_average_joins_the_pool_every_so_many_updates():
    run = run_of(replace(SHORT, pool=replace(FULL.pool, every=2)), steps=4)
    assert [past.name for past in run.pool.past] == [
        "self after 256 decisions",
        "self after 512 decisions",
    ]
    newest = run.pool.past[-1].network
    for mean, weights in zip(run.average.parameters(), newest.parameters(), strict=True):
        assert torch.equal(mean, weights)


@pytest.mark.parametrize(("games", "threads", "ranks"), [(16, 3, 1), (10, 2, 2), (2, 4, 1)])
def test_games_that_are_no_equal_parts_are_refused(games, threads, ranks):
    config = replace(SHORT, num_games=games, threads=threads)
    expected = f"num_games: {games} games are no equal parts for {threads} threads"
    with pytest.raises(ConfigError, match=expected):
        Run(config, Ranks(0, ranks))


def test_an_anchor_that_evaluations_cannot_play_is_refused_at_once(tmp_path):
    def with_anchor(spec: str) -> Config:
        return replace(SHORT, evaluation=replace(FULL.evaluation, anchors=("random", spec)))

    with pytest.raises(AgentError, match="'gredy'"):
        run_of(with_anchor("gredy"))
    path = tmp_path / "classic.pt"
    save(path, Checkpoint(make_network(FULL.network), RuleSet(), 0))
    with pytest.raises(AgentError, match=str(path)):
        run_of(with_anchor(f"ppo:{path}"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(ConfigError, match="device: torch finds no CUDA device"):
        run_of(replace(SHORT, device="cuda"))


# --- evaluation ---


def test_both_policies_are_evaluated_on_the_same_deals():
    run = run_of(replace(SHORT, evaluation=replace(FULL.evaluation, pairs=100)))
    torch.manual_seed(9)
    run.average.load_state_dict(make_network(FULL.network).state_dict())
    scores = run.evaluate()
    assert scores == run.evaluate()
    assert scores["eval/vs_random"] != scores["eval/vs_random_last"]
    for name, network in (("", run.average), ("_last", run.network)):
        agents = ("policy", NetworkAgent(network, run.rules)), ("random", make_agent("random"))
        expected = play_match(*agents, run.rules, 100, EVALUATION_SEED).payoff.mean()
        assert scores[f"eval/vs_random{name}"] == expected
    assert set(scores) == {"eval/vs_random", "eval/vs_random_last"}


# --- broken off ---


class Killed(BaseException):
    """Ends a run as ``kill -9`` does, for all that is in files."""


def killing(real: Callable, at: int) -> Callable:
    """``real``, which does not come back from the call of this number."""
    calls = []

    def call(*arguments, **named):
        calls.append(1)
        if len(calls) == at:
            raise Killed
        return real(*arguments, **named)

    return call


MOMENTS = {
    "while playing": (module.Collector, "collect", 5),
    "while learning": (module, "update", 6),
    "while evaluating": (Run, "evaluate", 1),
    "before anything is saved": (module, "update", 1),
    "while the policy is written": (train_module, "save", 3),
    "while the state is written": (module, "write", 2),
    "while the last state is written": (module, "write", 10),
    "while its bytes go to the disk": (checkpoint.os, "fsync", 4),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_broken_off_at_any_moment_ends_as_if_it_had_not_been(
    moment, whole, tmp_path, monkeypatch
):
    where, name, at = MOMENTS[moment]
    with monkeypatch.context() as patch:
        patch.setattr(where, name, killing(getattr(where, name), at))
        with pytest.raises(Killed):
            train(FULL, tmp_path)
    train(FULL, tmp_path, resume=(tmp_path / "state.pt").exists())
    same_as(whole, tmp_path)


def command(folder: Path) -> list[str]:
    config = folder / "full.toml"
    config.write_text(TOML)
    return ["-m", "training.train", str(config), "--out", str(folder / "out")]


def begun(folder: Path) -> subprocess.Popen:
    """A process that trains FULL and has saved its state."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, *command(folder)], env=environment, stderr=subprocess.PIPE, text=True
    )
    for _ in range(6000):
        if (folder / "out" / "state.pt").exists():
            return process
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.kill()
    raise AssertionError("no state after a minute")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=repr)
def test_a_process_that_is_stopped_can_be_gone_on_with_to_the_same_weights(number, whole, tmp_path):
    """Killed at once; or asked, it saves, says so, and leaves with 130."""
    process = begun(tmp_path)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 130)
    state = tmp_path / "out" / "state.pt"
    updates = content(state)["updates"]
    assert 2 <= updates < 20
    if number != signal.SIGKILL:
        assert f"stopped after {updates * 128} decisions; --resume goes on" in errors
        assert load(tmp_path / "out" / "policy.pt").decisions == updates * 128
    assert main([*command(tmp_path)[2:], "--resume"]) == 0
    same_as(whole, tmp_path / "out")


def test_a_run_stopped_where_an_evaluation_is_due_is_evaluated_as_if_it_had_not_been(
    tmp_path, monkeypatch
):
    """Else another policy might be the best."""
    config, scores = replace(FULL, decisions=16 * 8 * 15), iter([0.5, 0.25, 0.125])
    monkeypatch.setattr(Run, "evaluate", lambda _: {"eval/vs_random": next(scores)})
    real = Run.step

    def step(run: Run) -> dict[str, float]:
        if run.updates == 6:
            signal.raise_signal(signal.SIGINT)
        return real(run)

    monkeypatch.setattr(Run, "step", step)
    with pytest.raises(StoppedError, match="stopped after 896 decisions"):
        train(config, tmp_path)
    train(config, tmp_path, resume=True)
    assert load(tmp_path / "best.pt").decisions == 896
    assert next(scores, None) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=repr)
def test_a_request_to_stop_is_answered_between_two_updates(number, tmp_path, monkeypatch):
    real, calls = Run.step, []

    def step(run: Run) -> dict[str, float]:
        calls.append(run)
        if len(calls) == 3:
            signal.raise_signal(number)
        return real(run)

    monkeypatch.setattr(Run, "step", step)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(StoppedError, match="stopped after 384 decisions"):
        train(FULL, tmp_path)
    assert content(tmp_path / "state.pt")["updates"] == 3
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises, also where a shell has started the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_is_not_waited_for(tmp_path, monkeypatch):
    def step(_: Run) -> dict[str, float]:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("not reached")

    monkeypatch.setattr(Run, "step", step)
    with pytest.raises(KeyboardInterrupt):
        train(FULL, tmp_path)
    assert not (tmp_path / "state.pt").exists()


def test_a_run_that_evaluates_nothing_can_be_gone_on_with(tmp_path, monkeypatch):
    """Its best policy is the newest."""
    config = replace(SHORT, evaluation=EvaluationConfig(anchors=(), every=2))
    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", killing(Run.step, at=5))
        with pytest.raises(Killed):
            train(config, tmp_path)
    train(config, tmp_path, resume=True)
    assert content(tmp_path / "state.pt")["best"] == 6.0
    assert load(tmp_path / "best.pt").decisions == 768


def test_what_a_kill_cut_off_is_cleared_away(tmp_path):
    train(SHORT, tmp_path)
    for name in ("state.pt.123.part", "notes.part"):
        (tmp_path / name).write_text("half")
    train(SHORT, tmp_path, resume=True)
    assert [path.name for path in tmp_path.glob("*.part")] == ["notes.part"]


@pytest.mark.parametrize("how", [{}, {"resume": True}, {"overwrite": True}], ids=str)
def test_two_runs_do_not_write_to_one_folder(how, tmp_path):
    """The second one is refused, and leaves everything as it is."""
    run_of(steps=1).save(tmp_path / "state.pt")
    with holding(tmp_path):
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(LockError, match="another run is writing there"):
            train(SHORT, tmp_path, **how)
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_is_held_while_a_run_lives(tmp_path, monkeypatch):
    real = Run.step

    def step(run: Run) -> dict[str, float]:
        with pytest.raises(LockError), holding(tmp_path):
            pass
        return real(run)

    monkeypatch.setattr(Run, "step", step)
    train(SHORT, tmp_path)
    with holding(tmp_path):
        pass


def test_a_run_may_be_trained_in_another_thread(tmp_path):
    """Signals are for the main thread alone."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(train, SHORT, tmp_path).result().exists()


def test_a_run_that_is_at_its_end_is_left_as_it_is(tmp_path):
    train(SHORT, tmp_path)
    before = (tmp_path / "state.pt").read_bytes()
    train(SHORT, tmp_path, resume=True)
    assert (tmp_path / "state.pt").read_bytes() == before


# --- what cannot be gone on with ---


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"seed": 9}, "seed was 3, and is 9"),
        ({"decisions": 10**6}, "decisions was 768, and is 1000000"),
        ({"network": replace(FULL.network, width=9)}, "network.width was "),
        ({"ppo": replace(FULL.ppo, clip=0.1)}, "ppo.clip was "),
        ({"pool": replace(FULL.pool, past=3)}, "pool.past was "),
        ({"rules": "classic"}, "rules was "),
    ],
)
def test_another_configuration_is_refused_by_key(change, key, tmp_path):
    run_of(steps=1).save(tmp_path / "state.pt")
    before = (tmp_path / "state.pt").read_bytes()
    with pytest.raises(ConfigError) as caught:
        train(replace(SHORT, **change), tmp_path, resume=True)
    assert str(caught.value).startswith(f"{tmp_path / 'state.pt'}: {key}")
    assert "\n" not in str(caught.value)
    assert (tmp_path / "state.pt").read_bytes() == before


def changed(path: Path, **values: object) -> None:
    torch.save(content(path) | values, path)


def with_moments(path: Path, **values: object) -> None:
    """What Adam knows of the first weights is other, and may be of another shape."""
    optimizer = content(path)["optimizer"]
    optimizer["state"][0] |= values
    changed(path, optimizer=optimizer)


def first_moment(path: Path) -> Tensor:
    return content(path)["optimizer"]["state"][0]["exp_avg"]


def changed_in(path: Path, part: str, **values: object) -> None:
    changed(path, **{part: content(path)[part] | values})


def filled(path: Path, name: str, value: int) -> None:
    changed(path, **{name: torch.full_like(content(path)[name], value)})


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-500]),
    "no checkpoint": lambda path: path.write_text("something else"),
    "a policy": lambda path: save(path, Checkpoint(make_network(FULL.network), RuleSet(), 0)),
    "no configuration": lambda path: changed(path, config="{"),
    "a number as configuration": lambda path: changed(path, config="7"),
    "other weights": lambda path: changed(path, network={}),
    "no optimiser": lambda path: changed(path, optimizer={}),
    "past selves of no kind": lambda path: changed(
        path, pool={"anchors": ["random"], "past": [7], "added": 1}
    ),
    "too few games": lambda path: changed(path, opponent=torch.zeros(3, dtype=torch.int64)),
    "games of another size": lambda path: changed(path, states=torch.zeros(16, 5).byte()),
    "a wrong type": lambda path: changed(path, updates="many"),
    "updates below none": lambda path: changed(path, updates=-5),
    "updates past the end": lambda path: changed(path, updates=7),
    "updates past all numbers": lambda path: changed(path, updates=10**30),
    "a best that is no number": lambda path: changed(path, best=math.nan),
    "weights without a name": lambda path: changed(path, network={1: torch.ones(2)}),
    "weights of another type": lambda path: changed(
        path, average={name: one.double() for name, one in content(path)["average"].items()}
    ),
    "no critic": lambda path: changed(path, critic={}),
    "moments of another shape": lambda path: with_moments(path, exp_avg=torch.zeros(1)),
    "moments of another type": lambda path: with_moments(path, exp_avg=first_moment(path).double()),
    "moments in no order": lambda path: with_moments(path, exp_avg=first_moment(path).to_sparse()),
    "moments that are none": lambda path: with_moments(path, exp_avg=None),
    "moments of weights that are none": lambda path: changed_in(path, "optimizer", state={99: {}}),
    "moments in a list": lambda path: changed_in(path, "optimizer", state=[1]),
    "past selves without number": lambda path: changed_in(path, "pool", added="two"),
    "past selves beyond number": lambda path: changed_in(path, "pool", past=[], added=10**30),
    "more past selves than updates": lambda path: changed_in(
        path, "pool", past=2 * content(path)["pool"]["past"], added=2
    ),
    "fewer past selves than there were": lambda path: changed_in(path, "pool", past=[]),
    "games of random bytes": lambda path: changed(
        path, states=torch.randint(256, content(path)["states"].shape).byte()
    ),
    "games of nothing": lambda path: filled(path, "states", 0),
    "an opponent that is nobody": lambda path: filled(path, "opponent", 99),
    "an opponent at no table": lambda path: filled(path, "opponent_seat", 7),
    "opponents without a seat": lambda path: filled(path, "opponent_seat", -1),
    "seats without an opponent": lambda path: filled(path, "opponent", -1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_state_that_cannot_be_used_is_refused_in_one_line(damage, tmp_path):
    path = tmp_path / "state.pt"
    run_of(steps=1).save(path)
    DAMAGE[damage](path)
    with pytest.raises(CheckpointError) as caught:
        train(SHORT, tmp_path, resume=True)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


# --- what goes wrong on the way ---


def full_at(at: int) -> Callable:
    real, calls = os.fsync, []

    def fsync(number: int) -> None:
        calls.append(1)
        if len(calls) >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(number)

    return fsync


@pytest.mark.parametrize(("at", "name"), [(3, "policy.pt"), (4, "state.pt")])
def test_a_full_disk_is_told_with_the_file_and_the_old_one_is_kept(at, name, tmp_path, monkeypatch):
    """Policy and state are written after two updates, and after four."""
    monkeypatch.setattr(checkpoint.os, "fsync", full_at(at))
    with pytest.raises(CheckpointError) as caught:
        train(SHORT, tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / name}: No space left on device; what was there is kept"
    )
    monkeypatch.undo()
    assert content(tmp_path / "state.pt")["updates"] == 2
    assert not list(tmp_path.glob("*.part"))
    train(SHORT, tmp_path, resume=True)
    assert load(tmp_path / "policy.pt").decisions == 768


def spoiling(what: str, at: int) -> Callable:
    real, calls = module.update, []

    def update(learner, *arguments):
        losses = real(learner, *arguments)
        calls.append(1)
        if len(calls) == at:
            if what == "loss":
                return replace(losses, value_loss=math.nan)
            weights = learner.critic if what == "critic" else learner.network
            with torch.no_grad():
                weights.value.bias.fill_(math.inf)
        return losses

    return update


@pytest.mark.parametrize("what", ["loss", "network", "critic"])
def test_a_run_that_diverges_names_the_last_good_checkpoint(what, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "update", spoiling(what, at=4))
    with pytest.raises(DivergedError) as caught:
        train(SHORT, tmp_path)
    assert str(caught.value) == (
        "losses are not finite after 384 decisions; the last good checkpoint: "
        f"{tmp_path / 'state.pt'}, after 256 decisions"
    )
    assert content(tmp_path / "state.pt")["updates"] == 2
    assert load(tmp_path / "policy.pt").decisions == 256


def test_a_run_that_diverges_at_once_has_no_good_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "update", spoiling("loss", at=1))
    with pytest.raises(DivergedError, match="the last good checkpoint: none"):
        train(SHORT, tmp_path)
    assert not (tmp_path / "policy.pt").exists()


def test_a_step_size_that_is_far_too_big_is_divergence(tmp_path):
    ppo = replace(FULL.ppo, learning_rate=1e30, final_learning_rate=1e30)
    with pytest.raises(DivergedError, match="not finite after"):
        train(replace(SHORT, ppo=ppo), tmp_path)


def test_the_recipe_of_the_run_is_in_its_files(whole):
    recipe = json.loads((whole / "config.json").read_text())
    assert recipe == Run(FULL, Ranks()).recipe
    assert recipe["pool"]["anchors"] == ["random"]
    for name in ("policy.pt", "best.pt"):
        assert load(whole / name).recipe == recipe


# --- begun from a checkpoint ---


def test_a_run_can_begin_with_the_weights_of_another(tmp_path):
    path = train(SHORT, tmp_path)
    run, weights = run_of(replace(SHORT, start=str(path))), load(path).network.state_dict()
    for network in (run.network, run.average):
        for name, tensor in network.state_dict().items():
            assert torch.equal(tensor, weights[name])
    assert run.updates == 0


def test_a_run_is_gone_on_with_without_what_it_began_with(tmp_path, monkeypatch):
    start = tmp_path / "start.pt"
    save(start, Checkpoint(make_network(FULL.network), RuleSet(deal=4), 0))
    config = replace(SHORT, start=str(start))
    train(config, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Run, "step", killing(Run.step, at=4))
        with pytest.raises(Killed):
            train(config, tmp_path / "parts")
    start.unlink()
    train(config, tmp_path / "parts", resume=True)
    same_as(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rules": {"deal": 5}}, "start: rules of"),
        ({"network": replace(SHORT.network, width=16)}, "start: network of"),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_no_beginning(change, named, tmp_path):
    path = train(SHORT, tmp_path)
    with pytest.raises(ConfigError, match=named):
        run_of(replace(SHORT, start=str(path), **change))
