"""The one place where functions are handed to numba."""

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_FIXING = threading.Lock()
DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


@cache
def _sources_digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` with numba, cached on disk and without the GIL.

    With ``NUMBA_DISABLE_JIT=1`` the plain Python function comes back. A cache folder that cannot
    be written costs a compilation per process, never an error.
    """
    if DISABLED:
        return function
    try:
        compiled: Any = njit(cache=True, nogil=True)(function)
        # numba looks at the function's own file only, and would go on using a compiled rule
        # after the rule changed in another one: the stamp must hold every source.
        index = compiled._cache._cache_file
        folders = Path(__file__).parent, Path(function.__code__.co_filename).parent
        index._source_stamp = (index._source_stamp, *map(_sources_digest, folders))
    except (RuntimeError, AttributeError):  # no writable folder, or a numba that keeps it elsewhere
        compiled = njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]  # numba ships no types


def fix_signature(function: Callable[..., Any], signature: Any) -> None:
    """Compile a recursive function for one signature, once and for good.

    Unless this is done before, numba links it wrongly into any other recursive function that is
    cached, which then crashes in the next process (numba issue 6061).
    """
    with _FIXING:  # two threads may be the first to ask
        if not DISABLED and not function.signatures:  # type: ignore[attr-defined]
            function.compile(signature)  # type: ignore[attr-defined]
            function.disable_compile()  # type: ignore[attr-defined]
