"""Agents by name: ``greedy``, ``ppo:path``, ``package.module:Class``."""

import importlib
from typing import Any

from agents.agent import Agent, AgentError

# Modules are imported when asked for, so that torch is loaded only for a network.
KNOWN = {
    "random": "agents.random:Random",
    "greedy": "agents.heuristic:Greedy",
    "ppo": "agents.policy:Policy",
}


def make_agent(spec: str) -> Agent:
    """The agent that a spec names.

    ``name``, ``name:argument`` and ``name:argument,option=value`` name the agents of ``KNOWN``;
    ``package.module:Class`` names any class on the path, made without arguments.

    Raises:
        AgentError: there is no such agent, or it refused its arguments; the message has the spec.
    """
    name, _, rest = spec.partition(":")
    target, text = (KNOWN[name], rest) if name in KNOWN else (spec, "")
    module_name, _, class_name = target.partition(":")
    if not class_name:
        raise AgentError(
            f"unknown agent {spec!r}: known are {', '.join(KNOWN)} and package.module:Class"
        )
    try:
        factory = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError) as error:
        raise AgentError(f"agent {spec!r}: {error}") from error
    try:
        agent = factory(*_arguments(text), **_options(text))
    except TypeError as error:
        raise AgentError(f"agent {spec!r}: {error}") from error
    if not isinstance(agent, Agent):
        raise AgentError(f"agent {spec!r} has no act(views)")
    return agent


def _arguments(text: str) -> list[str]:
    return [part for part in text.split(",") if part and "=" not in part]


def _options(text: str) -> dict[str, Any]:
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)
