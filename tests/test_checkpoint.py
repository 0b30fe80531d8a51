"""Checkpoints: written at once, read back exactly, refused with a reason."""

import errno
import os
import pickle
from pathlib import Path

import pytest
import torch

from agents import checkpoint as module
from agents.checkpoint import FORMAT, Checkpoint, CheckpointError, fitting, load, read, save, write
from agents.network import Network, NetworkConfig, make_network
from conquian_env import RuleSet
from training import run

SHAPE = NetworkConfig(width=16, layers=2, ways=False, other_hand=True)
RECIPE = {"decisions": 5, "pool": {"anchors": ["greedy"]}}


def network(shape: NetworkConfig = SHAPE) -> Network:
    torch.manual_seed(0)
    return make_network(shape)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "deep" / "policy.pt"
    save(path, Checkpoint(network(), RuleSet(deal=8), 123, RECIPE, "abc-dirty"))
    return path


@pytest.mark.parametrize("shape", [SHAPE, NetworkConfig("plain", 8, 2)], ids=str)
def test_round_trip(tmp_path, shape):
    path = tmp_path / "policy.pt"
    save(path, Checkpoint(network(shape), RuleSet(deal=8), 123, RECIPE, "abc-dirty"))
    there = load(path)
    assert (there.rules, there.decisions) == (RuleSet(deal=8), 123)
    assert (there.recipe, there.revision) == (RECIPE, "abc-dirty")
    assert there.network.config == shape
    expected = network(shape).state_dict()
    assert list(there.network.state_dict()) == list(expected)
    for name, weights in there.network.state_dict().items():
        assert torch.equal(weights, expected[name])


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_write_that_fails_names_the_file_and_keeps_the_old_one(path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(CheckpointError) as caught:
        save(path, Checkpoint(network(), RuleSet(), 1))
    assert str(caught.value) == f"{path}: No space left on device; what was there is kept"
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_write_that_is_broken_off_keeps_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(path, Checkpoint(network(), RuleSet(), 1))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_file_is_there_at_once_or_not_at_all(path, monkeypatch):
    """What is written goes to another file until it is whole, and on the disk."""
    before, order = path.read_bytes(), []

    def replaced(part: Path, _: Path) -> None:
        order.append((part.name, path.read_bytes() == before))
        full()

    monkeypatch.setattr(module.os, "fsync", lambda _: order.append("fsync"))
    monkeypatch.setattr(Path, "replace", replaced)
    with pytest.raises(CheckpointError, match="No space left on device"):
        save(path, Checkpoint(network(), RuleSet(), 1))
    assert order == ["fsync", (f"policy.pt.{os.getpid()}.part", True)]
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_write_leaves_those_of_other_processes_alone(path):
    other = path.with_name("policy.pt.part")
    other.write_text("of another process")
    save(path, Checkpoint(network(), RuleSet(), 1))
    assert other.read_text() == "of another process"


def test_tensors_that_fit_are_copied():
    like = {"a": torch.zeros(2, 3)}
    given = {"a": torch.ones(1).expand(2, 3)}
    copied = fitting("moments", given, like)
    assert torch.equal(copied["a"], torch.ones(2, 3))
    assert copied["a"].is_contiguous()
    assert copied["a"].data_ptr() != given["a"].data_ptr()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "moments: these are not the tensors of this configuration"),
        ({}, "moments: these are not"),
        ({"a": torch.zeros(2, 3), 1: torch.zeros(1)}, "moments: these are not"),
        ({"a": None}, "moments: a is no torch.float32 of shape [2, 3]"),
        ({"a": torch.zeros(6)}, "a is no"),
        ({"a": torch.zeros(2, 3).half()}, "a is no"),
        ({"a": torch.zeros(2, 3).to_sparse()}, "a is no"),
        ({"a": torch.zeros(2, 3, device="meta")}, "a is no"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(given, said):
    with pytest.raises(CheckpointError) as caught:
        fitting("moments", given, {"a": torch.zeros(2, 3)})
    assert said in str(caught.value)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "policy.pt"
    with pytest.raises(CheckpointError) as caught:
        save(path, Checkpoint(network(), RuleSet(), 1))
    assert str(path) in str(caught.value)


def test_the_files_of_a_run_and_of_a_policy_are_told_apart(path, tmp_path):
    with pytest.raises(CheckpointError, match="not a checkpoint of format conquian-run-1"):
        read(path, run.FORMAT, run.TYPES)
    state = tmp_path / "state.pt"
    write(state, run.FORMAT, {"config": "{}"})
    with pytest.raises(CheckpointError, match=f"not a checkpoint of format {FORMAT}"):
        load(state)


class Evil:
    def __reduce__(self):
        return (print, ("run",))


def change(path: Path, **values: object) -> None:
    content = torch.load(path, weights_only=True)
    content.update(values)
    torch.save(content, path)


def flipped(data: bytes) -> bytes:
    """A bit of some weight is wrong."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def spoilt(path: Path) -> dict[str, torch.Tensor]:
    weights = torch.load(path, weights_only=True)["weights"]
    weights["value.bias"][0] = float("nan")
    return weights


def drop(path: Path, key: str) -> None:
    content = torch.load(path, weights_only=True)
    del content[key]
    torch.save(content, path)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda p: p.write_text("I am no checkpoint\n"), "not a checkpoint"),
        (lambda p: p.write_bytes(b""), "not a checkpoint"),
        (lambda p: p.write_bytes(p.read_bytes()[:-3000]), "not a checkpoint"),
        (lambda p: p.write_bytes(pickle.dumps(Evil())), "not a checkpoint"),
        (lambda p: torch.save({"format": "other"}, p), "conquian-checkpoint-2"),
        (lambda p: torch.save([1, 2], p), "conquian-checkpoint-2"),
        (lambda p: change(p, observation_version=99), "observation_version is 99"),
        (lambda p: change(p, rules={"deal": 25}), "deal=25"),
        (lambda p: change(p, rules=None), "rules"),
        (lambda p: p.write_bytes(flipped(p.read_bytes())), "damaged"),
        (lambda p: change(p, observation_version=torch.ones(2)), "observation_version"),
        (lambda p: change(p, network={"width": 32, "layers": 2}), "size mismatch"),
        (lambda p: change(p, network={"width": 16, "layers": 10**9}), "layers must .* 1000000000"),
        (lambda p: change(p, recipe="{"), "Expecting"),
        (lambda p: change(p, recipe={}), "recipe is no str"),
        (lambda p: change(p, revision=None), "revision is no str"),
        (lambda p: drop(p, "observation_version"), "observation_version is None"),
        (lambda p: change(p, weights={1: torch.ones(2)}), "weights|attribute|Missing"),
        (lambda p: change(p, weights=spoilt(p)), "not finite"),
        (lambda p: change(p, decisions="many"), "decisions"),
        (lambda p: change(p, network={"depth": 2}), "depth"),
        (lambda p: change(p, weights={}), "Missing key"),
        (lambda p: change(p, weights=None), "weights"),
        (lambda p: drop(p, "decisions"), "decisions is missing"),
        (lambda p: p.unlink(), "No such file"),
        (lambda p: (p.unlink(), p.mkdir()), "directory"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(path, damage, reason, capsys):
    damage(path)
    with pytest.raises(CheckpointError, match=reason) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr().out == ""
