"""An agent that is not ours, in a process of its own with limits: ``ProcessAgent``."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.agent import AgentError
from agents.process.child import Child
from agents.process.wire import MOST_TEXT, Reply, line, request
from conquian_env import RuleSet, Views
from conquian_env.errors import OptionError, shown
from conquian_env.view import are_legal

GRACE = 1.0  # seconds that any call may take besides


class Fault(StrEnum):
    """What an agent did instead of answering."""

    RAISED = "raised"
    ILLEGAL = "illegal"
    STALLED = "stalled"
    MEMORY = "memory"
    LOST = "lost"
    NOT_STARTED = "not started"


class FaultError(AgentError):
    """An agent in a process of its own failed, and its process was killed.

    Attributes:
        agent: its spec.
        fault: in what way.
        text: one line that says it.
    """

    def __init__(self, agent: str, fault: Fault, text: str) -> None:
        super().__init__(agent, fault, text)  # all of them, so that it can be pickled
        self.agent, self.fault, self.text = agent, fault, text

    def __str__(self) -> str:
        return f"agent {self.agent}: {self.text}"


class _Broken(Exception):  # noqa: N818  # a fault before it is known whose it is
    def __init__(self, fault: Fault, text: str) -> None:
        super().__init__(text)
        self.fault = fault


REPLIES = {
    Reply.RAISED: (Fault.RAISED, "it raised "),
    Reply.ILLEGAL: (Fault.ILLEGAL, ""),
    Reply.MEMORY: (Fault.MEMORY, "it ran out of memory: "),
    Reply.REFUSED: (Fault.NOT_STARTED, ""),
}


class ProcessAgent:
    """An agent in a fresh interpreter of its own, which cannot stop, slow or disturb this one.

    It is sent what ``Views`` holds and nothing else, and what it answers is checked here. Its
    process has its own memory, random numbers, signal handlers, descriptors and standard streams
    (no input; output goes to ``log``), a few of this one's environment variables, and a session of
    its own. It is never asked to end but killed, with every process that it started; so it is when
    this process ends in any way, ``kill -9`` included.

    After a fault, or when it was to ``forget``, the next ``act`` starts it anew; after more than
    ``restarts`` faults every ``act`` fails at once.

    What this is no protection from: it is no sandbox. The agent runs as the same user, and may read
    the file system (so keep a tournament's seed and results out of what it can guess the name of)
    and use the network. Where the command ``unshare`` of Linux may make namespaces (``isolated``
    says so) it sees no other process, and cannot read their memory, environment or command line
    nor send them signals; elsewhere it can, by way of ``/proc``. For programs that mean harm use a
    container. Needs a POSIX system; memory is limited on Linux alone.

    Args:
        spec: as for ``make_agent``; modules are looked for where this process does.
        move_seconds: for a decision, on the average over a call: a call of n decisions may take
            n times that and ``GRACE``. The first call may take what is left of ``start_seconds``
            besides, for what is compiled or loaded at the first decision.
        start_seconds: until the agent is made.
        memory_mb: of private memory that each of its processes may reserve for data, or None
            (RLIMIT_DATA: the address space that RLIMIT_AS counts is more than twice that with
            torch, most of it files of libraries). Memory that is shared does not count.
        threads: of the numeric libraries, by the usual environment variables; None leaves them.
        restarts: how many faults it may have and still be started again.

    Attributes:
        faults: the FaultErrors so far.
        rules: the only RuleSet it plays; missing if the agent has none.

    Raises:
        FaultError: it could not be started.
        OptionError: a limit is not positive.
    """

    rules: RuleSet

    def __init__(
        self,
        spec: str,
        *,
        move_seconds: float = 1.0,
        start_seconds: float = 60.0,
        memory_mb: int | None = 2048,
        threads: int | None = None,
        restarts: int = 10,
    ) -> None:
        _check_seconds("move_seconds", move_seconds)
        _check_seconds("start_seconds", start_seconds)
        _check_count("memory_mb", memory_mb, 1)
        _check_count("threads", threads, 1)
        _check_count("restarts", restarts, 0)
        self.spec, self.move_seconds, self.start_seconds = spec, move_seconds, start_seconds
        self.memory_mb, self.threads, self.restarts = memory_mb, threads, restarts
        self.faults: list[FaultError] = []
        self._child: Child | None = None
        self._closed, self._spare = False, 0.0
        self._start()

    @property
    def running(self) -> bool:
        """There is a process: not from a fault to the next ``act``, nor when closed."""
        return self._child is not None and self._child.stop.alive

    @property
    def isolated(self) -> bool:
        """Its process cannot see others."""
        return self._child is not None and self._child.isolated

    @property
    def log(self) -> str:
        """The last 16 KiB that its process, or the last one it had, was seen to print."""
        return "" if self._child is None else str(self._child.log)

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n], all legal.

        Raises:
            FaultError: there is no such answer; the process was killed.
            AgentError: it is closed.
        """
        self._check_open()
        n = len(views)
        if not self.running:
            self._recover()
        seconds, self._spare = n * self.move_seconds + GRACE + self._spare, 0.0
        with self._killing():
            body = self._ask(request(views), Reply.ACTIONS, 8 * n, seconds)
            return _judged(body, views.mask)

    def forget(self) -> None:
        """End its process, so that the next ``act`` asks one that remembers nothing but files.

        Between the two games of a deal, say, of which it saw the hands in the first.

        Raises:
            AgentError: it is closed.
        """
        self._check_open()
        self._kill()

    def close(self) -> None:
        """Kill the process for good."""
        self._closed = True
        self._kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise AgentError(f"agent {self.spec} is closed")

    def _recover(self) -> None:
        """Start a process, unless there were too many faults."""
        if len(self.faults) > self.restarts:
            last = self.faults[-1]
            text = f"given up after {len(self.faults)} faults: {last.text}"
            raise FaultError(self.spec, last.fault, text)
        self._start()

    def _start(self) -> None:
        begun = time.monotonic()
        with self._killing():
            try:
                self._child = Child(self.spec, self.memory_mb, self.threads)
                body = self._ask(b"", Reply.READY, MOST_TEXT, self.start_seconds)
                if body:
                    self.rules = RuleSet.from_text(body.decode())
            except (_Broken, OSError, ValueError) as error:
                if isinstance(error, _Broken) and error.fault == Fault.NOT_STARTED:
                    raise
                raise _Broken(Fault.NOT_STARTED, f"could not be started: {error}") from None
        self._spare = max(0.0, begun + self.start_seconds - time.monotonic())

    def _ask(self, message: bytes, wanted: Reply, most: int, seconds: float) -> bytes:
        """The body of the reply that is wanted."""
        assert self._child is not None
        try:
            kind, body = self._child.exchange(message, max(most, MOST_TEXT), seconds)
        except TimeoutError:
            raise _Broken(Fault.STALLED, f"no answer within {seconds:.4g} seconds") from None
        except ConnectionError as error:
            raise _Broken(Fault.LOST, str(error)) from None
        if kind != wanted:
            fault, text = REPLIES.get(kind, (Fault.LOST, "an answer to no question "))
            raise _Broken(fault, text + line(body))
        return body

    @contextmanager
    def _killing(self) -> Iterator[None]:
        """Kill the process if what is done meanwhile fails: half an exchange is of no use."""
        try:
            yield
        except _Broken as broken:
            self._kill()
            text = str(broken).removeprefix(f"agent {self.spec}: ")
            self.faults.append(FaultError(self.spec, broken.fault, text))
            raise self.faults[-1] from None
        except BaseException:
            self._kill()
            raise

    def _kill(self) -> None:
        if self._child is not None:
            self._child.stop()


def _check_seconds(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise OptionError(f"{name} must be a positive number of seconds, not {shown(value)}")


def _check_count(name: str, value: int | None, least: int) -> None:
    if value is not None and (type(value) is not int or value < least):
        raise OptionError(f"{name} must be a whole number from {least} on, not {shown(value)}")


def _judged(body: bytes, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The actions that came back, int64 [n], legal ones."""
    if len(body) != 8 * len(mask):
        raise _Broken(Fault.LOST, "it sent actions for another number of decisions")
    actions = np.frombuffer(body, np.int64)
    rows = np.flatnonzero(~are_legal(actions, mask))
    if len(rows):
        text = f"action {actions[rows[0]]} is not legal in row {rows[0]}"
        raise _Broken(Fault.ILLEGAL, text)
    return actions.copy()
