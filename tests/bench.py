"""Speed, side by side in one run: ``make bench``.

Protocol: one process, compile time apart (a warm-up call before the clock), medians of seven
repeats. ``Batch`` plays uniformly random legal actions that are drawn outside the clock; its
observation and mask are written at every step. Start-up is measured in new processes, with an empty
cache folder (cold) and again with the folder it filled (warm).
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from conquian_env import Batch, Game, conquian_v0

REPEATS = 7
FIRST_MOVE = """
import time; start = time.perf_counter()
from conquian_env import Game
game = Game("classic", seed=7); game.apply(game.legal_actions()[0]); game.observation(0)
print(time.perf_counter() - start)
"""


def median(measure: Callable[[], float]) -> tuple[float, float, float]:
    """Median, least and greatest of the repeats, after one that does not count."""
    measure()
    values = [measure() for _ in range(REPEATS)]
    return statistics.median(values), min(values), max(values)


def batch_rate(num_games: int, skip_forced: bool = False, threads: int = 1) -> float:
    """Decisions a second of ``Batch.step``."""
    batch = Batch(num_games, seed=1, skip_forced=skip_forced, threads=threads)
    rng, spent = np.random.default_rng(0), 0.0
    steps = max(1_000_000 // num_games, 10)
    for _ in range(steps):
        actions = batch.sample_actions(rng)
        start = time.perf_counter()
        batch.step(actions)
        spent += time.perf_counter() - start
    return steps * num_games / spent


def game_rate() -> float:
    """``legal_actions`` and ``apply`` of one ``Game`` a second, dealing included."""
    rng, moves, start = np.random.default_rng(0), 0, time.perf_counter()
    picks = rng.random(20_000)
    game = Game(seed=0)
    for pick in picks:
        legal = game.legal_actions()
        game.apply(legal[int(pick * len(legal))])
        moves += 1
        if game.is_over:
            game = Game(seed=moves)
    return moves / (time.perf_counter() - start)


def aec_rate(constructor: Callable[..., object]) -> float:
    """Agent steps a second: ``last`` and ``step``, with the action drawn outside the clock."""
    env, rng, spent, moves = constructor(), np.random.default_rng(0), 0.0, 0
    while moves < 5_000:
        env.reset(seed=moves)
        for _ in env.agent_iter():
            start = time.perf_counter()
            observation, _, over, _, _ = env.last()
            spent += time.perf_counter() - start
            action = None if over else int(rng.choice(np.flatnonzero(observation["action_mask"])))
            start = time.perf_counter()
            env.step(action)
            spent += time.perf_counter() - start
            moves += not over
    return moves / spent


def first_move(cache: str) -> float:
    """Seconds from nothing imported to the first move made and seen, in a new process."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", FIRST_MOVE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main() -> None:
    """Print a Markdown table, and the same as JSON on the last line."""
    print(__doc__, "\n", platform.platform(), platform.python_version(), os.cpu_count(), "cores\n")
    rows: dict[str, tuple[float, float, float]] = {}
    for num_games in (64, 1024, 4096, 16384, 65536):
        rows[f"Batch of {num_games}, decisions/s"] = median(lambda n=num_games: batch_rate(n))
    for num_games in (4096, 65536):
        name = f"Batch of {num_games} on two threads, decisions/s"
        rows[name] = median(lambda n=num_games: batch_rate(n, threads=2))
    rows["Batch of 4096, real decisions/s"] = median(lambda: batch_rate(4096, skip_forced=True))
    rows["Game.legal_actions + apply, moves/s"] = median(game_rate)
    rows["raw_env, agent steps/s"] = median(lambda: aec_rate(conquian_v0.raw_env))
    rows["env, agent steps/s"] = median(lambda: aec_rate(conquian_v0.env))
    with tempfile.TemporaryDirectory() as cache:
        cold = first_move(cache)
        rows["first move, cold cache, s"] = (cold, cold, cold)
        rows["first move, warm cache, s"] = median(lambda: first_move(cache))
    print("| measured | median | least | greatest |\n| --- | ---: | ---: | ---: |")
    for name, values in rows.items():
        print(
            f"| {name} | "
            + " | ".join(f"{v:,.0f}" if v > 100 else f"{v:.2f}" for v in values)
            + " |"
        )
    print("\n" + json.dumps(rows))


if __name__ == "__main__":
    main()
