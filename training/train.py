"""Self-play from scratch: ``python -m training.train configs/demo.toml``.

The road: rollout (play a batch of games) → advantages → update → checkpoint, again and again.
``torchrun --nproc-per-node 2 -m training.train …`` shares the games out between processes.
"""

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents.checkpoint import Checkpoint, save
from conquian_env.errors import ConquianError
from training.config import Config, ConfigError, load_config
from training.ppo import Losses
from training.ranks import Ranks, joined
from training.run import DivergedError, Run

# Every metric that is logged; the x axis is the number of real decisions played.
METRICS = {
    "charts/learning_rate": "the optimiser's step size",
    "charts/entropy_weight": "weight of the entropy bonus",
    "charts/SPS": "real decisions a second, playing and learning, since the start or resumption",
    "charts/episodic_return": "mean return of seat 0 over the deals of self-play that ended",
    "charts/draws": "share of those deals that were drawn",
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


def train(config: Config, out: Path, resume: bool = False, ranks: Ranks | None = None) -> Path:
    """Run to the end, or until Ctrl-C.

    To ``out`` go ``policy.pt``, the averaged policy; ``best.pt``, the one that did best in an
    evaluation; ``state.pt``, from which the run goes on; the configuration, and TensorBoard files.

    Args:
        config: what to do.
        out: folder.
        resume: go on from ``state.pt``, to the same weights as if the run had not been broken off.
        ranks: other processes that learn with this one.

    Returns:
        the path of the policy, which is not written before the first update.

    Raises:
        DivergedError: a loss is not finite; the last good checkpoint is kept, and named.
        CheckpointError: a file cannot be read or written.
        ConfigError: the run to go on with had another configuration.
    """
    ranks = ranks or Ranks()
    torch.set_num_threads(1)  # each of the learner's threads is one
    run = Run(config, ranks)
    if resume:
        run.load(out / STATE)
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(run.recipe, indent=2), encoding="utf-8")
    saved = run.decisions
    log = _Log(out, config, ranks, run.decisions)
    with log, _asked_to_stop() as asked:
        while run.decisions < config.decisions:
            try:
                metrics = run.step()
            except DivergedError as error:
                kept = f"{out / STATE}, after {saved} decisions" if saved else "none"
                raise DivergedError(f"{error}; the last good checkpoint: {kept}") from None
            ended = run.decisions >= config.decisions
            if ranks.rank == 0 and (run.updates % config.evaluation.every == 0 or ended):
                metrics |= _evaluate(run, out)
            log.write(run.decisions, metrics)
            stop = ranks.sum(torch.tensor(float(bool(asked)))) > 0
            if run.updates % config.checkpoint_every == 0 or stop or ended:
                _save(run, out)
                saved = run.decisions
            if stop:
                print(f"\nstopped after {saved} decisions; --resume goes on", file=sys.stderr)
                break
    return out / POLICY


def _evaluate(run: Run, out: Path) -> dict[str, float]:
    """Metrics of an evaluation; the policy is kept if none did better."""
    began = time.perf_counter()
    scores = run.evaluate()
    anchors = run.config.evaluation.anchors
    mean = sum(scores[f"eval/vs_{anchor}"] for anchor in anchors) / max(len(anchors), 1)
    if mean > run.best:
        run.best = mean
        save(out / BEST, _checkpoint(run))
    return scores | {"perf/evaluation": time.perf_counter() - began}


def _save(run: Run, out: Path) -> None:
    """The state last: a run that goes on from it writes the policy again."""
    if run.ranks.rank == 0:
        save(out / POLICY, _checkpoint(run))
    run.save(out / STATE)


def _checkpoint(run: Run) -> Checkpoint:
    return Checkpoint(run.average, run.rules, run.decisions, run.recipe, revision())


def revision() -> str:
    """Of the sources, as git names it; empty where they are not under git."""
    try:
        command = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


@contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """Filled by Ctrl-C or a request to end, so that the run leaves between two updates."""
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        asked.append(number)
        signal.signal(number, before[signal.Signals(number)])  # a second one is not waited for

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Log:
    """TensorBoard's file and the live line, of the first process alone.

    The line shows decisions done, decisions a second, the time left, the entropy and the scores of
    the last evaluation; it is sparse where no terminal shows it.
    """

    def __init__(self, out: Path, config: Config, ranks: Ranks, first: int) -> None:
        self.first, self.start = first, time.perf_counter()
        self.scores: dict[str, str] = {}
        self.writer = SummaryWriter(str(out), purge_step=first + 1) if ranks.rank == 0 else None
        self.bar = tqdm(
            total=config.decisions,
            initial=first,
            unit=" decisions",
            unit_scale=True,
            mininterval=0.5 if sys.stderr.isatty() else 15.0,
            smoothing=0.1,
            disable=ranks.rank > 0,
        )

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.bar.close()
        if self.writer:
            self.writer.close()

    def write(self, decisions: int, metrics: dict[str, float]) -> None:
        """Log what was measured after so many decisions."""
        speed = (decisions - self.first) / (time.perf_counter() - self.start)
        for name, value in (metrics | {"charts/SPS": speed}).items():
            if self.writer:
                self.writer.add_scalar(name, value, decisions)
            if name.startswith("eval/") and not name.endswith("_last"):
                self.scores[name.removeprefix("eval/")] = f"{value:+.3f}"
        self.bar.update(decisions - self.bar.n)
        entropy = {"entropy": f"{metrics['losses/entropy']:.2f}"}
        self.bar.set_postfix(entropy | self.scores, refresh=False)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("config", type=Path, help="a TOML file, see configs/")
    parser.add_argument("--out", type=Path, help="folder for the results (default runs/NAME)")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier run")
    parser.add_argument("--resume", action="store_true", help="go on with an earlier run")
    options = parser.parse_args(arguments)
    try:
        config = load_config(options.config)
        out = options.out or Path("runs") / options.config.stem
        with joined() as ranks:
            if not options.resume and ranks.rank == 0:
                make_room(out, options.overwrite)
            path = train(config, out, options.resume, ranks)
    except (ConquianError, OSError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if ranks.rank == 0:
        print(f"checkpoint: {path}")
        print(f"curves:     tensorboard --logdir {out}")
    return 0


def make_room(out: Path, overwrite: bool) -> None:
    """Refuse to mix a run with an earlier one; its files go if they may."""
    kept = [out / name for name in (POLICY, BEST, STATE) if (out / name).exists()]
    if kept and not overwrite:
        raise ConfigError(f"{kept[0]} exists: give another --out, --resume or --overwrite")
    for path in (*kept, *out.glob("events.out.tfevents.*")):
        path.unlink()


if __name__ == "__main__":
    sys.exit(main())
