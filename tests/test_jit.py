"""The kernels with the JIT off, without a cache, and with a stale one; and what an import does."""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import conquian_env
from conquian_env import Batch, Game, RuleSet
from conquian_env.jit import DISABLED, fix_signature
from conquian_env.rules import PRESETS, rule_set
from conquian_env.tree import Node
from tests.playing import playthroughs
from training.sequence_form import sequence_form

PACKAGE = Path(conquian_env.__file__).parent
ROOT = Path(__file__).parents[1]


def python(code: str, root: Path = ROOT, **environment: str) -> str:
    """What ``code`` prints in a fresh Python, with the JIT on and the package of ``root``."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=inherited | {"PYTHONPATH": str(root)} | environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def package_in(folder: Path) -> Path:
    """A copy of the sources alone."""
    shutil.copytree(PACKAGE, folder / "conquian_env", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


# --- JIT off ---


def digest_of_games(rules: RuleSet | str) -> str:
    """All that a fixed set of games shows and holds, in two words."""
    digest = hashlib.sha256()
    for game in playthroughs(rules, games=6, seed=1):
        digest.update(game.to_json().encode())
        digest.update(game.legal_mask().tobytes())
        for seat in (0, 1):
            digest.update(game.observation(seat).tobytes())
            other = game.resample_hidden(seat, np.random.default_rng(game.ply))
            digest.update(other.to_json().encode())
        digest.update(Game.from_json(game.to_json()).to_json().encode())
    return digest.hexdigest()


def digest_of_batches(rules: RuleSet | str) -> str:
    digest = hashlib.sha256()
    for skip_forced in (False, True):
        batch = Batch(6, rules, (1 << 64) - 1, skip_forced)
        rng = np.random.default_rng(2)
        for _ in range(100):
            batch.step(batch.sample_actions(rng))
            for array in (batch.observation, batch.mask, batch.actor, batch.reward, batch.done):
                digest.update(array.tobytes())
        assert batch.deal.max() > 5
        batch.reset(batch.actor == 0)
        views = batch.views(np.arange(6), np.arange(6).astype(np.uint64))
        for array in (views.observation, views.mask, views.history, views.hand, views.face_up):
            digest.update(array.tobytes())
        digest.update(batch.deal.tobytes() + batch.ply.tobytes())
    return digest.hexdigest()


def digest_of_trees(rules: RuleSet | str) -> str:
    digest = hashlib.sha256()
    for seed in range(4):
        node, rng = (
            Node.root(rule_set(rules), skip_forced=seed % 2 == 1),
            np.random.default_rng(seed),
        )
        while moves := node.actions or list(node.chances):
            node = node.child(int(rng.choice(moves)))
            known = [node.information(seat) + node.observation_text(seat) for seat in (0, 1)]
            digest.update(repr((node.player, node.chances, known, node.resample(0, rng))).encode())
    return digest.hexdigest()


def digest_of_forms() -> str:
    """The whole sequence form of a very small deck."""
    form = sequence_form(RuleSet(suits=1, ranks=6, deal=2, stock=1, exchange=True))
    arrays = (*form.parent, *form.first, *form.action, form.win_sequence, form.win_value)
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()


def digests() -> list[str]:
    """Of presets and of rule sets that differ in every other field."""
    rules = (
        "classic",
        "classic-1.1",
        "mexican",
        RuleSet(deal=7, force="auto", force_source="discard"),
        RuleSet(first_card="dealt", hand_melds=True, suits=3, ranks=8, deal=7, stock=6),
    )
    kinds = (digest_of_games, digest_of_batches, digest_of_trees)
    return [digest(each) for each in rules for digest in kinds] + [digest_of_forms()]


def test_promise_1_the_engine_agrees_with_the_oracle_with_the_jit_off() -> None:
    code = """
from conquian_env import RuleSet
from conquian_env.jit import DISABLED, fix_signature
from conquian_env.rules import PRESETS
from tests.test_oracle_agreement import compare
for preset in PRESETS:
    counts = compare(RuleSet.preset(preset), 10, seed=3)
    print(DISABLED, counts["over", 0] + counts["over", 1])
"""
    assert python(code, NUMBA_DISABLE_JIT="1").split() == ["True", "10"] * len(PRESETS)


def test_games_are_the_same_with_the_jit_off_and_on() -> None:
    code = "from tests.test_jit import DISABLED, digests; print(DISABLED, *digests())"
    here = digests()
    assert len(set(here)) == 16
    there = python(code, NUMBA_DISABLE_JIT="0" if DISABLED else "1")
    assert there.split() == [str(not DISABLED), *here]


# --- the cache ---

PLAY_GAME = """
from conquian_env import Game
game = Game(seed=3)
while not game.is_over:
    game.apply(game.legal_actions()[-1])
print(game.to_json())
"""
COUNT_TAKES = """
from conquian_env import Batch
print(Batch(200).mask[:, 1].sum())
"""


def test_a_cache_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Root may write anywhere, so every folder that numba could use is a file here."""
    root = package_in(tmp_path)
    blocked = root / "conquian_env" / "__pycache__"
    blocked.write_text("no folder")
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR"), str(blocked / "x"))
    code = f"{PLAY_GAME}\nfrom conquian_env.game import _deal; print(type(_deal._cache).__name__)"
    played, cache = python(code, root, **places).splitlines()
    assert cache == "NullCache"
    assert played == python(PLAY_GAME).strip()
    assert blocked.read_text() == "no folder"


def test_a_rule_changed_in_another_file_takes_effect(tmp_path: Path) -> None:
    """Kernels in batch.py hold, compiled, what they call in melds.py."""
    root = package_in(tmp_path)
    assert int(python(COUNT_TAKES, root)) > 0
    assert list(root.glob("conquian_env/__pycache__/batch._redeal-*.nbc"))
    melds = root / "conquian_env" / "melds.py"
    text = melds.read_text()
    rule = "    return runs | (runs << 1) | (runs << 2) | sets\n"
    assert text.count(rule) == 1
    melds.write_text(text.replace(rule, "    return 0\n"))  # no table is ever legal
    assert int(python(COUNT_TAKES, root)) == 0


def test_a_cache_of_other_sources_is_not_even_read(tmp_path: Path) -> None:
    """It may name classes that are gone."""
    root = package_in(tmp_path)
    before = python(COUNT_TAKES, root)
    for path in root.glob("conquian_env/__pycache__/*.nbi"):
        with path.open("rb") as file:
            pickle.load(file)
            version = path.read_bytes()[: file.tell()]
        path.write_bytes(version + b"no pickle")
    with (root / "conquian_env" / "melds.py").open("a") as file:
        file.write("# changed\n")
    assert python(COUNT_TAKES, root) == before


def test_the_cache_is_used(tmp_path: Path) -> None:
    """A second process loads what the first compiled."""
    root = package_in(tmp_path)
    code = """
from conquian_env import Game, game
Game()
print(sum(game._deal.stats.cache_hits.values()), sum(game._deal.stats.cache_misses.values()))
"""
    assert python(code, root).split() == ["0", "1"]
    assert python(code, root).split() == ["1", "0"]


# --- recursive functions ---


class Recursive:
    """What is asked of a compiled function; compiling takes a while."""

    def __init__(self) -> None:
        self.signatures: list[str] = []
        self.open, self.begun = True, 0

    def compile(self, signature: str) -> None:
        assert self.open, "compiled after it was closed"
        self.begun += 1
        time.sleep(0.05)
        self.signatures.append(signature)

    def disable_compile(self) -> None:
        self.open = False


@pytest.mark.skipif(DISABLED, reason="nothing is compiled")
def test_a_recursive_function_is_compiled_once_by_threads_that_ask_at_once() -> None:
    function, together = Recursive(), threading.Barrier(8)

    def ask(_: int) -> None:
        together.wait()
        fix_signature(function, "int64(int64)")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert (function.begun, function.open) == (1, False)


def test_threads_may_be_the_first_to_ask_for_compiled_rules() -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from agents.ways import combos_by_size
from conquian_env import RuleSet
from conquian_env.melds import rulebook
def ask(k):
    rules = RuleSet(deal=4 + k)
    return len(rulebook(rules)), len(combos_by_size(rules))
with ThreadPoolExecutor(4) as pool:
    print(set(pool.map(ask, range(4))))
"""
    assert python(code) == "{(1, 182)}\n"


# --- imports ---


def test_an_import_loads_no_environment_and_no_learner() -> None:
    """Gymnasium itself comes along, to be told of ``Conquian-v0``."""
    code = "import sys, conquian_env; print(*(name.split('.')[0] for name in sys.modules))"
    loaded = set(python(code).split())
    assert "conquian_env" in loaded
    assert loaded.isdisjoint({"torch", "pettingzoo", "pygame", "agents", "training"})


def test_measuring_loads_torch_for_a_network_alone() -> None:
    """What a tournament's workers load, and the benchmark."""
    names = "import sys, training.tournament, training.benchmark; print(*sys.modules)"
    assert set(python(names).split()).isdisjoint({"torch", "tensorboard"})


def test_an_import_compiles_nothing() -> None:
    code = """
import sys, conquian_env
kernels = [
    value
    for name, module in list(sys.modules.items()) if name.startswith("conquian_env")
    for value in vars(module).values() if hasattr(value, "overloads")
]
print(len(kernels), sum(len(kernel.overloads) for kernel in kernels))
"""
    kernels, compiled = map(int, python(code).split())
    assert kernels > 20
    assert compiled == 0
