"""Checkpoints: written at once, read back exactly, refused with a reason."""

import pickle
from pathlib import Path

import pytest
import torch

from agents import checkpoint as module
from agents.checkpoint import Checkpoint, CheckpointError, load, save
from agents.network import SuitNetwork
from conquian_env import RuleSet


@pytest.fixture
def path(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    path = tmp_path / "deep" / "policy.pt"
    save(path, Checkpoint(SuitNetwork(16, 2), RuleSet(deal=8), 123))
    return path


def test_round_trip(path):
    read = load(path)
    torch.manual_seed(0)
    expected = SuitNetwork(16, 2).state_dict()
    assert (read.rules, read.decisions) == (RuleSet(deal=8), 123)
    for name, weights in read.network.state_dict().items():
        assert torch.equal(weights, expected[name])


def test_a_failed_write_keeps_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def half(content, file):
        file.write(b"half a checkpoint")
        raise OSError("disk full")

    monkeypatch.setattr(module.torch, "save", half)
    with pytest.raises(OSError, match="disk full"):
        save(path, Checkpoint(SuitNetwork(16, 2), RuleSet(), 1))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


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
        (lambda p: torch.save({"format": "other"}, p), "conquian-checkpoint-1"),
        (lambda p: torch.save([1, 2], p), "conquian-checkpoint-1"),
        (lambda p: change(p, observation_version=99), "observation version 99"),
        (lambda p: change(p, rules={"deal": 25}), "deal=25"),
        (lambda p: change(p, rules=None), "rules"),
        (lambda p: p.write_bytes(flipped(p.read_bytes())), "damaged"),
        (lambda p: change(p, observation_version=torch.ones(2)), "observation_version"),
        (lambda p: change(p, network={"width": 32, "layers": 2}), "size mismatch"),
        (lambda p: change(p, network={"width": 16, "layers": 10**9}), "layers=1000000000"),
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
