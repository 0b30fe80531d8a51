"""Configurations read from TOML files: unknown keys and values out of range are refused by name."""

import json
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from conquian_env import RuleSet
from conquian_env.errors import ConquianError
from conquian_env.rules import rule_set

T = TypeVar("T")


class ConfigError(ConquianError, ValueError):
    """A configuration that cannot be used; names the file and the key."""


def rules_of(value: str | dict[str, Any]) -> RuleSet:
    """A preset by its name, or a table of rule fields."""
    return RuleSet.from_dict(value) if isinstance(value, dict) else rule_set(value)


def _playable(value: str | dict[str, Any]) -> str | dict[str, Any]:
    rules_of(value)
    return value


STRICT = ConfigDict(extra="forbid", strict=True)
LARGEST = 1e30  # of numbers that become float32
Count = Annotated[int, Field(ge=1, lt=1 << 63)]
Positive = Annotated[float, Field(gt=0, le=LARGEST)]
Rules = Annotated[str | dict[str, Any], AfterValidator(_playable)]


def first_fault(error: ValidationError) -> str:
    """The first thing that pydantic refused, and where it is."""
    first = error.errors()[0]
    return " ".join([*map(str, first["loc"]), first["msg"]])


def load_toml(path: Path) -> dict[str, Any]:
    """What is in a TOML file.

    Raises:
        ConfigError: it is missing, or no TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, or too deep
        raise ConfigError(f"{path}: {error}") from None


def checked(values: dict[str, Any], kind: type[T], source: str) -> T:
    """A configuration of one kind, a pydantic dataclass.

    Args:
        values: as TOML has them.
        kind: what they are to be.
        source: what errors call them.

    Raises:
        ConfigError: a key is unknown, or a value out of range.
    """
    try:
        # Through JSON, because only there a strict check reads nested tables as dataclasses.
        text = json.dumps(values, default=str)
    except (ValueError, RecursionError) as error:  # too many digits, or too deep
        raise ConfigError(f"{source}: {error}") from None
    try:
        return TypeAdapter(kind).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        what = "unknown key" if first["type"] == "unexpected_keyword_argument" else first["msg"]
        what = str(first.get("ctx", {}).get("error", what))  # of a validator of ours, as it is
        raise ConfigError(": ".join(filter(None, (source, key, what)))) from None
