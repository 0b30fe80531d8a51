"""What an agent is made of."""

from pathlib import Path

import pytest

from training.digests import DigestError, digest_of

SPEC = "other_agents.mine:Mine"


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """A package of somebody else's, ``other_agents``, on the path."""
    folder = tmp_path / "elsewhere" / "other_agents"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "mine.py").write_text("class Mine: pass")
    monkeypatch.syspath_prepend(str(folder.parent))
    return folder


def test_every_file_of_the_package_counts_but_what_python_keeps(package):
    first = digest_of(SPEC)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "x.pyc").write_bytes(b"1")
    assert digest_of(SPEC) == first
    (package / "weights.bin").write_bytes(b"1")
    second = digest_of(SPEC)
    (package / "weights.bin").write_bytes(b"2")
    assert len({first, second, digest_of(SPEC)}) == 3


def test_what_is_behind_links_counts(package, tmp_path):
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "w.bin").write_bytes(b"1")
    (package / "weights").symlink_to(weights)
    first = digest_of(SPEC)
    (weights / "w.bin").write_bytes(b"2")
    assert digest_of(SPEC) != first


def test_links_in_a_circle_are_refused(package, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (package / "there").symlink_to(other)
    (other / "back").symlink_to(package)
    with pytest.raises(DigestError, match=r"back is a link back to a folder it is in"):
        digest_of(SPEC)


def test_a_checkpoint_is_one_of_an_agents_files():
    assert digest_of("ppo:baseline") != digest_of("greedy") == digest_of("random")
    assert digest_of("pimc:base=ppo:baseline") == digest_of("ppo:baseline")


@pytest.mark.parametrize(
    "spec", ["__main__:x", ":x", "no_such_package:x", "a\0b:x", "sys:x", ".a:x"]
)
def test_an_agent_without_files_is_refused_by_its_spec(spec):
    with pytest.raises(DigestError) as caught:
        digest_of(spec)
    assert repr(spec) in str(caught.value)
