"""Networks on disk: written at once or not at all, refused with a reason when they do not fit."""

import io
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agents.agent import AgentError
from agents.network import Network, NetworkConfig, make_network
from conquian_env import RuleSet, __version__
from conquian_env.errors import ConquianError, shown
from conquian_env.observation import OBSERVATION_VERSION

FORMAT = "conquian-checkpoint-2"
TYPES: dict[str, type] = {
    "rules": dict, "network": dict, "weights": dict, "decisions": int, "recipe": str,
    "revision": str,
}  # fmt: skip


class CheckpointError(AgentError):
    """A file that is no checkpoint of this project, or one that does not fit; names the file."""


@dataclass(frozen=True)
class Checkpoint:
    """A network with what it was trained on.

    Attributes:
        decisions: the learner's so far.
        recipe: the configuration of the run, as JSON has it.
        revision: of the sources, as git names it, or empty.
    """

    network: Network
    rules: RuleSet
    decisions: int
    recipe: dict[str, Any] = field(default_factory=dict)
    revision: str = ""


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint."""
    content = {
        "rules": checkpoint.rules.to_dict(),
        "network": asdict(checkpoint.network.config),
        "decisions": checkpoint.decisions,
        "recipe": json.dumps(checkpoint.recipe),
        "revision": checkpoint.revision,
        "weights": checkpoint.network.state_dict(),
    }
    write(path, FORMAT, content)


def load(path: Path | str) -> Checkpoint:
    """Read a checkpoint; no code in the file is run.

    Raises:
        CheckpointError: the file is missing, no checkpoint, damaged, or of another layout.
    """
    content = read(Path(path), FORMAT, TYPES)
    try:
        rules = RuleSet.from_dict(content["rules"])
        network = make_network(NetworkConfig(**content["network"]))
        network.load_state_dict(content["weights"])
        recipe = json.loads(content["recipe"])
    except (ConquianError, RuntimeError, TypeError, AttributeError, ValueError) as error:
        raise CheckpointError(f"{path}: {' '.join(str(error).split())}") from None
    if not all(weights.isfinite().all() for weights in network.state_dict().values()):
        raise CheckpointError(f"{path}: weights are not finite")
    return Checkpoint(network, rules, content["decisions"], recipe, content["revision"])


def write(path: Path, file_format: str, content: dict[str, Any]) -> None:
    """Write a file of tensors; a reader sees the old file or the new one, never a part.

    Raises:
        CheckpointError: it cannot be written; the old file is as it was.
    """
    stamp = {"version": __version__, "observation_version": OBSERVATION_VERSION}
    buffer = io.BytesIO()
    torch.save({"format": file_format} | stamp | content, buffer)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise CheckpointError(
            f"{path}: {error.strerror or error}; what was there is kept"
        ) from None
    finally:
        with suppress(OSError):  # there is none, or its folder is none
            part.unlink()


def read(path: Path, file_format: str, types: dict[str, type]) -> dict[str, Any]:
    """Read a file of tensors; no code in it is run.

    Args:
        path: the file.
        file_format: what it must be.
        types: of the entries that it must have.

    Raises:
        CheckpointError: the file is missing, of another format, damaged, or of another layout.
    """
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
    if not isinstance(content, dict) or content.get("format") != file_format:
        raise CheckpointError(f"{path}: not a checkpoint of format {file_format}")
    version = content.get("observation_version")
    if type(version) is not int or version != OBSERVATION_VERSION:
        raise CheckpointError(
            f"{path}: observation_version is {shown(version)}, this is {OBSERVATION_VERSION}"
        )
    for key, expected in types.items():
        if key not in content:
            raise CheckpointError(f"{path}: {key} is missing")
        if not isinstance(content[key], expected):
            raise CheckpointError(f"{path}: {key} is no {expected.__name__}")
    return content


def fitting(name: str, given: object, like: Mapping[Any, Tensor]) -> dict[Any, Tensor]:
    """Tensors of a file if they have names, shapes and types as those of ``like``; copies.

    What is adopted without a copy, as optimisers do, could crash the process.

    Raises:
        CheckpointError: they are others; the message begins with ``name``.
    """
    if not isinstance(given, dict) or given.keys() != like.keys():
        raise CheckpointError(f"{name}: these are not the tensors of this configuration")
    for key, model in like.items():
        if not _is_like(given[key], model):
            raise CheckpointError(f"{name}: {key} is no {model.dtype} of shape {[*model.shape]}")
    return {key: one.clone(memory_format=torch.contiguous_format) for key, one in given.items()}


def _is_like(tensor: object, model: Tensor) -> bool:
    return (
        isinstance(tensor, Tensor)
        and (tensor.device.type, tensor.layout) == ("cpu", torch.strided)
        and (tensor.shape, tensor.dtype) == (model.shape, model.dtype)
    )
