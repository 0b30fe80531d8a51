"""Agents that run in a process of their own, with limits: ``ProcessAgent``."""

from agents.process.outside import Fault, FaultError, ProcessAgent

__all__ = ["Fault", "FaultError", "ProcessAgent"]
