"""Training runs from TOML: unknown keys and values out of range are refused by name."""

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from agents.network import NetworkConfig
from conquian_env import RuleSet
from training.config import Config, EvaluationConfig, PoolConfig, PPOConfig, load_config
from training.results import TournamentConfig
from training.toml import ConfigError, checked, load_toml

TOURNAMENT = Path("configs/tournament.toml")
CONFIGS = sorted(Path("configs").glob("*.toml"))


def load(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "run.toml"
    path.write_text(text, encoding="utf-8")
    return load_config(path)


@pytest.mark.parametrize("path", CONFIGS, ids=str)
def test_shipped_configs_load_and_say_what_they_do(path):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith("# Produces")
    assert "minute" in first or "hour" in first or "second" in first
    if path == TOURNAMENT:
        assert len(checked(load_toml(path), TournamentConfig, str(path)).agents) > 2
    else:
        assert load_config(path).decisions > 0


def test_values_and_defaults(tmp_path):
    config = load(
        tmp_path, "decisions = 10\nrules = {deal = 8}\n[ppo]\nclip = 1\n[network]\nwidth = 7"
    )
    assert config.rule_set == RuleSet(deal=8)
    assert (config.network.width, config.network.layers, config.ppo.clip) == (7, 3, 1.0)
    assert config.network == NetworkConfig(width=7)
    with pytest.raises(FrozenInstanceError):
        config.decisions = 5


def test_opponents_and_evaluation_are_read(tmp_path):
    config = load(
        tmp_path,
        """
decisions = 10
[pool]
share = 0.5
anchors = ["greedy", "random"]
past = 3
[evaluation]
anchors = []
exact = true
""",
    )
    assert config.pool == PoolConfig(share=0.5, anchors=("greedy", "random"), past=3)
    assert config.evaluation == EvaluationConfig(anchors=(), exact=True)


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("decisions = 1\nlearning_rate = 1e-3", "learning_rate: unknown key"),
        ("decisions = 1\n[ppo]\nclip_range = 0.1", "ppo.clip_range: unknown key"),
        ("decisions = 1\n[pppo]\nclip = 0.1", "pppo: unknown key"),
        ("rules = 'classic'", "decisions"),
        ("decisions = 0", "decisions"),
        ("decisions = '5'", "decisions"),
        ("decisions = true", "decisions"),
        ("decisions = 1.5", "decisions"),
        ("decisions = 2024-01-01", "decisions"),
        ("decisions = 1\nseed = -1", "seed"),
        ("decisions = 1\nppo = 3", "ppo"),
        ("decisions = 1\n[ppo]\ngae_lambda = 1.1", "ppo.gae_lambda"),
        ("decisions = 1\n[ppo]\nlearning_rate = nan", "ppo.learning_rate"),
        ("decisions = 1\n[ppo]\nlearning_rate = inf", "ppo.learning_rate"),
        ("decisions = 1\nrules = 'clasic'", "run.toml: rules: unknown preset 'clasic'"),
        ("decisions = 1\nrules = {deal = 25}", "deal=25"),
        ("decisions = 1\nrules = {dael = 8}", "dael"),
        ("decisions = 1\nrules = 5", "rules"),
        ("decisions = 1\nrules = 'classic-1.1'\nppo.reverse_ranks = true", ".toml: ppo.reverse"),
        ("decisions = 1\nrules = {ranks = 9}\nppo.reverse_ranks = true", ".toml: ppo.reverse"),
        (
            "decisions = 1\nrules = {lay_order = 'ascending'}\nppo.reverse_ranks = true",
            ".toml: ppo.reverse",
        ),
        ("decisions =", "end of document"),
        ("decisions = 1\nppo.minibatch = 9223372036854775808", "ppo.minibatch"),
        ("decisions = 1\nppo.clip = 1e308", "ppo.clip"),
        ("decisions = 1\nppo.entropy = 1e308", "ppo.entropy"),
        (f"decisions = {'[' * 50_000}", "recursion"),
        (f"decisions = 1\na{'.a' * 50_000} = 1", "recursion"),
        (f"decisions = 0x{'f' * 5000}", "digits"),
        ("decisions = 1\nnum_games = 1048576\nrollout = 65536", "num_games * rollout: 1048576 *"),
        ("decisions = 1\nnum_games = 0", "num_games"),
        ("decisions = 1\nthreads = 0", "threads"),
        ("decisions = 1\ndevice = 'tpu'", "device"),
        ("decisions = 1\n[network]\nwidht = 8", "network.widht: unknown key"),
        ("decisions = 1\n[network]\nwidth = 0", "width must be from 1 to 4096, not 0"),
        ("decisions = 1\n[network]\nkind = 'round'", "kind"),
        ("decisions = 1\n[network]\nways = 1", "ways"),
        ("decisions = 1\n[ppo]\nema = 1", "ppo.ema"),
        ("decisions = 1\n[ppo]\nkl = -1", "ppo.kl"),
        ("decisions = 1\n[pool]\nshare = 1.5", "pool.share"),
        ("decisions = 1\n[pool]\nanchors = 'greedy'", "pool.anchors"),
        ("decisions = 1\n[pool]\npast = -1", "pool.past"),
        ("decisions = 1\n[pool]\nevry = 1", "pool.evry: unknown key"),
        ("decisions = 1\n[evaluation]\npairs = 1", "evaluation.pairs"),
        ("decisions = 1\n[evaluation]\npairs = 1000000000000", "evaluation.pairs"),
        ("decisions = 1\n[evaluation]\nanchor = 'x'", "evaluation.anchor: unknown key"),
    ],
)  # fmt: skip
def test_a_wrong_config_is_refused_in_one_line(tmp_path, text, culprit):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert culprit in message
    assert "run.toml" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rules": "clasic"}, "clasic"),
        ({"rules": {"deal": 25}}, "deal=25"),
        ({"rules": "nano", "ppo": PPOConfig(reverse_ranks=True)}, "ppo.reverse_ranks"),
    ],
)
def test_a_config_made_in_python_is_checked_too(values, said):
    with pytest.raises(ValueError, match=said):
        Config(decisions=1, **values)
    with pytest.raises(ValueError, match=said):
        replace(Config(decisions=1), **values)


def test_a_missing_or_binary_file_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.toml"):
        load_config(tmp_path / "binary.toml")
    with pytest.raises(ConfigError):
        load_config(tmp_path)
