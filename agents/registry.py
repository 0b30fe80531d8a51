"""Agents by name: ``greedy``, ``ppo:path``, ``package.module:Class``."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agents.agent import Agent, AgentError

# Modules are imported when asked for, so that torch is loaded only for a network.
KNOWN = {
    "random": "agents.random:Random",
    "greedy": "agents.heuristic:Greedy",
    "expert": "agents.expert:Expert",
    "rollout": "agents.search:Rollout",
    "pimc": "agents.search:PIMC",
    "ismcts": "agents.search:ISMCTS",
    "ppo": "agents.policy:Policy",
}
OPTION = re.compile(r"(?:(?P<rest>.*),)?(?P<name>\w+)=(?P<value>[^,]*)")


def make_agent(spec: str) -> Agent:
    """The agent that a spec names.

    ``name``, ``name:argument``, ``name:option=value`` and ``name:argument,option=value`` name the
    agents of ``KNOWN``; ``package.module:Class`` names any class on the path, made without
    arguments.

    Raises:
        AgentError: there is no such agent, or it cannot be made; the message has the spec.
    """
    name, _, text = spec.partition(":")
    target, text = (KNOWN[name], text) if name in KNOWN else (spec, "")
    module_name, _, class_name = target.partition(":")
    if not class_name:
        raise AgentError(
            f"unknown agent {spec!r}: known are {', '.join(KNOWN)} and package.module:Class"
        )
    with _told(spec):
        factory = getattr(importlib.import_module(module_name), class_name)
        arguments = _arguments(factory, text)
        agent = factory(*arguments.args, **arguments.kwargs)
    if not isinstance(agent, Agent):
        raise AgentError(f"agent {spec!r} has no act(views)")
    return agent


@contextmanager
def _told(spec: str) -> Iterator[None]:
    """Whatever an agent's code raises is an AgentError that names it; memory is another matter."""
    try:
        yield
    except (AgentError, MemoryError):
        raise
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise AgentError(f"agent {spec!r}: {said}") from error


def files_of(agent: Agent) -> tuple[str, ...]:
    """Paths of the checkpoints that an agent of ours plays by, itself or through those it asks."""
    parts = vars(agent).values()
    own = (str(agent.path),) if hasattr(agent, "path") else ()
    return own + tuple(file for part in parts if isinstance(part, Agent) for file in files_of(part))


def _arguments(factory: Callable[..., Any], text: str) -> inspect.BoundArguments:
    """Options from the end of the text; what comes before them, a path say, is one argument."""
    options: dict[str, str] = {}
    while option := OPTION.fullmatch(text):
        text = option["rest"] or ""
        options[option["name"]] = option["value"]
    return inspect.signature(factory).bind(*([text] if text else []), **options)
