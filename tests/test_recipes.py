"""The programs of docs/recipes.md run where their library is installed, and do what it says."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = Path("docs/recipes.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))
# What each needs, and a score against random that it beats by five standard errors and more.
LEARNERS = {
    "One-file PPO": ("torch", 0.25),
    "Stable-Baselines3": ("sb3_contrib", 0.2),
    "Tianshou": ("tianshou", 0.12),
    "RLlib": ("tree", 0.18),  # which comes with ray[rllib], and not with Ray alone
    "TorchRL": ("torchrl", 0.12),
}


def block(heading: str, language: str) -> str:
    (only,) = re.findall(rf"```{language}\n(.*?)```", SECTIONS[heading], re.DOTALL)
    return only


def printed_by(heading: str, module: str, folder: Path) -> str:
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module} is not installed")
    program = folder / "recipe.py"
    program.write_text(block(heading, "python"), encoding="utf-8")
    quiet = {"HOME": str(folder), "RAY_USAGE_STATS_ENABLED": "0"}  # Ray writes into the home
    run = subprocess.run(
        [sys.executable, program.name],
        check=False,
        cwd=folder,
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return run.stdout


def test_every_recipe_is_in_the_table_with_the_version_that_is_installed():
    rows = re.findall(r"^\| \[(.+?)\]\(#(.+?)\) \| .+? \| (\S+) (\S+) \|", TEXT, re.MULTILINE)
    assert [row[0] for row in rows] == list(SECTIONS) == [*LEARNERS, "OpenSpiel"]
    for heading, anchor, package, version in rows:
        assert anchor == heading.lower().replace(" ", "-")
        compile(block(heading, "python"), heading, "exec")
        assert re.search(rf'\b{package}(\[\w+\])?=={version}[\s"]', block(heading, "bash"))


@pytest.mark.slow
@pytest.mark.parametrize("heading", LEARNERS)
def test_learner_beats_random(heading, tmp_path):
    module, bound = LEARNERS[heading]
    printed = printed_by(heading, module, tmp_path)
    score, error = map(float, re.search(r"against random: (\S+) ±(\S+)", printed).groups())
    assert 0 < error < 0.02
    assert bound < score < 0.6


@pytest.mark.slow
def test_cfr_approaches_an_equilibrium(tmp_path):
    printed = printed_by("OpenSpiel", "pyspiel", tmp_path)
    values = [float(value) for value in re.findall(r"iteration \d+: (\S+)", printed)]
    assert values == sorted(values, reverse=True)
    assert (len(values), values[0]) == (8, 0.1929)  # half the NashConv of uniform play
    assert values[-1] < 0.01
