"""Where parts are played: agents are those that were checked, and none stays."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from agents import make_agent
from agents.agent import AgentError
from agents.checkpoint import Checkpoint, save
from agents.network import NetworkConfig, make_network
from agents.policy import BASELINE
from agents.registry import files_of
from conquian_env import RuleSet
from tests.test_process import below
from training import backends
from training.backends import Setting, WorkerError, by_pairing, play_parts, prepared
from training.match import MatchResult
from training.schedule import Part, parts

TODO = parts([(0, 1)], 20, 10)


def write_policy(path: Path, seed: int) -> str:
    """The spec of a checkpoint with random weights."""
    torch.manual_seed(seed)
    save(path, Checkpoint(make_network(NetworkConfig(width=8, layers=1)), RuleSet(), 0))
    return f"ppo:{path}"


def payoff(setting: Setting) -> np.ndarray:
    return by_pairing(TODO, dict(play_parts(setting, TODO, 1, "local")))[0].payoff


def test_a_checkpoint_written_anew_is_read_anew(tmp_path):
    """In one process, as when a notebook trains between two tournaments."""
    setting = Setting((write_policy(tmp_path / "p.pt", 0), "greedy"), RuleSet(), 1)
    before = payoff(prepared(setting, 1, "local"))
    write_policy(tmp_path / "p.pt", 1)
    after = payoff(prepared(setting, 1, "local"))
    assert (after != before).any()
    write_policy(tmp_path / "p.pt", 0)
    np.testing.assert_array_equal(payoff(prepared(setting, 1, "local")), before)


@pytest.mark.parametrize("spec", ["{}", "rollout:worlds=1,policy={}"])
def test_a_checkpoint_written_anew_during_the_games_ends_them(spec, tmp_path):
    policy = write_policy(tmp_path / "p.pt", 0)
    setting = prepared(Setting((spec.format(policy), "greedy"), RuleSet(), 1), 1, "local")
    write_policy(tmp_path / "p.pt", 1)
    with pytest.raises(AgentError, match=r"p\.pt was changed since the games began"):
        payoff(setting)


def test_a_checkpoint_may_have_another_name_in_a_worker(tmp_path, monkeypatch):
    (there := tmp_path / "there").mkdir()
    write_policy(tmp_path / "p.pt", 0)
    (there / "p.pt").symlink_to(tmp_path / "p.pt")
    monkeypatch.chdir(tmp_path)
    setting = prepared(Setting(("ppo:p.pt", "greedy"), RuleSet(), 1), 1, "local")
    before = payoff(setting)
    monkeypatch.chdir(there)
    np.testing.assert_array_equal(payoff(setting), before)


def test_the_files_of_an_agent_are_its_own_and_those_of_agents_it_asks():
    assert files_of(make_agent("ppo:baseline")) == (str(BASELINE),)
    assert files_of(make_agent("pimc:base=ppo:baseline")) == (str(BASELINE),)
    assert files_of(make_agent("greedy")) == ()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_agents_of_others_end_with_the_games():
    before = below(os.getpid())
    setting = prepared(Setting(("tests.failing:Failing", "greedy"), RuleSet(), 1), 1, "local")
    played = play_parts(setting, TODO, 1, "local")
    next(played)
    assert len(below(os.getpid())) > len(before)
    list(played)
    assert below(os.getpid()) == before


def die(setting: Setting, part: Part) -> MatchResult:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it is dead")


def test_a_worker_that_is_killed_ends_the_games_with_one_line(monkeypatch):
    """As the system does when it has no memory left."""
    monkeypatch.setattr(backends, "_play_here", die)
    setting = Setting(("greedy", "random"), RuleSet(), 1)
    with pytest.raises(WorkerError, match=r"a worker was killed, .* --resume"):
        list(play_parts(setting, TODO, 2, "local"))


def count_threads(setting: Setting, part: Part) -> int:
    return torch.get_num_threads()


def test_a_worker_has_one_thread_though_torch_was_loaded_before_anything_of_ours(monkeypatch):
    monkeypatch.setattr(backends, "_play_here", count_threads)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    setting = Setting(("greedy", "random"), RuleSet(), 1)
    assert [threads for _, threads in play_parts(setting, TODO[:1], 2, "local")] == [1]
    assert "OMP_NUM_THREADS" not in os.environ


def test_parts_of_each_pairing_are_joined_in_order():
    todo = parts([(0, 1), (0, 2)], 5, 2)
    played = {}
    for part in reversed(todo):
        deals = np.arange(part.start, part.stop, dtype=np.float32)
        both = np.stack([deals, deals], 1)
        played[part] = MatchResult("a", f"b{part.second}", both, both.astype(np.int16))
    matches = by_pairing(todo, played)
    assert [match.second for match in matches] == ["b1", "b2"]
    assert [match.payoff[:, 0].tolist() for match in matches] == [[0, 1, 2, 3, 4]] * 2
