"""The wheel carries the game alone, and alone it plays."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

PLAY = """
import importlib.util
import gymnasium
import numpy as np
from pettingzoo.env_registry.registration import make
from conquian_env import Batch, Game, GameRecord, conquian_v0
from conquian_env.viewer import to_html
assert "site-packages" in conquian_v0.__file__
for absent in ("agents", "training", "torch", "pygame"):
    assert importlib.util.find_spec(absent) is None, absent
game = Game("classic", seed=1)
while not game.is_over:
    game.apply(game.legal_actions()[-1])
assert "</html>" in to_html([GameRecord.of(Game("classic"), [])])
batch = Batch(8, seed=1)
batch.step(batch.sample_actions(np.random.default_rng(0)))
for env in (conquian_v0.env(), make("aec", "conquian/conquian-v0", rules="mexican")):
    env.reset(seed=1)
    for agent in env.agent_iter():
        observation, reward, over, _, _ = env.last()
        env.step(None if over else int(observation["action_mask"].argmax()))
env, over = gymnasium.make("conquian_env:Conquian-v0", opponent="random"), False
seen, info = env.reset(seed=1)
while not over:
    seen, reward, over, _, info = env.step(seen["action_mask"].argmax())
for mode in (None, "sync"):
    env = gymnasium.make_vec("conquian_env:Conquian-v0", 3, vectorization_mode=mode)
    seen, info = env.reset(seed=1)
    for _ in range(60):
        seen, reward, over, _, info = env.step(seen["action_mask"].argmax(1))
print(game.outcome.termination)
"""

TYPED = """
from conquian_env import Game
from conquian_env.envs.single import ConquianEnv
from conquian_env.envs.vector import ConquianVectorEnv

reveal_type(Game("classic").actor)
reveal_type(ConquianEnv().seat)
reveal_type(ConquianVectorEnv(2).num_envs)
Game(rules=3)
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

    (tmp_path / "typed.py").write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "typed.py"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    revealed = [line for line in done.stdout.splitlines() if "Revealed type" in line]
    assert ['"int"' in line or '"builtins.int"' in line for line in revealed] == [True] * 3
    errors = [line for line in done.stdout.splitlines() if "error" in line]
    assert 'incompatible type "int"; expected "RuleSet | str"' in errors[0]
    assert errors[1:] == ["Found 1 error in 1 file (checked 1 source file)"]
