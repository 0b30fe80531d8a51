"""Stands between a ``ProcessAgent`` and its agent, and leaves nothing of the agent behind.

``python -I -S warden.py REQUESTS REPLIES MEMORY_MB COMMAND...``: runs the command in a session of
its own. When the command ends, or nobody is left to write to the pipe REQUESTS (because whoever
started this died, say), every process that came from it is killed. Exits with the command's status,
128 and the signal if it was killed. The standard library alone, so that it is small and starts
fast.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path

LINUX = sys.platform == "linux"
DEATH_SIGNAL, SUBREAPER = 1, 36  # of prctl(2)


def main(arguments: list[str]) -> int:
    """Run the command to its end, or to ours."""
    requests, replies, memory_mb = map(int, arguments[:3])
    _prctl(SUBREAPER, 1)  # orphans from below come to this process, so none is lost sight of
    wake = _wake_at_children()
    agent = os.fork()
    if agent == 0:
        _become(arguments[3:], memory_mb)
    os.close(replies)
    status = _wait(agent, requests, wake)
    _kill_all(agent)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _prctl(option: int, value: int) -> None:
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wake_at_children() -> int:
    """A descriptor that can be read from when a child has ended."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reading


def _become(command: list[str], memory_mb: int) -> None:
    """Turn this process into the agent's; does not return."""
    try:
        os.setsid()
        _prctl(DEATH_SIGNAL, signal.SIGKILL)
        _limit(resource.RLIMIT_CORE, 0)
        if memory_mb:
            _limit(resource.RLIMIT_DATA, memory_mb << 20)
        if LINUX:  # if the machine has no memory left, it is the agent that goes
            Path("/proc/self/oom_score_adj").write_text("1000")
        os.execv(command[0], command)
    except BaseException as error:
        os.write(2, f"{error!r}\n".encode())
    finally:
        os._exit(127)


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def _wait(agent: int, requests: int, wake: int) -> int:
    """The agent's status when it ends, 0 if it is to be ended."""
    poll = select.poll()
    poll.register(requests, 0)  # hung up is told without being asked for
    poll.register(wake, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if wake in ready:
            os.read(wake, 4096)
        for pid, status in iter(_reap, (0, 0)):
            if pid == agent:
                return status
        if requests in ready:
            return 0


def _reap() -> tuple[int, int]:
    """Pid and status of a child that ended, zeros if none did."""
    try:
        return os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return 0, 0


def _kill_all(agent: int) -> None:
    """Kill and reap until there is no child; who loses its parent is a child the next time."""
    with contextlib.suppress(OSError):
        os.killpg(agent, signal.SIGKILL)
    while True:
        for pid in _children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        except ChildProcessError:
            return


def _children() -> list[int]:
    try:
        return [int(pid) for pid in Path("/proc/thread-self/children").read_text().split()]
    except OSError:  # not Linux, or without that file: the group has to do
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
