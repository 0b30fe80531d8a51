"""Counts of action sequences: golden figures, and the oracle's small ones.

``python -m tests.test_perft`` writes ``tests/golden/perft.json`` anew, for every preset. Other
counts are other rules, or another dealing, and thus a new version of the game.
"""

import copy
import json
from pathlib import Path

import pytest

from conquian_env import Game, RuleSet
from conquian_env.errors import OptionError
from conquian_env.perft import perft
from conquian_env.rules import PRESETS
from tests.oracle import Oracle
from tests.playing import play, random_actions
from tests.test_jit import python
from tests.test_oracle_agreement import oracle_of

GOLDEN = Path(__file__).parent / "golden" / "perft.json"
DEALS = ((0, 0), (0, 1), (0, 2), (2**63, 5))
ENOUGH, DEEPEST = 1_000_000, 60  # a golden row stops with the first count of so many


def golden_row(preset: str, seed: int, deal: int) -> dict[str, object]:
    game, depth = Game(preset, seed, deal), 1
    while depth < DEEPEST and 0 < perft(game, depth)[-1] < ENOUGH:
        depth += 1
    return {"rules": preset, "seed": seed, "deal": deal, "counts": perft(game, depth)}


def oracle_counts(oracle: Oracle, depth: int) -> list[int]:
    """The sequences of 1, 2, … ``depth`` actions, one by one."""
    counts = [len(oracle.legal())] + [0] * (depth - 1)
    if depth > 1:
        for action in oracle.legal():
            after = copy.deepcopy(oracle)
            after.apply(action)
            deeper = oracle_counts(after, depth - 1)
            counts[1:] = [sum(pair) for pair in zip(counts[1:], deeper, strict=True)]
    return counts


@pytest.fixture(scope="module")
def golden() -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(GOLDEN.read_text())
    return rows


@pytest.mark.parametrize("preset", PRESETS)
def test_golden_counts_never_change(golden, preset: str) -> None:
    rows = [row for row in golden if row["rules"] == preset]
    assert [(row["seed"], row["deal"]) for row in rows] == list(DEALS)
    for row in rows:
        counts = perft(Game(preset, row["seed"], row["deal"]), len(row["counts"]))
        assert counts == row["counts"], (preset, row["seed"], row["deal"])


@pytest.mark.parametrize("preset", PRESETS)
def test_the_oracle_counts_the_same(golden, preset: str) -> None:
    """As deep as some thousand states reach."""
    for row in golden:
        if row["rules"] == preset:
            counts = row["counts"]
            depth = max(d for d in range(1, len(counts) + 1) if sum(counts[: d - 1]) < 1_000)
            oracle = oracle_of(Game(preset, row["seed"], row["deal"]))
            assert oracle_counts(oracle, depth) == counts[:depth]


@pytest.mark.parametrize(
    "rules",
    [
        RuleSet(draw="double", suits=3, ranks=4, deal=5, stock=1, max_deals=3),
        RuleSet(first_card="dealt", force="auto", hand_melds=True, deal=5),
    ],
    ids=RuleSet.to_text,
)
def test_the_oracle_counts_the_same_under_other_rules(rules: RuleSet) -> None:
    for deal in range(3):
        game = Game(rules, seed=4, deal=deal)
        assert perft(game, 5) == oracle_counts(oracle_of(game), 5)


def test_games_that_are_over_are_counted_no_deeper() -> None:
    game = Game("nano", seed=0)
    actions = random_actions(game, seed=0)
    counts = perft(game, 30)
    assert counts[len(actions) - 1] > 0
    assert counts[-1] == 0
    play(game, actions)
    assert perft(game, 2) == [0, 0]


def test_it_leaves_the_game_as_it_is() -> None:
    game = Game("bicycle", seed=3)
    perft(game, 4)
    assert game == Game("bicycle", seed=3)


def test_the_counts_are_the_same_with_the_jit_off() -> None:
    code = "from conquian_env import Game; from conquian_env.perft import perft"
    code += "; print(perft(Game('mexican'), 6))"
    assert python(code, NUMBA_DISABLE_JIT="1").strip() == str(perft(Game("mexican"), 6))


@pytest.mark.parametrize("depth", [0, -1, 201, True, 2.0, "3"])
def test_a_depth_out_of_range_is_refused(depth: object) -> None:
    with pytest.raises(OptionError, match="depth must be a whole number from 1 to 200, not"):
        perft(Game(), depth)  # type: ignore[arg-type]


if __name__ == "__main__":
    table = [golden_row(preset, *deal) for preset in PRESETS for deal in DEALS]
    GOLDEN.write_text("[\n" + ",\n".join(map(json.dumps, table)) + "\n]\n")
