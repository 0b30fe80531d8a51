"""An agent's process seen from outside: its start, one exchange at a time, its end."""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from functools import cache
from pathlib import Path

from agents.process.wire import Reply, parse_reply
from conquian_env.errors import shown

WARDEN = Path(__file__).with_name("warden.py")
INSIDE = ("-P", "-u", "-X", "faulthandler", "-m", "agents.process.inside")
NAMESPACES = ("--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc")
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# The rest of the environment stays here: a script may have put a seed into it.
KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "LD_LIBRARY_PATH"),
    *("CUDA_VISIBLE_DEVICES", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", *THREADS),
)
LOG_BYTES = 16_384
STOP_SECONDS = 5.0  # until the warden itself is killed
READ_BYTES, LOG_READS = 1 << 16, 16  # a pipe holds a MiB at most
MOST_POLL = 3_600_000  # milliseconds


@cache
def unshare() -> tuple[str, ...]:
    """The command that puts another one into namespaces of its own; nothing where none may."""
    command = (shutil.which("unshare") or "", *NAMESPACES)
    if not command[0]:
        return ()
    tried = subprocess.run([*command, "true"], check=False, capture_output=True)
    return () if tried.returncode else command


def environment(threads: int | None) -> dict[str, str]:
    """What an agent's process sees of this one's environment, and where it finds modules."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    numbers = {} if threads is None else dict.fromkeys(THREADS, str(threads))
    return kept | numbers | {"PYTHONPATH": path}


class Log:
    """The last of what a process printed, on both its streams."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.last = descriptor, b""

    def __str__(self) -> str:
        return "".join(map(_harmless, self.last.decode(errors="replace")))

    def read(self) -> bool:
        """Take some of what is there; false at its end."""
        read = os.read(self.descriptor, READ_BYTES)
        self.last = (self.last + read)[-LOG_BYTES:]
        return bool(read)

    def drain(self) -> None:
        """Take what is there, and what is printed meanwhile, up to a bound."""
        with suppress(BlockingIOError):
            for _ in range(LOG_READS):
                self.read()


class Child:
    """One process of an agent, in a session of its own; see ``ProcessAgent`` for the arguments.

    Attributes:
        isolated: it is in namespaces of its own.
        log: what it printed.
        stop: kills it with all that came from it, and reaps it; the second time it does nothing.

    Raises:
        OSError, ValueError: the system refuses the command.
    """

    def __init__(self, spec: str, memory_mb: int | None, threads: int | None) -> None:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        log, printed = os.pipe()
        self.isolated, self.log = bool(unshare()), Log(log)
        pipes = (requests, replies)
        try:
            process = subprocess.Popen(
                _command(spec, pipes, memory_mb), stdin=subprocess.DEVNULL, stdout=printed,
                stderr=printed, pass_fds=pipes, env=environment(threads), start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError):
            _close(self._requests, self._replies, log)
            raise
        finally:
            _close(*pipes, printed)
        for descriptor in (self._requests, log):
            os.set_blocking(descriptor, False)
        self._process = process
        self.stop = weakref.finalize(self, _stop, process, self.log, self._requests, self._replies)

    @property
    def pid(self) -> int:
        """Of the process that all others come from."""
        return self._process.pid

    def exchange(self, message: bytes, most: int, seconds: float) -> tuple[Reply, bytes]:
        """Send a message and wait for the reply, of at most ``most`` bytes.

        Raises:
            TimeoutError: it did not come in time.
            ConnectionError: the process ended or closed its pipe, or what came is no reply.
        """
        deadline = time.monotonic() + seconds
        self._unsent, self._received = memoryview(message), b""
        while (answer := self._answer(most)) is None:
            self._serve(deadline - time.monotonic())
        return answer

    def _answer(self, most: int) -> tuple[Reply, bytes] | None:
        try:
            return parse_reply(self._received, most)
        except ValueError as error:
            raise ConnectionError(f"it sent no reply: {error}") from None

    def _serve(self, seconds: float) -> None:
        """Send, receive and read the log, as far as that goes; wait until it does."""
        if seconds <= 0:
            raise TimeoutError
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        poll.register(self.log.descriptor, select.POLLIN)
        if self._unsent:
            poll.register(self._requests, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(min(1000 * seconds, MOST_POLL))}
        alive = self.log.descriptor not in ready or self.log.read()
        if self._replies in ready:
            read = os.read(self._replies, READ_BYTES)
            self._received += read
            alive = alive and bool(read)
        if not alive:
            raise ConnectionError(self._ending())
        if self._requests in ready:
            self._send()

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._requests, self._unsent) :]
        except BrokenPipeError:
            raise ConnectionError(self._ending()) from None

    def _ending(self) -> str:
        """How the process ended; the pipe may have been closed before."""
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        with suppress(ValueError):
            number = -code if code < 0 else code - 128
            return f"its process was killed by {signal.Signals(number).name}"
        self.log.drain()
        *_, last = ["", *filter(None, map(str.strip, str(self.log).splitlines()))]
        return f"its process ended with status {code}" + (f" after {shown(last)}" if last else "")


def _harmless(letter: str) -> str:
    """Without what would move a terminal's cursor."""
    return letter if letter.isprintable() or letter in "\n\t" else "?"


def _command(spec: str, pipes: tuple[int, int], memory_mb: int | None) -> list[str]:
    requests, replies = map(str, pipes)
    warden = (sys.executable, "-I", "-S", str(WARDEN), requests, replies, str(memory_mb or 0))
    return [*unshare(), *warden, sys.executable, *INSIDE, requests, replies, spec]


def _stop(process: "subprocess.Popen[bytes]", log: Log, requests: int, replies: int) -> None:
    _close(requests)  # which tells the warden
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    log.drain()
    _close(replies, log.descriptor)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
