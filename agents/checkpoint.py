"""Networks on disk: written at once or not at all, refused with a reason when they do not fit."""

import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agents.agent import AgentError
from agents.network import SuitNetwork
from conquian_env import RuleSet, __version__
from conquian_env.errors import RuleSetError
from conquian_env.observation import OBSERVATION_VERSION

FORMAT = "conquian-checkpoint-1"


class CheckpointError(AgentError):
    """A file that is no checkpoint of this project, or one that does not fit; names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A network with what it was trained on; ``decisions`` are the learner's so far."""

    network: SuitNetwork
    rules: RuleSet
    decisions: int


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint; a reader sees the old file or the new one, never a part."""
    network = checkpoint.network
    content = {
        "format": FORMAT,
        "version": __version__,
        "observation_version": OBSERVATION_VERSION,
        "rules": checkpoint.rules.to_dict(),
        "network": {"width": network.width, "layers": network.depth},
        "decisions": checkpoint.decisions,
        "weights": network.state_dict(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: Path | str) -> Checkpoint:
    """Read a checkpoint; no code in the file is run.

    Raises:
        CheckpointError: the file is missing, no checkpoint, damaged, or of another layout.
    """
    content = _read(Path(path))
    version = content["observation_version"]
    if type(version) is not int or version != OBSERVATION_VERSION:
        raise CheckpointError(
            f"{path}: trained on observation version {version}, this is {OBSERVATION_VERSION}"
        )
    try:
        rules = RuleSet.from_dict(content["rules"])
        network = SuitNetwork(**content["network"])
        network.load_state_dict(content["weights"])
    except (RuleSetError, RuntimeError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path}: {' '.join(str(error).split())}") from None
    if not all(weights.isfinite().all() for weights in network.state_dict().values()):
        raise CheckpointError(f"{path}: weights are not finite")
    return Checkpoint(network, rules, content["decisions"])


KINDS = {"observation_version": int, "rules": dict, "network": dict, "weights": dict,
         "decisions": int}  # fmt: skip
MOST = {"width": 4096, "layers": 64}


def _read(path: Path) -> dict[str, Any]:
    try:
        file = io.BytesIO(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path!s}: {getattr(error, 'strerror', None) or error}") from None
    try:
        damaged = zipfile.ZipFile(file).testzip()  # torch does not look at the check sums
        file.seek(0)
        content = None if damaged else torch.load(file, map_location="cpu", weights_only=True)
    except Exception:  # torch raises many kinds for files that are not its own
        content = None
    if content is None:
        raise CheckpointError(f"{path}: not a checkpoint, or a damaged one")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not a checkpoint of format {FORMAT}")
    for key, kind in KINDS.items():
        if key not in content:
            raise CheckpointError(f"{path}: {key} is missing")
        if not isinstance(content[key], kind):
            raise CheckpointError(f"{path}: {key} is no {kind.__name__}")
    for key, size in content["network"].items():
        if type(size) is not int or not 1 <= size <= MOST.get(key, 1):
            raise CheckpointError(f"{path}: network {key}={size!r}")
    return content
