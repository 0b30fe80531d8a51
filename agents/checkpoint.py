"""Networks on disk: written at once or not at all, refused with a reason when they do not fit."""

import io
import os
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
    with part.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def load(path: Path | str) -> Checkpoint:
    """Read a checkpoint; no code in the file is run.

    Raises:
        CheckpointError: the file is missing, no checkpoint, damaged, or of another layout.
    """
    content = _read(Path(path))
    if content["observation_version"] != OBSERVATION_VERSION:
        raise CheckpointError(
            f"{path}: trained on observation version {content['observation_version']}, "
            f"this is version {OBSERVATION_VERSION}"
        )
    try:
        rules = RuleSet.from_dict(content["rules"])
        network = SuitNetwork(**content["network"])
        network.load_state_dict(content["weights"])
    except (RuleSetError, RuntimeError, TypeError) as error:
        raise CheckpointError(f"{path}: {str(error).splitlines()[0]}") from None
    return Checkpoint(network, rules, content["decisions"])


def _read(path: Path) -> dict[str, Any]:
    try:
        file = io.BytesIO(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from None
    try:
        content = torch.load(file, map_location="cpu", weights_only=True)
    except Exception:  # torch raises many kinds for files that are not its own
        raise CheckpointError(f"{path}: not a checkpoint, or a damaged one") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError(f"{path}: not a checkpoint of format {FORMAT}")
    missing = {"observation_version", "rules", "network", "weights", "decisions"} - set(content)
    if missing:
        raise CheckpointError(f"{path}: {min(missing)} is missing")
    return content
