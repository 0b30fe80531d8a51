"""Self-play from scratch: ``python -m training.train configs/demo.toml``.

The road: rollout (play a batch of games) → advantages → update → checkpoint, again and again.
``torchrun --nproc-per-node 2 -m training.train …`` shares the games out between processes.
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Self

import torch
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents.checkpoint import Checkpoint, save
from training.command import StoppedError, command, handling
from training.config import Config, load_config
from training.lock import holding
from training.ppo import Losses
from training.ranks import Ranks, joined
from training.run import DivergedError, Run
from training.toml import ConfigError

# Every metric that is logged; the x axis is the number of real decisions played.
METRICS = {
    "charts/learning_rate": "the optimiser's step size",
    "charts/entropy_weight": "weight of the entropy bonus",
    "charts/SPS": "real decisions a second since the start or resumption, evaluations included",
    "charts/episodic_return": "return of seat 0, mean over the deals of self-play that ended",
    "charts/draws": "share of those deals that were drawn",
    "charts/pool_return": "return of the policy, mean over the deals against the pool that ended",
    "charts/episodic_length": "real decisions a deal, both seats",
    "perf/engine": "seconds of the rollout in which the games were stepped",
    "perf/inputs": "seconds in which observations were made inputs of the network",
    "perf/forward": "seconds in which the policy chose, and values were read",
    "perf/opponents": "seconds in which opponents from the pool chose",
    "perf/update": "seconds of the update",
    "perf/evaluation": "seconds of an evaluation",
    "eval/vs_NAME": "score of the averaged policy's best actions against an anchor",
    "eval/vs_NAME_last": "the same of the newest policy",
    "eval/nash_conv": "exact NashConv of the averaged policy's probabilities (small decks)",
    **{f"losses/{name}": "see training.ppo.Losses" for name in Losses.__annotations__},
}
POLICY, BEST, STATE = "policy.pt", "best.pt", "state.pt"
ALONE = Ranks()


def train(
    config: Config,
    out: Path,
    resume: bool = False,
    overwrite: bool = False,
    ranks: Ranks = ALONE,
) -> Path:
    """Run to the end.

    To ``out`` go ``policy.pt``, the policy with averaged weights; ``best.pt``, the one that did
    best in an evaluation; ``state.pt``, from which the run goes on; the configuration, and
    TensorBoard files.

    Args:
        config: what to do.
        out: folder.
        resume: go on from ``state.pt``, to the same weights as if the run had not been broken off.
        overwrite: replace a run that is there.
        ranks: other processes that learn with this one.

    Returns:
        the path of ``policy.pt``.

    Raises:
        StoppedError: by Ctrl-C, or a request to end; all is saved.
        DivergedError: losses are not finite; the last good checkpoint is kept, and named.
        CheckpointError: a file cannot be read or written.
        ConfigError: the run to go on with had another configuration, or there is one in the way.
        LockError: another run is writing to ``out``.
    """
    run = Run(config, ranks, resume)
    with holding(out) if ranks.rank == 0 else nullcontext():
        if resume:
            run.load(out / STATE)
        if ranks.rank == 0:
            _prepare(out, run, resume or overwrite)
        _learn(run, out)
    return out / POLICY


def _learn(run: Run, out: Path) -> None:
    """Step after step, until all decisions are played or somebody asks to stop."""
    config, ranks, saved = run.config, run.ranks, run.decisions
    with _one_thread(), _Log(out, run) as log, _asked_to_stop() as asked:
        while run.decisions < config.decisions:
            try:
                metrics = run.step()
            except DivergedError as error:
                kept = f"{out / STATE}, after {saved} decisions" if saved else "none"
                raise DivergedError(f"{error}; the last good checkpoint: {kept}") from None
            stop = ranks.sum(torch.tensor(float(asked.is_set()))) > 0
            ended = run.decisions >= config.decisions
            due = run.updates % config.evaluation.every == 0
            if ranks.rank == 0 and (due or ended):
                metrics |= _evaluate(run, out)
            log.write(metrics)
            if run.updates % config.checkpoint_every == 0 or stop or ended:
                _save(run, out)
                saved = run.decisions
            if stop and not ended:
                raise StoppedError(f"stopped after {saved} decisions; --resume goes on")


def _prepare(out: Path, run: Run, replace: bool) -> None:
    """What a run at its beginning finds in its folder goes, if it may, and what a kill cut off."""
    kept = [out / name for name in (POLICY, BEST, STATE) if (out / name).exists()]
    if kept and not replace:
        raise ConfigError(f"{kept[0]} exists: give another --out, --resume or --overwrite")
    for path in () if run.updates else (*kept, *out.glob("events.out.tfevents.*")):
        path.unlink()
    for path in out.glob("*.pt.*.part"):
        path.unlink()
    (out / "config.json").write_text(json.dumps(run.recipe, indent=2), encoding="utf-8")


def _evaluate(run: Run, out: Path) -> dict[str, float]:
    """Metrics of an evaluation; the policy is kept if none did better."""
    began = time.perf_counter()
    scores = run.evaluate()
    wins = [scores[f"eval/vs_{anchor}"] for anchor in run.config.evaluation.anchors]
    newest = -float(run.updates)  # is the best where nothing is measured
    result = sum(wins) / len(wins) if wins else -scores.get("eval/nash_conv", newest)
    if result > run.best:
        run.best = result
        save(out / BEST, _checkpoint(run))
    return scores | {"perf/evaluation": time.perf_counter() - began}


def _save(run: Run, out: Path) -> None:
    """The state last: a run that goes on from it writes the policy again."""
    if run.ranks.rank == 0:
        save(out / POLICY, _checkpoint(run))
    run.save(out / STATE)


def _checkpoint(run: Run) -> Checkpoint:
    return Checkpoint(run.average, run.rules, run.decisions, run.recipe, run.revision)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Torch's own threads are not used: each of the run's threads works for itself."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Set by Ctrl-C or a request to end, so that the run leaves between two updates."""
    asked = threading.Event()

    def note(number: int, _: object) -> None:
        asked.set()
        signal.signal(number, before[number])  # a second one is not waited for

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    with handling((signal.SIGINT, signal.SIGTERM), note) as before:
        yield asked


class _Log:
    """TensorBoard's file and the live line, of the first process alone.

    The line shows decisions done, decisions a second, the time left, the entropy and the scores of
    the last evaluation; it is sparse where no terminal shows it.
    """

    def __init__(self, out: Path, run: Run) -> None:
        self.run, self.first, self.start = run, run.decisions, time.perf_counter()
        self.scores: dict[str, str] = {}
        shown = run.ranks.rank == 0
        self.writer = SummaryWriter(str(out), purge_step=self.first + 1) if shown else None
        self.bar = tqdm(
            total=-(-run.config.decisions // run.decisions_a_step) * run.decisions_a_step,
            initial=self.first,
            unit=" decisions",
            unit_scale=True,
            mininterval=0.5 if sys.stderr.isatty() else 15.0,
            smoothing=0.1,
            disable=not shown,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()
        if self.writer:
            self.writer.close()

    def write(self, metrics: dict[str, float]) -> None:
        """Log what was measured in a step."""
        decisions = self.run.decisions
        speed = (decisions - self.first) / (time.perf_counter() - self.start)
        for name, value in (metrics | {"charts/SPS": speed}).items():
            if self.writer:
                self.writer.add_scalar(name, value, decisions)
            if name.startswith("eval/") and not name.endswith("_last"):
                self.scores[name.removeprefix("eval/")] = f"{value:+.3f}"
        self.bar.update(decisions - self.bar.n)
        entropy = {"entropy": f"{metrics['losses/entropy']:.2f}"}
        self.bar.set_postfix(entropy | self.scores, refresh=False)


@command
def main(arguments: list[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("config", type=Path, help="a TOML file, see configs/")
    parser.add_argument("--out", type=Path, help="folder for the results (default runs/NAME)")
    earlier = parser.add_mutually_exclusive_group()
    earlier.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    earlier.add_argument("--resume", action="store_true", help="go on with an earlier run")
    options = parser.parse_args(arguments)
    config = load_config(options.config)
    out = options.out or Path("runs") / options.config.stem
    with joined(config.device) as ranks:
        path = train(config, out, options.resume, options.overwrite, ranks)
    if ranks.rank == 0:
        print(f"checkpoint: {path}")
        print(f"curves:     tensorboard --logdir {out}")


if __name__ == "__main__":
    sys.exit(main())
