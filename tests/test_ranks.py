"""Several processes that learn one policy, started as ``torchrun`` starts them."""

import os
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
import torch

from tests.test_run import Killed, killing
from training.config import load_config
from training.ranks import Ranks, joined
from training.run import Run
from training.train import train

ROOT = Path(__file__).parents[1]
TEXT = """
decisions = 768
rules = {deal = 4}
num_games = 16
rollout = 8
threads = THREADS
checkpoint_every = 3
network = {width = 8, layers = 1, other_hand = true}
ppo = {minibatch = 64, bf16 = false, critic = true, reverse_ranks = true}
pool = {share = 0.5, anchors = ["random"], past = 2, every = 1}
evaluation = {anchors = ["random"], pairs = 4, every = 4}
"""


def config_in(folder: Path, threads: int) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "config.toml"
    path.write_text(TEXT.replace("THREADS", str(threads)))
    return path


def torchrun(folder: Path, *extra: str) -> subprocess.CompletedProcess[str]:
    """Two processes of one thread each, over loopback; none is left if they wait for ever."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", "-m", "training.train"]
    command += [str(config_in(folder, 1)), "--out", str(folder / "out"), *extra]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= {"GLOO_SOCKET_IFNAME": "lo"}
    with subprocess.Popen(
        command, env=environment, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True
    ) as process:
        try:
            printed, errors = process.communicate(timeout=120)
        except BaseException:
            # torchrun gives each worker a session of its own, and ends them when asked to.
            process.terminate()
            process.wait(60)
            raise
    return subprocess.CompletedProcess(command, process.returncode, printed, errors)


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    done = torchrun(folder)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("checkpoint: ") == 1
    return folder / "out"


def content(folder: Path) -> dict[str, object]:
    return torch.load(folder / "state.pt", weights_only=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_two_processes_learn_what_one_learns(threads, two, tmp_path):
    """After six updates weights differed by 3e-8; games, opponents and past selves by nothing."""
    train(load_config(config_in(tmp_path, threads)), tmp_path)
    one, other = content(tmp_path), content(two)
    for kind in ("network", "average", "critic"):
        for name, weights in one[kind].items():
            torch.testing.assert_close(other[kind][name], weights, atol=3e-7, rtol=0)
    for name in ("states", "opponent", "opponent_seat"):
        assert torch.equal(one[name], other[name]), name
    names = [[name for name, _ in state["pool"]["past"]] for state in (one, other)]
    assert names[0] == names[1]
    assert (one["updates"], one["best"]) == (other["updates"], other["best"])


@pytest.mark.slow
def test_two_processes_go_on_with_what_one_began(two, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "step", killing(Run.step, at=5))
    with pytest.raises(Killed):
        train(load_config(config_in(tmp_path, 1)), tmp_path / "out")
    assert content(tmp_path / "out")["updates"] == 3
    done = torchrun(tmp_path, "--resume")
    assert done.returncode == 0, done.stderr[-3000:]
    one, other = content(tmp_path / "out"), content(two)
    for name, weights in one["network"].items():
        torch.testing.assert_close(other["network"][name], weights, atol=3e-7, rtol=0)
    assert torch.equal(one["states"], other["states"])


def test_alone_a_process_sums_and_gathers_nothing_but_its_own():
    with joined("cpu") as ranks:
        assert ranks == Ranks(0, 1)
        assert torch.equal(ranks.sum(torch.arange(3)), torch.arange(3))
        assert torch.equal(ranks.gather(torch.arange(3)), torch.arange(3))
