"""Speed, side by side in one run: ``make bench``.

Protocol: one process; compile time apart (another process compiles into numba's cache before, and
every measurement runs once before it counts); seven rounds, each taking every measurement once, so
that a noisy minute hits all alike; medians. Actions are uniformly random among the legal ones and
drawn outside the clock, unless it says otherwise; observation and mask are written, or asked for,
at every decision, by peers too, and deals are inside the clock. Start-up is measured in new
processes, with an empty cache folder (cold) and with the folder that it filled (warm).
"""

import argparse
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper, OrderEnforcingWrapper
from tqdm import tqdm

from agents.heuristic import Greedy
from conquian_env import Batch, Game, conquian_v0, engine
from conquian_env.actions import LAY
from conquian_env.batch import drawn
from conquian_env.cards import lowest
from conquian_env.deal import WORD
from conquian_env.envs.aec import AGENTS, IllegalLosesWrapper
from conquian_env.envs.vector import ConquianVectorEnv
from conquian_env.jit import jit
from conquian_env.solver import Solver
from conquian_env.state import PHASE_OVER

ROUNDS = 7
SECONDS = 0.4  # about what a measurement takes
FIRST_MOVE = """
import time; start = time.perf_counter()
from conquian_env import Game
imported = time.perf_counter() - start
game = Game("classic", seed=7); game.apply(game.legal_actions()[0]); game.observation(0)
print(imported, time.perf_counter() - start)
"""


class Clock:
    """Adds up what happens inside ``with``; true until it is enough."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.spent, self.seconds = 0.0, seconds

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.spent += time.perf_counter() - self.start

    def __bool__(self) -> bool:
        return self.spent < self.seconds


def batch_rate(num_games: int, **options: Any) -> float:
    """Decisions a second of ``Batch.step``."""
    batch, rng, clock, steps = Batch(num_games, seed=1, **options), generator(), Clock(), 0
    while clock:
        actions = batch.sample_actions(rng)
        with clock:
            batch.step(actions)
        steps += 1
    return steps * num_games / clock.spent


def played_rate() -> float:
    """Decisions a second of a ``Batch`` when its actions are drawn inside the clock."""
    batch, rng, clock, steps = Batch(4096, seed=1), generator(), Clock(), 0
    while clock:
        with clock:
            batch.step(batch.sample_actions(rng))
        steps += 1
    return steps * 4096 / clock.spent


@jit
def play_randomly(rows: Any, books: Any, steps: int) -> None:
    """Uniformly random decisions of each game in turn, nothing encoded; drawn by xorshift."""
    random_bits = 88172645463325252
    for row in rows:
        for _ in range(steps):
            answers, lays, discards = engine.legal(row, books[0])
            low = answers | lays << LAY
            chosen = lowest(low)
            if discards or low & (low - 1):
                random_bits ^= random_bits << 13
                random_bits ^= (random_bits >> 7) & ((1 << 57) - 1)
                random_bits ^= random_bits << 17
                chosen = drawn(low, discards, random_bits & WORD)
            engine.apply(row, chosen, books[0])
            if row["phase"] == PHASE_OVER:
                engine.deal(row, row["seed"], row["deal"] + 1, books[0])


def raw_rate() -> float:
    """Decisions a second of the engine alone, drawing the actions included."""
    batch, steps = Batch(256, seed=3), 20_000
    start = time.perf_counter()
    play_randomly(batch._rows, batch._books, steps)
    return 256 * steps / (time.perf_counter() - start)


def game_rate() -> float:
    """``legal_actions`` and ``apply`` of one ``Game`` a second, dealing included."""
    picks, game, start = random.Random(0), Game(seed=0), time.perf_counter()
    for move in range(60_000):
        game.apply(picks.choice(game.legal_actions()))
        if game.is_over:
            game = Game(seed=move)
    return 60_000 / (time.perf_counter() - start)


def aec_rate(constructor: Callable[..., Any]) -> float:
    """Agent steps a second: ``last`` and ``step``, with the action drawn outside the clock."""
    env, rng, clock, moves = constructor(), generator(), Clock(), 0
    while clock:
        with clock:
            env.reset(seed=moves)
        for _ in env.agent_iter():
            with clock:
                observation, _, over, cut, _ = env.last()
            legal = observation["action_mask"]
            action = None if over or cut else int(rng.choice(np.flatnonzero(legal)))
            with clock:
                env.step(action)
            moves += action is not None
    return moves / clock.spent


class EmptyEnv(conquian_v0.raw_env):
    """An AEC environment that does nothing, for sixty steps."""

    def __init__(self) -> None:
        super().__init__()
        super().reset(seed=0)
        self.seen, self.left = super().observe(AGENTS[0]), 0

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin."""
        super().reset(seed=0)
        self.left = 60

    def observe(self, agent: str) -> Any:
        """Always the same."""
        return self.seen

    def step(self, action: int | None) -> None:
        """Count down."""
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.left -= 1
        self._cumulative_rewards[self.agent_selection] = 0.0
        if self.left == 0:
            self.terminations = dict.fromkeys(AGENTS, True)
        self.agent_selection = AGENTS[self.left % 2]


def empty_env() -> Any:
    """The same in the wrappers of ``conquian_v0.env``."""
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(IllegalLosesWrapper(EmptyEnv())))


def single_rate() -> float:
    """Learner's decisions a second of the Gymnasium environment, against ``greedy``."""
    env = gymnasium.make("conquian_env:Conquian-v0", opponent=Greedy()).unwrapped
    rng, clock, moves, over = generator(), Clock(), 0, True
    while clock:
        if over:
            with clock:
                observation, _ = env.reset(seed=None if moves else 1)
        action = rng.choice(np.flatnonzero(observation["action_mask"]))
        with clock:
            observation, _, over, _, _ = env.step(action)
        moves += 1
    return moves / clock.spent


def vector_rate(num_envs: int, **options: Any) -> float:
    """Learner's decisions a second of the Gymnasium vector environment, against ``greedy``."""
    env = ConquianVectorEnv(num_envs, opponent=Greedy(), autoreset_mode="SameStep", **options)
    observation, _ = env.reset(seed=1)
    rng, clock, moves = generator(), Clock(), 0
    while clock:
        actions = from_mask(observation["action_mask"], rng)
        with clock:
            observation, _, _, _, _ = env.step(actions)
        moves += num_envs
    return moves / clock.spent


def from_mask(mask: Any, rng: np.random.Generator) -> Any:
    """Uniformly random legal actions."""
    ladder = mask.cumsum(axis=1, dtype=np.int16)
    place = rng.integers(0, ladder[:, -1])
    return (ladder > place[:, None]).argmax(axis=1)


def rlcard_rate() -> float:
    """Steps a second of RLCard's gin rummy."""
    import rlcard  # noqa: PLC0415  # the extra ``bench``

    env, clock, moves, picks = rlcard.make("gin-rummy", {"seed": 1}), Clock(), 0, random.Random(0)
    while clock:
        with clock:
            state, _ = env.reset()
        while not env.is_over():
            action = picks.choice(list(state["legal_actions"]))
            with clock:
                state, _ = env.step(action)
            moves += 1
    return moves / clock.spent


def rlcard_run_rate() -> float:
    """The same by its own loop and its own random agents, all inside the clock."""
    import rlcard  # noqa: PLC0415
    from rlcard.agents import RandomAgent  # noqa: PLC0415

    env, clock, moves = rlcard.make("gin-rummy", {"seed": 1}), Clock(), 0
    env.set_agents([RandomAgent(env.num_actions)] * 2)
    while clock:
        with clock:
            trajectories, _ = env.run()
        moves += sum(len(states) // 2 for states in trajectories)
    return moves / clock.spent


def openspiel_rate(name: str) -> float:
    """Decisions a second of an OpenSpiel game from Python, observation tensor and mask asked for.

    Chance is played inside the clock, as everybody deals inside it.
    """
    import pyspiel  # noqa: PLC0415  # the extra ``openspiel``

    import conquian_env.openspiel  # noqa: F401, PLC0415  # registers its game

    game, clock, moves, picks = pyspiel.load_game(name), Clock(), 0, random.Random(0)
    while clock:
        with clock:
            state = game.new_initial_state()
            openspiel_chance(state, picks)
        while not state.is_terminal():
            with clock:
                state.observation_tensor(state.current_player())
                state.legal_actions_mask()
            action = picks.choice(state.legal_actions())
            with clock:
                state.apply_action(action)
                openspiel_chance(state, picks)
            moves += 1
    return moves / clock.spent


def openspiel_run_rate(name: str) -> float:
    """The same as one plays it with NumPy: arrays of tensor and mask, and the action from those."""
    import pyspiel  # noqa: PLC0415

    game, clock, moves = pyspiel.load_game(name), Clock(), 0
    picks, rng = random.Random(0), generator()
    while clock:
        with clock:
            state = game.new_initial_state()
            openspiel_chance(state, picks)
            while not state.is_terminal():
                np.array(state.observation_tensor(state.current_player()))
                mask = np.array(state.legal_actions_mask())
                state.apply_action(rng.choice(np.flatnonzero(mask)))
                openspiel_chance(state, picks)
                moves += 1
    return moves / clock.spent


def openspiel_chance(state: Any, picks: random.Random) -> None:
    """Play the chance nodes; those of these games are uniform."""
    while state.is_chance_node():
        state.apply_action(picks.choice(state.legal_actions()))


def connect_four() -> Any:
    """A PettingZoo classic without its wrappers."""
    from pettingzoo.env_registry.registration import make  # noqa: PLC0415

    return make("aec", "classic/connect_four-v3").unwrapped


def memory_per_game() -> float:
    """Bytes that a ``Batch`` takes at its peak beyond the arrays the user asked for."""
    n = 65_536
    Batch(2).step([0, 0])
    tracemalloc.start()
    batch = Batch(n)
    batch.step(batch.sample_actions(generator()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    shown = ("observation", "actor", "reward", "done")
    return (peak - sum(getattr(batch, name).nbytes for name in shown) - 88 * n) / n


def solver_times() -> list[float]:
    """Milliseconds to the value of every action of a fresh deal of ``classic``, for 300 deals."""
    solver, spent = Solver(), []
    for deal in range(301):
        rows, clock = Game(seed=1, deal=deal).to_state(), Clock()
        with clock:
            solver.action_values(rows)
        spent.append(1000 * clock.spent)
    return spent[1:]


def first_move(cache: str) -> tuple[float, float]:
    """Seconds to the import and to the first move made and seen, in a new process."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", FIRST_MOVE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    imported, moved = map(float, done.stdout.split())
    return imported, moved


def generator() -> np.random.Generator:
    """Random numbers that have nothing to do with the deals."""
    return np.random.default_rng(0)


def measurements() -> dict[str, Callable[[], float]]:
    """Everything per second, by name."""
    ours: dict[str, Callable[[], float]] = {}
    for n in (64, 1024, 4096, 16384, 65536):
        ours[f"Batch of {n:,}, one core"] = lambda n=n: batch_rate(n)
    cores = os.cpu_count() or 1
    for n in (4096, 16384, 65536):
        ours[f"Batch of {n:,}, {cores} cores"] = lambda n=n: batch_rate(n, threads=cores)
    ours |= {
        "Batch of 4,096, packed": lambda: batch_rate(4096, packed=True),
        "Batch of 4,096, real decisions": lambda: batch_rate(4096, skip_forced=True),
        "Batch of 4,096, drawing included": played_rate,
        "random play, nothing encoded": raw_rate,
        "Game.legal_actions + apply": game_rate,
        "raw_env": lambda: aec_rate(conquian_v0.raw_env),
        "env": lambda: aec_rate(conquian_v0.env),
        "an empty environment in the wrappers of env": lambda: aec_rate(empty_env),
        "Gymnasium env v greedy": single_rate,
        "Gymnasium vector env of 1,024 v greedy": lambda: vector_rate(1024),
        "Gymnasium vector env of 4,096 v greedy": lambda: vector_rate(4096),
        "the same, real decisions": lambda: vector_rate(4096, skip_forced=True),
    }
    if find_spec("rlcard"):
        ours["RLCard gin rummy"] = rlcard_rate
        ours["RLCard gin rummy, its own random play"] = rlcard_run_rate
    if find_spec("pyspiel"):
        ours["OpenSpiel gin rummy"] = lambda: openspiel_rate("gin_rummy")
        ours["OpenSpiel gin rummy, random play in NumPy"] = lambda: openspiel_run_rate("gin_rummy")
        ours["OpenSpiel python_conquian"] = lambda: openspiel_rate("python_conquian")
    if find_spec("pygame"):
        ours["PettingZoo connect four, raw"] = lambda: aec_rate(connect_four)
    return ours


def measure(rounds: int) -> dict[str, list[float]]:
    """Every measurement in each of the rounds, after one that does not count."""
    todo = measurements()
    found: dict[str, list[float]] = {name: [] for name in todo}
    for number, name in tqdm([(r, name) for r in range(rounds + 1) for name in todo], leave=False):
        value = todo[name]()
        if number:
            found[name].append(value)
    return found


def start_up() -> dict[str, list[float]]:
    """Seconds to import and first move, cold once, warm five times."""
    with tempfile.TemporaryDirectory() as cache:
        cold = first_move(cache)
        warm = [first_move(cache) for _ in range(5)]
    return {
        "import conquian_env, s": [imported for imported, _ in warm],
        "first move, cold cache, s": [cold[1]],
        "first move, warm cache, s": [moved for _, moved in warm],
    }


def ratios(medians: dict[str, float]) -> Iterator[tuple[str, float]]:
    """Quotients of what was measured in the same run."""
    batch, cores = "Batch of 4,096, one core", os.cpu_count() or 1
    for n in (4096, 16384, 65536):
        pair = f"Batch of {n:,}, {cores} cores", f"Batch of {n:,}, one core"
        yield " / ".join(pair), medians[pair[0]] / medians[pair[1]]
    sizes = [medians[f"Batch of {n:,}, one core"] for n in (1024, 4096, 16384, 65536)]
    yield "fastest / slowest Batch of 1,024 to 65,536", max(sizes) / min(sizes)
    empty = "an empty environment in the wrappers of env"
    yield f"env / {empty}", medians["env"] / medians[empty]
    played, raw = "Batch of 4,096, drawing included", "random play, nothing encoded"
    rlcard, openspiel = "RLCard gin rummy", "OpenSpiel gin rummy"
    for ours, peer in (
        (batch, rlcard), (batch, openspiel), (batch, "PettingZoo connect four, raw"),
        *itertools.product(
            (played, raw),
            (f"{rlcard}, its own random play", f"{openspiel}, random play in NumPy"),
        ),
    ):  # fmt: skip
        if peer in medians:
            yield f"{ours} / {peer}", medians[ours] / medians[peer]


def main() -> None:
    """Print Markdown tables; write the same as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, help="write all measurements as JSON here")
    options = parser.parse_args()
    if options.rounds == 0:  # compiles everything, and that is all
        measure(0)
        return
    subprocess.run([sys.executable, "-m", "tests.bench", "--rounds", "0"], check=True)
    print(__doc__, "\n", platform.platform(), platform.python_version(), os.cpu_count(), "cores\n")
    rates, seconds = measure(options.rounds), start_up()
    memory = memory_per_game()
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print("| a second | median | least | greatest |\n| --- | ---: | ---: | ---: |")
    for name, values in rates.items():
        print(f"| {name} | {medians[name]:,.0f} | {min(values):,.0f} | {max(values):,.0f} |")
    print("\n| ratio of medians | |\n| --- | ---: |")
    for name, ratio in ratios(medians):
        print(f"| {name} | {ratio:,.2f} |")
    print("\n| once | |\n| --- | ---: |")
    for name, values in seconds.items():
        print(f"| {name} | {statistics.median(values):.2f} |")
    solved = solver_times()
    print(f"| solver, a fresh deal, ms, median of {len(solved)} | {np.median(solved):.1f} |")
    print(f"| solver, 99th percentile | {np.percentile(solved, 99):.1f} |")
    print(f"| memory of a game in a Batch beyond the user's arrays, bytes | {memory:,.0f} |")
    if options.out:
        results = {
            "rates": rates,
            "seconds": seconds,
            "bytes_per_game": memory,
            "solver_ms": solved,
        }
        options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
