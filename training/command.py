"""How a command ends: with 0, or one line on stderr and a status that says why."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from conquian_env.errors import ConquianError

STOPPED = 130  # the exit status of what Ctrl-C ended
P = ParamSpec("P")


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
