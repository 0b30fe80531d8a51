"""Where the parts of a tournament are played: in this process, in others, on a Ray cluster.

Each gives the same results: a part depends on its deals, its agents and the seed alone.
"""

import importlib.util
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from agents import Agent, make_agent
from agents.process import ProcessAgent
from agents.registry import KNOWN
from conquian_env import RuleSet
from conquian_env.errors import OptionError
from training.match import MatchResult, check_plays, play_deals
from training.schedule import Part
from training.toml import STRICT, Count, Positive

Backend = Literal["local", "ray"]


@dataclass(frozen=True, config=STRICT)
class Limits:
    """Of an agent outside this project, see ``agents.process.ProcessAgent``.

    Attributes:
        move_seconds: for a decision, on the average over a call.
        start_seconds: until the agent is made.
        memory_mb: of private memory; 0 for no limit.
        threads: of the numeric libraries.
    """

    move_seconds: Positive = 1.0
    start_seconds: Positive = 60.0
    memory_mb: Annotated[int, Field(ge=0)] = 2048
    threads: Count = 1

    def agent(self, spec: str) -> ProcessAgent:
        """Start an agent in a process of its own."""
        return ProcessAgent(
            spec,
            move_seconds=self.move_seconds,
            start_seconds=self.start_seconds,
            memory_mb=self.memory_mb or None,
            threads=self.threads,
            restarts=RESTARTS,
        )


RESTARTS = 1_000_000  # how often an agent may fail is counted by part


class Setting(NamedTuple):
    """What is the same in all parts."""

    specs: tuple[str, ...]
    rules: RuleSet
    seed: int
    records: int
    limits: Limits


def is_ours(spec: str) -> bool:
    """Whether an agent is one of this project's, which need no process of their own."""
    return spec.partition(":")[0] in KNOWN


def check_starts(spec: str, rules: RuleSet, limits: Limits) -> None:
    """Make an agent once, so that one which cannot play is refused before the games.

    Raises:
        AgentError: it cannot be made, or plays other rules.
    """
    if is_ours(spec):
        check_plays(spec, make_agent(spec), rules)
    else:
        with limits.agent(spec) as agent:
            check_plays(spec, agent, rules)


@cache
def _agent(spec: str, limits: Limits) -> Agent:
    """An agent of this process: one of ours plays in it, any other in a process of its own."""
    return make_agent(spec) if is_ours(spec) else limits.agent(spec)


def play_part(setting: Setting, part: Part) -> MatchResult:
    """The games of one part."""
    first, second = (
        (setting.specs[number], _agent(setting.specs[number], setting.limits))
        for number in (part.first, part.second)
    )
    deals = np.arange(part.start, part.stop)
    records = max(0, min(setting.records, part.stop) - part.start)
    return play_deals(first, second, setting.rules, deals, setting.seed, records)


def check_backend(workers: int, backend: Backend) -> None:
    """Refuse what cannot play.

    Raises:
        OptionError: ``workers`` is below 1, or Ray is not installed.
    """
    if workers < 1:
        raise OptionError(f"workers must be at least 1, not {workers}")
    if backend == "ray" and importlib.util.find_spec("ray") is None:
        raise OptionError("backend ray needs the extra: pip install conquian-env[ray]")


def play_parts(
    setting: Setting, parts: Sequence[Part], workers: int, backend: Backend
) -> Iterator[tuple[Part, MatchResult]]:
    """Play parts, ``workers`` at a time, and give each when it is over."""
    if backend == "ray":
        yield from _on_ray(setting, parts, workers)
    elif workers == 1:
        for part in parts:
            yield part, play_part(setting, part)
    else:
        yield from _in_processes(setting, parts, workers)


def _in_processes(
    setting: Setting, parts: Sequence[Part], workers: int
) -> Iterator[tuple[Part, MatchResult]]:
    """Fresh processes: a forked one would hold the deals of others, and torch's locked threads."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _begin_worker)
    try:
        tasks = {pool.submit(play_part, setting, part): part for part in parts}
        for task in as_completed(tasks):
            yield tasks[task], task.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _begin_worker() -> None:
    """Ctrl-C is the first process's to handle; a worker has one core."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _on_ray(
    setting: Setting, parts: Sequence[Part], workers: int
) -> Iterator[tuple[Part, MatchResult]]:
    """On the Ray cluster that RAY_ADDRESS names, or one that is started here."""
    import ray  # noqa: PLC0415  # an extra

    started = not ray.is_initialized()
    if started:
        ray.init(num_cpus=None if "RAY_ADDRESS" in os.environ else workers, log_to_driver=False)
    try:
        play = ray.remote(num_cpus=1)(play_part)
        waiting, tasks = list(reversed(parts)), dict[Any, Part]()
        while waiting or tasks:
            while waiting and len(tasks) < workers:
                part = waiting.pop()
                tasks[play.remote(setting, part)] = part
            (task,), _ = ray.wait(list(tasks), num_returns=1)
            yield tasks.pop(task), ray.get(task)
    finally:
        if started:
            ray.shutdown()
