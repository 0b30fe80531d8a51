"""Where the parts of a tournament are played: in this process, in others, on a Ray cluster.

Each gives the same results: a part depends on its deals, its agents and the seed alone.
"""

import hashlib
import importlib.util
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from tqdm import tqdm

from agents import Agent, make_agent
from agents.agent import AgentError
from agents.process import ProcessAgent
from agents.process.child import THREADS
from agents.registry import KNOWN, files_of
from conquian_env import RuleSet
from conquian_env.errors import ConquianError, OptionError
from training.match import MatchResult, check_plays, join, play_deals
from training.schedule import Part
from training.toml import STRICT, Count, Positive

Backend = Literal["local", "ray"]


class WorkerError(ConquianError):
    """A process that played was killed from outside."""


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
    """What is the same in all parts.

    Attributes:
        files: each checkpoint that the agents play by, with its SHA-256 when they were tried.
    """

    specs: tuple[str, ...]
    rules: RuleSet
    seed: int
    records: int = 0
    limits: Limits = Limits()
    files: tuple[tuple[str, str], ...] = ()


def is_ours(spec: str) -> bool:
    """Whether an agent is one of this project's, which need no process of their own."""
    return spec.partition(":")[0] in KNOWN


class Players:
    """The agents of a setting in this process, each made when it is first asked for.

    One of ours plays in this process, any other in a process of its own, until they are closed.

    Attributes:
        files: of the agents so far, as in ``Setting``.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.files = setting, dict[str, str]()
        self._agents: dict[str, Agent] = {}

    def agent(self, spec: str) -> Agent:
        """The agent that a spec names."""
        if spec not in self._agents:
            if is_ours(spec):
                agent = self._agents[spec] = make_agent(spec)
                for path in files_of(agent):  # after it was read, so that no change is missed
                    real = Path(path).resolve()  # a worker may know it by another name
                    self.files[str(real)] = hashlib.sha256(real.read_bytes()).hexdigest()
            else:
                self._agents[spec] = self.setting.limits.agent(spec)
        return self._agents[spec]

    def play(self, part: Part) -> MatchResult:
        """The games of one part.

        Raises:
            AgentError: a checkpoint was changed since the agents were checked.
        """
        specs, rules, seed, recorded, _, files = self.setting
        first, second = ((specs[n], self.agent(specs[n])) for n in (part.first, part.second))
        for path, _ in self.files.items() - set(files):
            raise AgentError(f"{path} was changed since the games began")
        records = max(0, min(recorded, part.stop) - part.start)
        return play_deals(first, second, rules, np.arange(part.start, part.stop), seed, records)

    def close(self) -> None:
        """End the processes of all agents."""
        for agent in self._agents.values():
            if isinstance(agent, ProcessAgent):
                agent.close()


def prepared(setting: Setting, workers: int, backend: Backend) -> Setting:
    """The setting with its files, when all has been tried that the games need.

    Raises:
        AgentError: an agent cannot be made, or plays other rules.
        OptionError: ``workers`` is below 1, or Ray is not installed.
    """
    if workers < 1:
        raise OptionError(f"workers must be at least 1, not {workers}")
    if backend == "ray" and importlib.util.find_spec("ray") is None:
        raise OptionError("backend ray needs the extra: pip install conquian-env[ray]")
    files: dict[str, str] = {}
    for spec in setting.specs:
        with closing(Players(setting)) as players:
            check_plays(spec, players.agent(spec), setting.rules)
            files |= players.files
    return setting._replace(files=tuple(files.items()))


def play_all(
    setting: Setting, todo: Sequence[Part], workers: int, backend: Backend, done: int = 0
) -> Iterator[tuple[Part, MatchResult]]:
    """``play_parts`` with a progress bar, where ``done`` deals were played before."""
    left = sum(part.stop - part.start for part in todo)
    with tqdm(total=2 * (done + left), initial=2 * done, unit=" games", unit_scale=True) as bar:
        for part, result in play_parts(setting, todo, workers, backend):
            yield part, result
            bar.update(2 * (part.stop - part.start))


def by_pairing(todo: Sequence[Part], played: Mapping[Part, MatchResult]) -> tuple[MatchResult, ...]:
    """The parts of each pairing as one match, in the order in which the pairings come."""
    found: dict[tuple[int, int], list[MatchResult]] = {}
    for part in todo:
        found.setdefault((part.first, part.second), []).append(played[part])
    return tuple(map(join, found.values()))


def play_parts(
    setting: Setting, parts: Sequence[Part], workers: int, backend: Backend
) -> Iterator[tuple[Part, MatchResult]]:
    """Play parts of a ``prepared`` setting, ``workers`` at a time; each comes when it is over."""
    if backend == "ray":
        yield from _on_ray(setting, parts, workers)
    elif workers == 1:
        with closing(Players(setting)) as players:
            for part in parts:
                yield part, players.play(part)
    else:
        yield from _in_processes(setting, parts, workers)


def _in_processes(
    setting: Setting, parts: Sequence[Part], workers: int
) -> Iterator[tuple[Part, MatchResult]]:
    """Fresh processes: a forked one would hold the deals of others, and torch's locked threads.

    Raises:
        WorkerError: one of them was killed.
    """
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, _begin_worker)
    try:
        with _one_thread():
            tasks = {pool.submit(_play_here, setting, part): part for part in parts}
        for task in as_completed(tasks):
            yield tasks[task], task.result()
    except BrokenProcessPool:
        raise WorkerError(
            "a worker was killed, for want of memory perhaps; a tournament goes on with --resume"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes that start meanwhile have one core: libraries look here when they are loaded."""
    missing = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(missing, "1"))
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


def _begin_worker() -> None:
    """Ctrl-C is the first process's to handle; a worker ends with it, however that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


@lru_cache(maxsize=1)
def _players(setting: Setting) -> Players:
    return Players(setting)


def _play_here(setting: Setting, part: Part) -> MatchResult:
    """A part in a worker, which keeps its agents for the next one."""
    return _players(setting).play(part)


def _on_ray(
    setting: Setting, parts: Sequence[Part], workers: int
) -> Iterator[tuple[Part, MatchResult]]:
    """On the Ray cluster that RAY_ADDRESS names, or one that is started here."""
    import ray  # noqa: PLC0415  # an extra

    started = not ray.is_initialized()
    if started:
        ray.init(num_cpus=None if "RAY_ADDRESS" in os.environ else workers, log_to_driver=False)
    try:
        play = ray.remote(num_cpus=1)(_play_here)
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
