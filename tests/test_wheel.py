"""The wheel carries the game alone, and alone it plays."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

PLAY = """
import importlib.util, pathlib, sys
import numpy as np
from conquian_env import Batch, Game, conquian_v0
assert "site-packages" in conquian_v0.__file__
for absent in ("agents", "training", "torch"):
    assert importlib.util.find_spec(absent) is None, absent
game = Game("classic", seed=1)
while not game.is_over:
    game.apply(game.legal_actions()[-1])
batch = Batch(8, seed=1)
batch.step(batch.sample_actions(np.random.default_rng(0)))
env = conquian_v0.env()
env.reset(seed=1)
for agent in env.agent_iter():
    observation, reward, over, _, _ = env.last()
    env.step(None if over else int(observation["action_mask"].argmax()))
print(game.outcome.termination)
"""


@pytest.mark.slow
def test_the_wheel_alone_plays_a_game(tmp_path: Path):
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    tops = {Path(name).parts[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"conquian_env"}
    assert "conquian_env/py.typed" in zipfile.ZipFile(wheel).namelist()

    home = tmp_path / "clean"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "-c", "constraints.txt", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    done = subprocess.run(
        [python, "-W", "error", "-c", PLAY],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() in ("out", "stock")
