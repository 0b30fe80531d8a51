"""A folder that is held is refused to others, and free once its holder is gone."""

import errno
import subprocess
import sys

import pytest

from training import lock
from training.lock import LockError, holding

HOLDER = """
import sys, time
from pathlib import Path
from training.lock import holding
with holding(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_held_folder_is_refused_and_free_afterwards(tmp_path):
    out = tmp_path / "a" / "b"
    with holding(out):
        with pytest.raises(LockError) as caught, holding(out):
            pass
        with holding(tmp_path / "other"):
            pass
    assert str(caught.value) == f"{out}: another run is writing there; give another --out"
    with holding(out):
        assert [path.stat().st_size for path in out.iterdir()] == [0]


def test_an_error_in_the_block_frees_the_folder(tmp_path):
    with pytest.raises(KeyboardInterrupt), holding(tmp_path):
        raise KeyboardInterrupt
    with holding(tmp_path):
        pass


def test_a_killed_holder_frees_the_folder(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LockError), holding(tmp_path):
            pass
        process.kill()
    with holding(tmp_path):
        pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_keeps_nobody_away(number, tmp_path, monkeypatch):
    def flock(*_: object) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(lock.fcntl, "flock", flock)
    with holding(tmp_path), holding(tmp_path):
        pass


def test_other_errors_are_told(tmp_path, monkeypatch):
    def flock(*_: object) -> None:
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(lock.fcntl, "flock", flock)
    with pytest.raises(OSError, match="broken"), holding(tmp_path):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), holding(tmp_path / "file"):
        pass
