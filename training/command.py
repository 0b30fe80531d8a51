"""How a command ends: with 0, or one line on stderr and a status that says why; and its signals."""

import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec

from conquian_env.errors import ConquianError

STOPPED = 130  # the exit status of what Ctrl-C ended
P = ParamSpec("P")
Handler = Callable[[int, FrameType | None], Any] | int | None


class StoppedError(ConquianError):
    """A run that was asked to stop has saved and left."""


def command(main: Callable[P, None]) -> Callable[P, int]:
    """``main`` as a command, which returns the exit status: 0, ``STOPPED``, or 2 for an error."""

    @wraps(main)
    def run(*arguments: P.args, **options: P.kwargs) -> int:
        try:
            main(*arguments, **options)
        except StoppedError as stopped:
            print(f"\n{stopped}", file=sys.stderr)
            return STOPPED
        except (ConquianError, OSError, MemoryError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        return 0

    return run


@contextmanager
def handling(numbers: Iterable[int], handler: Handler) -> Iterator[dict[int, Handler]]:
    """Meanwhile, signals are answered in one way; gives the handlers that come back after it."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield before
    finally:
        for number, former in before.items():
            signal.signal(number, former)
