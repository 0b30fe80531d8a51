"""What an agent is made of, as a digest, so that a change of it is seen."""

import hashlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from agents import make_agent
from agents.registry import files_of
from conquian_env.errors import ConquianError
from training.backends import is_ours


class DigestError(ConquianError):
    """An agent whose files cannot be told."""


def digest_of(spec: str) -> str:
    """SHA-256 of an agent's own files, hexadecimal: its package, and checkpoints it plays by.

    Raises:
        AgentError: there is no such agent of ours.
        DigestError: no files are found, or a link leads back to a folder it is in.
    """
    package = "agents" if is_ours(spec) else spec.partition(":")[0].partition(".")[0]
    files = [file for root in _roots(spec, package) for file in _named(root)]
    if not files:
        raise DigestError(f"agent {spec!r}: there are no files of {package!r}")
    if is_ours(spec):
        files += [("checkpoint", Path(path)) for path in files_of(make_agent(spec))]
    digest = hashlib.sha256()
    for name, file in files:
        digest.update(f"{name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def _roots(spec: str, package: str) -> list[Path]:
    """The folders of a package, or the file of a module."""
    try:
        found = importlib.util.find_spec(package) if package else None
    except (ImportError, ValueError):  # __main__ has no spec
        found = None
    if found is None:
        raise DigestError(f"agent {spec!r}: there is no package {package!r}")
    origin = [found.origin] if found.origin else []
    return [Path(place) for place in found.submodule_search_locations or origin]


def _named(root: Path) -> list[tuple[str, Path]]:
    """The files of a package with their names in it, or the one of a module."""
    if not root.is_dir():
        return [(root.name, root)] if root.is_file() else []
    return sorted((file.relative_to(root).as_posix(), file) for file in _below(root))


def _below(folder: Path, above: tuple[Path, ...] = ()) -> Iterator[Path]:
    """All files below a folder, those behind links too: an agent may read them."""
    real = folder.resolve()
    if real in above:
        raise DigestError(f"{folder} is a link back to a folder it is in")
    for entry in folder.iterdir():
        if entry.is_file():
            yield entry
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _below(entry, (*above, real))
