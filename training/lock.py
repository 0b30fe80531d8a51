"""A folder that one process writes to at a time."""

import errno
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conquian_env.errors import ConquianError

NAME = ".lock"
NO_LOCKS = errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK


class LockError(ConquianError):
    """Another process writes to the folder; names it."""


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Keep a folder for this process, until the block is left or the process ends, however it does.

    The folder is made if it is not there. The lock is the kernel's, on a file that stays behind
    empty. A file system that knows no locks keeps nobody away.

    Raises:
        LockError: another process holds the folder, or another block of this one.
        OSError: the folder cannot be made, or nothing written there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NAME).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockError(f"{folder}: another run is writing there; give another --out") from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
        yield
