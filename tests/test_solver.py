"""The solver against a plain minimax that prunes nothing and remembers nothing."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
from numba import njit

from conquian_env import Game, RuleSet, engine, solve
from conquian_env.actions import DISCARD, FORCE, LAY, PASS, action_name
from conquian_env.cards import NAMES, card_mask, cards
from conquian_env.errors import OptionError
from conquian_env.melds import legal_table, rulebook
from conquian_env.solver import UNKNOWN, Solver, best_value
from conquian_env.state import MAX_EVENTS, PHASE_OVER, Phase
from tests.playing import playthroughs
from tests.test_symmetries import moved, moved_actions, symmetries

TOO_MANY = 3_000_000


@njit
def minimax(rows, depth, book, nodes):
    """The value for seat 0 of ``rows[depth]``; the rows above it are scratch."""
    row = rows[depth]
    if row["phase"] == PHASE_OVER:
        return engine.payoff(row)
    nodes[0] += 1
    if nodes[0] > TOO_MANY:
        return 0
    answers, lays, discards = engine.legal(row, book)
    low, high = answers | lays << LAY, discards
    best = 2 if row["actor"] == 1 else -2
    while low | high:
        action, low, high = engine.pop_action(low, high)
        rows[depth + 1] = row
        engine.apply(rows[depth + 1], action, book)
        value = minimax(rows, depth + 1, book, nodes)
        best = min(best, value) if row["actor"] == 1 else max(best, value)
    return best


@njit
def run_minimax(rows, books, nodes):
    return minimax(rows, 0, books[0], nodes)


def full_width(game: Game) -> dict[int, int] | None:
    """The value of every action, or None where there are too many lines to look at all."""
    values = {}
    for action in game.legal_actions():
        after, nodes = game.copy(), np.zeros(1, np.int64)
        after.apply(action)
        rows = np.concatenate([after.to_state()] * 250)
        values[action] = int(run_minimax(rows, rulebook(game.rules), nodes))
        if nodes[0] > TOO_MANY:
            return None
    return values


def positions(rules: RuleSet, stock: int, seed: int) -> Iterator[Game]:
    """Positions with at most ``stock`` cards in the stock; who plays likes to take."""
    rng, deal = np.random.default_rng(seed), 0
    while True:
        game = Game(rules, seed, deal)
        deal += 1
        while not game.is_over:
            if game.phase != Phase.GIVE and game.stock_count <= stock:
                yield game.copy()
            legal = game.legal_actions()
            eager = legal[1:] if legal[0] == 0 and len(legal) > 1 and rng.random() < 0.7 else legal
            game.apply(int(rng.choice(eager)))


@pytest.mark.parametrize(
    ("rules", "stock", "wanted"),
    [
        ("nano", 12, 1000),
        ("micro", 12, 1000),
        ("classic", 3, 300),
        ("bicycle", 4, 150),
        ("mexican", 4, 150),
        ("nine", 4, 150),
        ("classic,force=auto", 4, 150),
        ("bicycle,lay_order=ascending,first_card=dealt", 4, 150),
    ],
)
def test_the_value_of_every_action_is_minimax(rules: str, stock: int, wanted: int) -> None:
    found, solver = set(), Solver(rules)
    done = 0
    for game in positions(solver.rules, stock, seed=4):
        expected = full_width(game)
        if expected is None:
            continue
        solution = solver.solve(game)
        assert solution.actions == expected, game.to_json()
        assert solution.value == best_value(game.actor, expected)
        found.add(solution.value)
        done += 1
        if done == wanted:
            break
    assert found == {-1, 0, 1}


@pytest.mark.parametrize("rules", ["classic", "classic-1.1"])
def test_values_do_not_change_under_the_symmetries(rules: str) -> None:
    solver, games = Solver(rules), positions(RuleSet.preset(rules), 6, seed=8)
    for _ in range(20):
        game = next(games)
        saved = json.loads(game.to_json()) | {"history": []}
        values = solver.solve(game).actions
        for order in symmetries(solver.rules)[:: 1 if rules == "classic" else 6]:
            mirrored = {key: moved(value, order) for key, value in saved.items()}
            assert solver.solve(Game.from_json(json.dumps(mirrored))).actions == {
                moved_actions([action], order)[0]: value for action, value in values.items()
            }


def test_exchanged_seats_exchange_the_values() -> None:
    solver, games = Solver(), positions(RuleSet(), 6, seed=9)
    for _ in range(100):
        game = next(games)
        saved = json.loads(game.to_json()) | {"history": []}
        for name in ("hands", "tables", "declined", "discarded", "known", "given"):
            saved[name] = saved[name][::-1]
        other = Game.from_json(json.dumps(saved | {"actor": 1 - game.actor}))
        values = solver.solve(game).actions
        assert solver.solve(other).actions == {
            action: None if value is None else -value for action, value in values.items()
        }


def test_the_line_is_legal_and_ends_in_the_value() -> None:
    solver = Solver()
    for deal in range(10):
        game = Game(seed=3, deal=deal)
        solution = solver.solve(game)
        for action in solution.line:
            game.apply(action)
        assert game.is_over
        assert game.returns()[0] == solution.value


def test_a_game_that_is_over_has_its_value() -> None:
    game = Game(seed=3)
    for action in solve(game).line:
        game.apply(action)
    solution = solve(game)
    assert (solution.value, solution.actions, solution.line) == (game.returns()[0], {}, ())


@pytest.mark.parametrize("memory", [1, 2, 1 << 12])
def test_a_small_memory_costs_time_and_nothing_else(memory: int) -> None:
    small, large, games = Solver(memory=memory), Solver(), positions(RuleSet(), 4, seed=1)
    for _ in range(100):
        game = next(games)
        assert small.solve(game).actions == large.solve(game).actions


def test_a_limit_leaves_values_unknown_and_never_wrong() -> None:
    full, unknown = Solver(), 0
    for deal in range(30):
        game = Game(seed=6, deal=deal)
        right = full.solve(game)
        for limit in (1, 10, 100, 1000, 10_000):
            found = Solver(limit=limit, memory=1 << 14).solve(game)
            unknown += found.value is None
            assert found.value in (None, right.value)
            assert found.nodes <= (limit + 1) * (MAX_EVENTS + 1)
            if found.line:
                end = game.copy()
                for action in found.line:
                    end.apply(action)
                assert (end.is_over, end.returns()[0]) == (True, right.value)
            for action, value in found.actions.items():
                assert value in (None, right.actions[action])
    assert 60 < unknown < 150


def test_many_positions_at_once_are_each_one_alone() -> None:
    solver, deals = Solver(), [Game(seed=2, deal=deal) for deal in range(12)]
    rows = np.concatenate([game.to_state() for game in deals])
    together, nodes = solver.action_values(rows)
    for i, game in enumerate(deals):
        alone, count = Solver().action_values(game.to_state())
        assert (together[i] == alone[0]).all()
        assert nodes[i] == count[0]
        assert set(np.flatnonzero(together[i] != UNKNOWN)) == set(game.legal_actions())


def test_what_has_no_value_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match="draw"):
        solve(Game("classic,draw=double"))
    with pytest.raises(OptionError, match="phase give"):
        solve(Game("mexican"))
    with pytest.raises(OptionError, match="a solver of nine, not classic"):
        Solver("nine").solve(Game())
    for name, wrong in (("limit", 0), ("limit", 10**20), ("memory", 0), ("memory", 4.0)):
        with pytest.raises(OptionError, match=f"{name} must be a whole number from 1"):
            Solver(**{name: wrong})
    with pytest.raises(OptionError, match="memory must be a power of two, not 3"):
        Solver(memory=3)


def redealt(game: Game, seat: int, worlds: int) -> dict[int, float]:
    """The mean value to ``seat`` of each action, when all that it does not know is dealt anew."""
    rng, solver = np.random.default_rng(0), Solver(game.rules)
    games = [game.resample_hidden(seat, rng) for _ in range(worlds)]
    values, _ = solver.action_values(np.concatenate([world.to_state() for world in games]))
    sign = 1 if seat == 0 else -1
    return {action: sign * float(values[:, action].mean()) for action in game.legal_actions()}


def test_situation_32_a_take_that_spoils_the_shape() -> None:
    """With 3H 4H left, 2H and 5H win; 5C on the table breaks that, so the other should insist.

    Standing by the pass is worth about 0.1 more than taking when the stock is short. Means of 600
    differences of at most 2: a false alarm is less likely than one in a hundred (Hoeffding).
    """
    own, table = "3H 4H", "7S JS QS KS 6C 7C JC QC"
    unseen = [name for name in NAMES if name not in f"{own} {table} 5C".split()]
    rng, better, solver = np.random.default_rng(0), [], Solver()
    for _ in range(600):
        dealt = rng.permutation(unseen).tolist()
        game = Game.from_position(
            "classic",
            hands=(own, " ".join(dealt[:10])),
            tables=(table, ""),
            face_up="5C",
            source="turned",
            stock=" ".join(dealt[10:14]),
            phase="force",
            actor=1,
        )
        values = solver.solve(game).actions
        better.append(values[PASS] - values[FORCE])
    assert 0.0 < np.mean(better) < 0.25


def test_situation_33_never_the_card_that_the_other_needs() -> None:
    game = Game.from_position(
        "classic",
        hands=("7H KS 5C JC", ""),
        tables=("4S 5S 6S 7S KC KD KH", "3H 4H 5H 6H QS QD QC AD 2D 3D"),
        stock="2C 3C",
        phase="meld",
    )
    values = {action_name(action): value for action, value in solve(game).actions.items()}
    assert values["discard 7H"] == -1
    assert min(values["discard KS"], values["discard 5C"], values["discard JC"]) >= 0


def test_situation_34_feeding_the_other_table_costs() -> None:
    """About 0.1 on the average over positions of greedy players."""
    costs = []
    for game in playthroughs("classic", 120, seed=3):
        table = card_mask(cards(" ".join(game.table(1 - game.actor))))
        discards = [a - DISCARD for a in game.legal_actions() if a >= DISCARD]
        feeds = {c for c in discards if table and legal_table(table | 1 << c, game.rules)}
        if feeds and len(feeds) < len(discards):
            values = redealt(game, game.actor, 10)
            fed = [values[DISCARD + c] for c in feeds]
            kept = [values[DISCARD + c] for c in discards if c not in feeds]
            costs.append(np.mean(kept) - np.mean(fed))
    assert len(costs) > 60
    assert 0.02 < np.mean(costs) < 0.3, np.mean(costs)
