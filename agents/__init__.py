"""Strategies: one file each, one registry."""

from agents.agent import Agent
from agents.registry import make_agent

__all__ = ["Agent", "make_agent"]
