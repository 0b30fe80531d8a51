"""The one place where functions are handed to numba."""

import hashlib
import os
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from llvmlite import ir
from numba import int64, njit
from numba.extending import intrinsic, overload

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
        # after the rule changed in another one. What is of another version it does not even read.
        index = compiled._cache._cache_file
        folders = Path(__file__).parent, Path(function.__code__.co_filename).parent
        index._version = (index._version, *map(_sources_digest, folders))
    except (RuntimeError, AttributeError):  # no writable folder, or a numba that keeps it elsewhere
        compiled = njit(nogil=True)(function)
    return compiled  # type: ignore[no-any-return]  # numba ships no types


def instruction(name: str, *flags: bool) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Have compiled code do what a function of one integer does by one instruction of LLVM."""

    def emit(_: Any, builder: Any, __: Any, values: Any) -> Any:
        return getattr(builder, name)(*values, *(ir.Constant(ir.IntType(1), f) for f in flags))

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        if not DISABLED:
            one: Any = intrinsic(lambda _, __: (int64(int64), emit))
            overload(function)(lambda mask: lambda mask: one(mask))  # noqa: PLW0108  # no intrinsic
        return function

    return decorate


def fix_signature(function: Callable[..., Any], signature: Any) -> None:
    """Compile a recursive function for one signature, once and for good.

    Unless this is done before, numba links it wrongly into any other recursive function that is
    cached, which then crashes in the next process (numba issue 6061).
    """
    with _FIXING:  # two threads may be the first to ask
        if not DISABLED and not function.signatures:  # type: ignore[attr-defined]
            function.compile(signature)  # type: ignore[attr-defined]
            function.disable_compile()  # type: ignore[attr-defined]
