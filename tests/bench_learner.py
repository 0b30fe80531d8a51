"""Speed of the learner, side by side in one run: ``python -m tests.bench_learner``.

Protocol: one process of as many threads as the configuration has; each measurement runs once
before it counts, then so many rounds take every measurement once; medians. *Inputs* is from
observations to what the network is told, *forward* from there (uint8) to log-probabilities and
value, *both* is forward, the loss of PPO and the gradients; the threads work at once, each on its
own decisions, in parts as large as the learner's. *Learnt* is whole steps of ``training.run.Run``:
games played, advantages, updates. The bound is 1 / (1 / forward + epochs / both), what were left if
nothing but the network took time; the second share counts inputs as the network's work, too.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from agents.inputs import network_inputs
from agents.network import NetworkConfig
from training.config import Config, PPOConfig
from training.ppo import gradients
from training.ranks import Ranks
from training.rollout import Collector, Rollout
from training.run import Run

ROUNDS = 5
RUNS = {
    "plain, 3 x 256, no ways": NetworkConfig("plain", 256, 3, ways=False),
    "suit, 3 x 128, ways": NetworkConfig(),
    "suit, 3 x 192, no ways": NetworkConfig(width=192, ways=False),
}


class Bench:
    """A run, and its last rollouts."""

    def __init__(self, shape: NetworkConfig) -> None:
        ppo = PPOConfig(reverse_ranks=True)
        self.run = Run(Config(decisions=10**12, network=shape, ppo=ppo), Ranks())
        self.rollouts = self.collect()

    def collect(self) -> list[Rollout]:
        """A rollout of each thread."""
        network = self.run.network
        return [collector.collect(network) for collector in self.run.collectors]

    def rate(self, work: Callable[[Any], int], items: list[Any]) -> float:
        """Decisions a second of ``work``, in all threads at once."""
        start = time.perf_counter()
        done = sum(self.run.workers.map(work, items))
        return done / (time.perf_counter() - start)

    def told(self) -> float:
        """Decisions a second from observations to inputs."""
        config = self.run.config

        def work(collector: Collector) -> int:
            batch = collector.batch
            for _ in range(config.rollout):
                network_inputs(batch.observation, batch.mask, batch.rules, config.network.ways)
            return config.rollout * len(batch.mask)

        return self.rate(work, self.run.collectors)

    def forward(self) -> float:
        """Decisions a second from inputs to outputs."""
        size = self.run.config.num_games // self.run.config.threads

        @torch.no_grad()
        def work(rollout: Rollout) -> int:
            parts = zip(rollout.inputs.split(size), rollout.mask.split(size), strict=True)
            for inputs, mask in parts:
                self.run.network(inputs, mask, torch.bfloat16)
            return len(rollout.inputs)

        return self.rate(work, self.rollouts)

    def both(self) -> float:
        """Decisions a second from inputs to gradients."""
        config = self.run.config
        size = config.ppo.minibatch // config.threads

        def work(rollout: Rollout) -> int:
            for rows in torch.arange(len(rollout.action)).split(size):
                gradients(self.run.learner, rollout, rows, config.ppo, 0.01)
            return len(rollout.action)

        return self.rate(work, self.rollouts)

    def learnt(self) -> float:
        """Decisions a second played and learnt from."""
        start = time.perf_counter()
        self.run.step()
        return self.run.config.num_games * self.run.config.rollout / (time.perf_counter() - start)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    benches = {name: Bench(shape) for name, shape in RUNS.items()}
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in benches}
    for number in range(rounds + 1):
        for name, bench in benches.items():
            rates = bench.told(), bench.forward(), bench.both(), bench.learnt()
            if number:
                found[name].append(rates)
    print("| thousand decisions a second | inputs | forward | both | learnt | bound | share | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, rates in found.items():
        told, forward, both, learnt = (statistics.median(each) for each in zip(*rates, strict=True))
        least = 1 / forward + benches[name].run.config.ppo.epochs / both
        numbers = " | ".join(
            f"{rate / 1e3:.1f}" for rate in (told, forward, both, learnt, 1 / least)
        )
        print(f"| {name} | {numbers} | {learnt * least:.0%} | {learnt * (least + 1 / told):.0%} |")


if __name__ == "__main__":
    main()
