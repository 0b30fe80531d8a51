"""Self-play from scratch: ``python -m training.train configs/demo.toml``.

The road: rollout (play a batch of games) → advantages → update → checkpoint, again and again.
"""

import argparse
import json
import math
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from agents.checkpoint import Checkpoint, save
from agents.network import SuitNetwork
from conquian_env import Batch
from conquian_env.errors import ConquianError
from training.config import Config, ConfigError, load_config
from training.ppo import Losses, update
from training.rollout import Collector, Rollout

# Every metric that is logged; the x axis is the number of real decisions learnt from.
METRICS = {
    "charts/learning_rate": "the optimiser's step size",
    "charts/entropy_weight": "weight of the entropy bonus",
    "charts/SPS": "real decisions a second, playing and learning, since the start",
    "charts/episodic_return": "mean return of seat 0 over the deals that ended in the rollout",
    "charts/draws": "share of those deals that were drawn",
    "charts/episodic_length": "real decisions a deal, both seats",
    "time/collect": "seconds of the rollout",
    "time/learn": "seconds of the update",
    **{f"losses/{name}": "see training.ppo.Losses" for name in Losses.__annotations__},
}
CHECKPOINT = "policy.pt"


class DivergedError(ConquianError):
    """Learning has broken down; the last checkpoint is kept as it was."""


def train(config: Config, out: Path) -> Path:
    """Run to the end, or until Ctrl-C; checkpoint, config and TensorBoard files go to ``out``.

    Returns:
        the path of the checkpoint, which is not written before the first update.

    Raises:
        DivergedError: a loss is not finite.
    """
    rules, path = config.rule_set, out / CHECKPOINT
    out.mkdir(parents=True, exist_ok=True)
    (out / "config.json").write_text(json.dumps(asdict(config), indent=2), encoding="utf-8")
    generator = torch.Generator().manual_seed(config.seed)
    network = _new_network(config)
    optimizer = torch.optim.Adam(network.parameters(), lr=config.ppo.learning_rate, eps=1e-5)
    batch = Batch(config.num_games, rules, config.seed, skip_forced=True)
    collector = Collector(batch, config.rollout, config.ppo, generator)
    per_update = config.num_games * config.rollout
    updates = math.ceil(config.decisions / per_update)
    decisions, start = 0, time.perf_counter()
    with SummaryWriter(out) as writer, _progress(updates * per_update) as bar:
        try:
            for number in range(1, updates + 1):
                done = (number - 1) / updates
                rate = _line(config.ppo.learning_rate, config.ppo.final_learning_rate, done)
                entropy_weight = _line(config.ppo.entropy, config.ppo.final_entropy, done)
                optimizer.param_groups[0]["lr"] = rate

                began = time.perf_counter()
                rollout = collector.collect(network)
                collected = time.perf_counter()
                losses = update(network, optimizer, rollout, config.ppo, entropy_weight, generator)
                if not math.isfinite(losses.policy_loss + losses.value_loss):
                    raise DivergedError(f"losses are not finite after {decisions} decisions")
                learnt = time.perf_counter()

                decisions += per_update
                measured = {
                    "charts/learning_rate": rate,
                    "charts/entropy_weight": entropy_weight,
                    "charts/SPS": decisions / (learnt - start),
                    "time/collect": collected - began,
                    "time/learn": learnt - collected,
                }
                _log(writer, decisions, measured, rollout, losses)
                bar.update(per_update)
                bar.set_postfix(entropy=f"{losses.entropy:.2f}", refresh=False)
                if number % config.checkpoint_every == 0:
                    save(path, Checkpoint(network, rules, decisions))
        except KeyboardInterrupt:
            print(f"\nstopped after {decisions} decisions", file=sys.stderr)
        if decisions:
            save(path, Checkpoint(network, rules, decisions))
    return path


def _new_network(config: Config) -> SuitNetwork:
    with torch.random.fork_rng(devices=[]):  # the caller's global generator stays as it was
        torch.manual_seed(config.seed)
        return SuitNetwork(config.network.width, config.network.layers)


def _line(first: float, last: float, done: float) -> float:
    return first + (last - first) * done


def _progress(total: int) -> "tqdm[None]":
    """Decisions done, decisions a second and the time left; sparse where no terminal shows it."""
    every = 0.5 if sys.stderr.isatty() else 15.0
    return tqdm(total=total, unit=" decisions", unit_scale=True, mininterval=every, smoothing=0.1)


def _log(
    writer: SummaryWriter,
    step: int,
    measured: dict[str, float],
    rollout: Rollout,
    losses: Losses,
) -> None:
    values = measured | {f"losses/{name}": value for name, value in asdict(losses).items()}
    if len(rollout.returns):
        values |= {
            "charts/episodic_return": float(rollout.returns.mean()),
            "charts/draws": float((rollout.returns == 0).mean()),
            "charts/episodic_length": rollout.decisions_per_deal,
        }
    for name in METRICS:
        if name in values:
            writer.add_scalar(name, values[name], step)


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("config", type=Path, help="a TOML file, see configs/")
    parser.add_argument("--out", type=Path, help="folder for the results (default runs/NAME)")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier checkpoint")
    options = parser.parse_args(arguments)
    try:
        config = load_config(options.config)
        out = options.out or Path("runs") / options.config.stem
        if (out / CHECKPOINT).exists() and not options.overwrite:
            raise ConfigError(f"{out / CHECKPOINT} exists: give another --out, or --overwrite")
        for stale in out.glob("events.out.tfevents.*"):
            stale.unlink()
        path = train(config, out)
    except (ConquianError, OSError, MemoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"checkpoint: {path}")
    print(f"curves:     tensorboard --logdir {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
