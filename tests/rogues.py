"""Agents that misbehave, for the processes of ``test_process.py``; light to import.

Those that fail in ``act`` answer a call of one decision as they should, and fail in any other.
"""

import ctypes
import hashlib
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import numpy as np

from conquian_env import RuleSet, Views


class First:
    """The lowest legal action."""

    def act(self, views: Views) -> object:
        actions = views.mask.argmax(axis=1)
        return actions if len(views) == 1 else self.misbehave(views, actions)

    def misbehave(self, views: Views, actions: np.ndarray) -> object:
        return actions


# --- answers ---


class Raises(First):
    def misbehave(self, views, actions):
        raise ValueError("no idea")


class Interrupts(First):
    def misbehave(self, views, actions):
        raise KeyboardInterrupt


class RudeError(Exception):
    def __repr__(self):
        return "no\nidea\x1b[2J"


class RaisesRudely(First):
    def misbehave(self, views, actions):
        raise RudeError


class UnprintableError(Exception):
    def __repr__(self):
        return 1 / 0


class RaisesUnprintable(First):
    def misbehave(self, views, actions):
        raise UnprintableError


class RaisesMuch(First):
    def misbehave(self, views, actions):
        raise ValueError("much " * 10**6)


class Illegal(First):
    """In rows 1 and 3."""

    def misbehave(self, views, actions):
        views.mask[:] = True
        actions[[1, 3]] = 82, -1
        return actions


class Huge(First):
    def misbehave(self, views, actions):
        return np.full(len(actions), 2**64 - 1, np.uint64)


class Longer(First):
    def misbehave(self, views, actions):
        return np.append(actions, 0)


class Column(First):
    def misbehave(self, views, actions):
        return actions[:, None]


class Floats(First):
    def misbehave(self, views, actions):
        return actions.astype(float)


class Nothing(First):
    def misbehave(self, views, actions):
        return None


class Ragged(First):
    def misbehave(self, views, actions):
        return [[0], [0, 1]]


class Lists(First):
    """Which is allowed."""

    def misbehave(self, views, actions):
        return actions.tolist()


# --- time, memory and ends ---


class Sleeps(First):
    def misbehave(self, views, actions):
        time.sleep(1e6)


class Clings(First):
    """Spins, and neither SIGTERM nor an interrupt ends it."""

    def misbehave(self, views, actions):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass


class SlowOnce(First):
    """As what compiles at its first decision."""

    slow = True

    def act(self, views):
        time.sleep(1.0 if self.slow else 0.0)
        self.slow = False
        return super().act(views)


class Eats(First):
    def misbehave(self, views, actions):
        eaten = []
        while True:
            eaten.append(bytearray(100))


class EatsTensors(First):
    """Plays with a network in torch at one decision."""

    def __init__(self):
        import torch  # noqa: PLC0415  # for this one only

        self.empty, self.layer = torch.empty, torch.nn.Linear(2048, 2048)

    def act(self, views):
        self.layer(self.empty(512, 2048)).sum().backward()
        return super().act(views)

    def misbehave(self, views, actions):
        eaten = []
        while True:
            eaten.append(self.empty(1 << 24))


class Exits(First):
    def misbehave(self, views, actions):
        sys.exit(3)


class ExitsAtOnce(First):
    def misbehave(self, views, actions):
        os._exit(4)


class KillsItself(First):
    def misbehave(self, views, actions):
        os.kill(os.getpid(), signal.SIGKILL)


class KillsItsGroup(First):
    def misbehave(self, views, actions):
        os.killpg(0, signal.SIGTERM)
        time.sleep(1e6)


class Crashes(First):
    def misbehave(self, views, actions):
        ctypes.string_at(0)


class ClosesAll(First):
    def misbehave(self, views, actions):
        os.closerange(0, 256)
        return actions


class Scribbles(First):
    """Writes into every descriptor that takes it: a reply without end."""

    def misbehave(self, views, actions):
        for descriptor in range(3, 64):
            with suppress(OSError):
                os.write(descriptor, struct.pack("<BI", 1, 2**32 - 1) + b"x" * 1000)
        return actions


# --- starts ---


class RefusesToStart:
    def __init__(self):
        raise ValueError("not today")


class HangsAtStart:
    def __init__(self):
        time.sleep(1e6)


class ExitsAtStart:
    def __init__(self):
        sys.exit("a wish to leave")


class StartsOnce(First):
    def __init__(self):
        Path(tempfile.gettempdir(), "started").touch(exist_ok=False)


class EatsAtStart(Eats):
    def __init__(self):
        self.misbehave(None, None)


class NoAct:
    pass


class Picky(First):
    """Raises at a decision whose seed is 13."""

    def act(self, views):
        if 13 in views.seeds:
            raise ValueError("13")
        return views.mask.argmax(axis=1)


class Counts(First):
    """Its calls."""

    calls = 0

    def act(self, views):
        self.calls += 1
        print(self.calls)
        return super().act(views)


class OnlyNano(First):
    rules = RuleSet.preset("nano")


# --- what it reaches ---


class Loud(First):
    """Prints twenty megabytes, some of them no text, then a last word."""

    def misbehave(self, views, actions):
        for _ in range(100):
            print("x" * 100_000)
            print("y" * 50_000, file=sys.stderr)
            os.write(1, bytes(range(256)) * 200)
        print("\x1b[2Jthe last word")
        return actions


class Digests(First):
    """Prints a digest of every array it was given, and scribbles on them."""

    def act(self, views):
        print(digest(views))
        actions = views.mask.argmax(axis=1)
        for field in fields(views):
            if field.name != "rules":
                getattr(views, field.name)[:] = 0
        return actions


def digest(views: Views) -> str:
    """Of everything in the views."""
    rest = [(f.name, getattr(views, f.name)) for f in fields(views) if f.name != "rules"]
    kinds = [(name, array.dtype.str, array.shape) for name, array in rest]
    content = b"".join(array.tobytes() for _, array in rest)
    return hashlib.sha256(repr((views.rules, kinds)).encode() + content).hexdigest()


class Meddles(First):
    """Changes what a process has one of; plays by its own random numbers, though."""

    def __init__(self):
        self.meddle()

    def act(self, views):
        self.meddle()
        return views.mask.argmax(axis=1)

    def meddle(self):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  # the point of it
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        np.zeros = np.ones
        sys.path.clear()
        os.environ.clear()
        os.chdir("/")
        os.umask(0o777)


class Forks(First):
    """Leaves processes behind: one in its group, one in a session and with a parent of its own.

    They hold every descriptor open.
    """

    def act(self, views):
        if os.fork() == 0:
            time.sleep(1e6)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                time.sleep(1e6)
            os._exit(0)
        subprocess.Popen(["sleep", "1000000"])
        return super().act(views)

    def misbehave(self, views, actions):
        while True:
            pass


class Spies(First):
    """Prints what the ordinary routes tell of whoever started it."""

    def act(self, views):
        import builtins  # noqa: PLC0415

        print("environment", dict(os.environ))
        print("arguments", Path("/proc/self/cmdline").read_bytes())
        print("memory", hasattr(builtins, "the_deal"))
        print("stdin", repr(sys.stdin.read()))
        for descriptor in os.listdir("/proc/self/fd"):
            path = Path("/proc/self/fd") / descriptor
            print("descriptor", descriptor, os.readlink(path) if path.is_symlink() else None)
        for folder in Path("/proc").glob("[0-9]*"):
            for name in ("cmdline", "environ"):
                try:
                    print(name, folder.name, (folder / name).read_bytes())
                except OSError as error:
                    print(name, folder.name, error)
        print("end")
        return super().act(views)
