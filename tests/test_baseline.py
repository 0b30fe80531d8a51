"""The policy that ships: small, made as its recipe says, and as strong as its card says."""

import json
from dataclasses import asdict
from pathlib import Path

from agents import make_agent
from agents.checkpoint import load
from agents.policy import BASELINE
from conquian_env import RuleSet
from training.config import load_config
from training.match import play_match

CARD = Path("docs/baseline.md").read_text(encoding="utf-8")


def test_it_is_small_and_was_made_by_its_recipe():
    assert BASELINE.stat().st_size <= 4 * 2**20
    baseline, config = load(BASELINE), load_config(Path("configs/baseline.toml"))
    assert baseline.rules == RuleSet()
    now = json.loads(json.dumps(asdict(config)))
    assert baseline.recipe == {key: now[key] for key in baseline.recipe}  # keys may be added
    assert baseline.decisions >= config.decisions
    assert baseline.revision in CARD


def test_it_beats_greedy():
    """A lower bound of +0.10; were it as good as greedy, one such match in 10,000 would show it."""
    agents = [(spec, make_agent(spec)) for spec in ("ppo:baseline", "greedy")]
    assert play_match(*agents, RuleSet(), 2000, 1).score.low > 0.10
