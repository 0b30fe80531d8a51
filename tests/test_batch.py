"""`Batch` against games played one by one, trace for trace."""

import copy
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import chi2

from conquian_env import Batch, Game, Phase, RuleSet
from conquian_env.actions import DISCARD, LAY, PASS, TAKE
from conquian_env.errors import (
    ConquianError,
    IllegalActionError,
    OptionError,
    RuleSetError,
    SeedError,
)
from conquian_env.observation import unpack
from conquian_env.view import Views

ARRAYS = {
    "observation": (np.uint8, (416,)),
    "mask": (np.bool_, (83,)),
    "actor": (np.int8, ()),
    "reward": (np.float32, (2,)),
    "done": (np.bool_, ()),
    "deal": (np.int64, ()),
    "ply": (np.int16, ()),
}
FALSE_ALARM = 1e-6  # of each chi-square test, over the choice of its seed
TINY = RuleSet(deal=2)  # two cards each: in most deals nobody can ever take, and so choose


class Row:
    """One row of a batch, played with `Game`."""

    def __init__(
        self, rules: RuleSet | str, seed: int, first: int, stride: int, skip: bool, again: bool
    ) -> None:
        self.rules, self.seed, self.stride, self.skip, self.again = rules, seed, stride, skip, again
        self.reward, self.done = (0.0, 0.0), False
        self.skipped_deals = self.forced_ends = 0
        self.finished: list[tuple[int, tuple[int, ...]]] = []
        self._deal(first)
        self.done = self.game.is_over

    def _deal(self, number: int) -> None:
        self.game = Game(self.rules, self.seed, number)
        self._settle()
        while self.again and self.game.is_over:
            self.skipped_deals += 1
            self.game = Game(self.rules, self.seed, self.game.deal + self.stride)
            self._settle()

    def _settle(self) -> bool:
        """Play what is forced; whether anything was."""
        ply = self.game.ply
        while self.skip and len(self.game.legal_actions()) == 1:
            self.game.apply(self.game.legal_actions()[0])
        return self.game.ply > ply

    def legal(self) -> list[int]:
        return [PASS] if self.game.is_over else self.game.legal_actions()

    def step(self, action: int) -> None:
        if self.game.is_over:
            self.reward = (0.0, 0.0)
            return
        self.game.apply(action)
        forced = self._settle()
        self.done, self.reward = self.game.is_over, self.game.returns()
        if self.done:
            self.forced_ends += forced
            self.finished.append((self.game.deal, self.game.history))
            if self.again:
                self._deal(self.game.deal + self.stride)

    def redeal(self) -> None:
        self._deal(self.game.deal + self.stride)
        self.reward, self.done = self.game.returns(), self.game.is_over


def rows_of(
    num_games: int,
    rules: RuleSet | str,
    seed: int | Sequence[int],
    skip: bool = False,
    again: bool = True,
) -> list[Row]:
    if isinstance(seed, int):
        return [Row(rules, seed, i, num_games, skip, again) for i in range(num_games)]
    return [Row(rules, one, 0, 1, skip, again) for one in seed]


def assert_same(batch: Batch, rows: list[Row]) -> None:
    for i, row in enumerate(rows):
        game = row.game
        assert (batch.deal[i], batch.ply[i], batch.actor[i]) == (game.deal, game.ply, game.actor)
        assert batch.observation[i].tobytes() == game.observation(game.actor).tobytes()
        assert np.flatnonzero(batch.mask[i]).tolist() == row.legal()
        assert (batch.done[i], *batch.reward[i]) == (row.done, *row.reward)


def play_both(batch: Batch, rows: list[Row], steps: int, seed: int = 1) -> None:
    """Step batch and rows with the same random actions, and compare after every step.

    Take and lay are preferred in every second step, so that deals are won.
    """
    rng = np.random.default_rng(seed)
    assert_same(batch, rows)
    for step in range(steps):
        actions = eager(batch, rng) if step % 2 else batch.sample_actions(rng)
        batch.step(actions)
        for row, action in zip(rows, actions.tolist(), strict=True):
            row.step(action)
        assert_same(batch, rows)


def eager(batch: Batch, rng: np.random.Generator) -> NDArray[np.int64]:
    """Random actions, but take, force or lay wherever that is legal."""
    mask = unpack(batch.observation, batch.mask)[1] if batch.packed else batch.mask
    wanted = mask[:, TAKE:DISCARD]
    return np.where(wanted.any(axis=1), wanted.argmax(axis=1) + TAKE, batch.sample_actions(rng))


def everything(batch: Batch) -> dict[str, bytes]:
    """All that a batch holds: its arrays, and the states behind them."""
    arrays = {name: getattr(batch, name).tobytes() for name in ARRAYS}
    return arrays | {str(i): batch.game(i).to_json().encode() for i in range(batch.num_games)}


def somewhere(**options: Any) -> Batch:
    """Six rows in the middle of things: one of them has just been won, and paid."""
    batch, rng = Batch(6, "classic", seed=3, **options), np.random.default_rng(2)
    for step in range(1000):
        batch.step(eager(batch, rng) if step > 30 else batch.sample_actions(rng))
        if batch.reward.any():
            return batch
    raise AssertionError


# --- the same games as Game ---


@pytest.mark.parametrize(
    ("num_games", "rules", "steps"),
    [
        (1, "classic", 400),
        (7, "classic", 200),
        (64, "classic", 80),
        (7, "classic-1.1", 200),
        (7, RuleSet(force="auto"), 200),
        (7, RuleSet(force="off", deal=8), 200),
        (7, RuleSet(force_source="discard", deal=5), 200),
    ],
)
def test_a_batch_plays_the_games_of_game(num_games: int, rules: RuleSet | str, steps: int) -> None:
    """An int seed: row i plays deals i, i + n, i + 2n, …"""
    batch, rows = Batch(num_games, rules, seed=5), rows_of(num_games, rules, 5)
    play_both(batch, rows, steps)
    assert min(row.game.deal for row in rows) >= num_games
    assert all(row.game.deal % num_games == i for i, row in enumerate(rows))


def test_one_seed_a_row() -> None:
    """Row i plays deals 0, 1, 2, … of its own seed."""
    seeds = [0, 5, (1 << 64) - 1, 1 << 63, 5]
    batch, rows = Batch(5, "classic", seed=seeds), rows_of(5, "classic", seeds)
    assert batch.deal.tolist() == [0] * 5
    play_both(batch, rows, 150)
    assert all([deal for deal, _ in row.finished] == list(range(row.game.deal)) for row in rows)
    assert min(row.game.deal for row in rows) >= 2
    assert [batch.game(i).seed for i in range(5)] == seeds


def test_seeds_may_come_as_an_array() -> None:
    seeds = [3, (1 << 64) - 1]
    arrays = Batch(2, "classic", seed=np.array(seeds, np.uint64))
    assert everything(arrays) == everything(Batch(2, "classic", seed=seeds))
    one = Batch(2, "classic", seed=np.uint64(seeds[1]))  # type: ignore[arg-type]
    assert everything(one) == everything(Batch(2, "classic", seed=seeds[1]))


def test_rules_by_name_and_by_default() -> None:
    assert everything(Batch(2)) == everything(Batch(2, RuleSet(), 0, False, True))
    assert Batch(2, "classic-1.1").rules == RuleSet(seven_jack_adjacent=False)


@pytest.mark.parametrize("num_games", [1, 7, 4096])
@pytest.mark.parametrize("options", [{}, {"skip_forced": True, "autoreset": False}], ids=str)
def test_games_do_not_depend_on_the_number_of_threads(
    num_games: int, options: dict[str, Any]
) -> None:
    batches = [
        Batch(num_games, "mexican", seed=9, threads=threads, **options) for threads in (1, 2, 3)
    ]
    rng, chosen = np.random.default_rng(0), np.arange(num_games) % 3 == 0
    for step in range(100):
        actions = batches[0].sample_actions(rng)
        for batch in batches:
            batch.step(actions)
            if step == 50:
                batch.reset(chosen)
        for name in ARRAYS:
            arrays = [getattr(batch, name) for batch in batches]
            assert all((array == arrays[0]).all() for array in arrays), name
    assert batches[0].deal.max() >= num_games


@pytest.mark.parametrize("rules", ["classic", "mexican", "classic,draw=double"])
@pytest.mark.parametrize("options", [{}, {"skip_forced": True, "autoreset": False}], ids=str)
def test_a_packed_batch_unpacks_to_the_same(rules: str, options: dict[str, Any]) -> None:
    plain, packed = (Batch(50, rules, seed=3, packed=packed, **options) for packed in (False, True))
    rng = np.random.default_rng(0)
    for _ in range(150):
        for xp in (np, torch):
            observation, mask = unpack(
                xp.asarray(packed.observation), xp.asarray(packed.mask), xp=xp
            )
            assert (observation.dtype, mask.dtype) == (xp.uint8, xp.bool)
            assert (np.asarray(observation) == plain.observation).all()
            assert (np.asarray(mask) == plain.mask).all()
        actions = plain.sample_actions(rng)
        plain.step(actions)
        packed.step(actions)
        assert (packed.reward == plain.reward).all()
    packed.mask[:] = -1  # says what is legal, does not decide it
    with pytest.raises(IllegalActionError):
        packed.step(np.full(50, 82))


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_stepped_by_themselves_play_the_same_games(threads: int) -> None:
    whole, parts = Batch(40, seed=5), Batch(40, seed=5, threads=threads)
    rng = np.random.default_rng(0)
    for _ in range(100):
        actions, first = whole.sample_actions(rng), rng.random(40) < 0.3
        whole.step(actions)
        for chosen in (first, ~first, np.zeros(40, np.bool_)):
            others = parts.observation[~chosen].tobytes(), parts.reward[~chosen].tobytes()
            parts.step(actions[chosen], np.flatnonzero(chosen))
            assert (parts.observation[~chosen].tobytes(), parts.reward[~chosen].tobytes()) == others
        assert everything(parts) == everything(whole)


@pytest.mark.parametrize(
    ("index", "message"),
    [([3, 3], "ascend"), ([2, 1], "ascend"), ([0, 6], "outside"), ([-1, 0], "outside")],
)
def test_index_names_each_row_once(index: list[int], message: str) -> None:
    batch = somewhere()
    before = everything(batch)
    with pytest.raises(OptionError, match=message):
        batch.step([0, 0], np.array(index))
    with pytest.raises(OptionError, match="index must be an array of int64"):
        batch.step([0, 0], np.array([0.0, 1.0]))
    with pytest.raises(IllegalActionError, match=r"shape \(1,\)"):
        batch.step([0, 0], np.array([1]))
    assert everything(batch) == before


def test_the_number_of_rows_does_not_move_a_deal() -> None:
    for n in (1, 2, 5):
        batch = Batch(n, "classic", seed=9)
        for _ in range(3):
            for i in range(n):
                assert batch.game(i).to_json() == Game("classic", 9, int(batch.deal[i])).to_json()
            batch.reset()
        assert batch.deal.tolist() == [3 * n + i for i in range(n)]


# --- skip_forced ---


@pytest.mark.parametrize(
    "rules", ["classic", "classic-1.1", RuleSet(force="auto"), RuleSet(deal=4)], ids=str
)
def test_skip_forced_plays_the_same_games_and_shows_real_choices(rules: RuleSet | str) -> None:
    batch = Batch(7, rules, seed=6, skip_forced=True)
    rows = rows_of(7, rules, 6, skip=True)
    play_both(batch, rows, 120)
    assert (batch.mask.sum(axis=1) > 1).all()
    ends = [end for row in rows for end in row.finished]
    assert len(ends) > 20
    for deal, history in ends:  # no ply is lost: each history is a whole game from its deal
        game = Game(rules, 6, deal)
        while not game.is_over:
            game.apply(history[len(game.history)] & 127)
        assert game.history == history


def test_skip_forced_pays_both_seats_when_forced_plies_end_the_deal() -> None:
    """Such ends are draws, and wins too: the only lay that is left completes the table."""
    paid = Counter[tuple[bool, float]]()
    batch, rows = Batch(16, "classic", seed=7, skip_forced=True), rows_of(16, "classic", 7, True)
    rng = np.random.default_rng(3)
    for _ in range(150):
        actions = eager(batch, rng)
        ends = [row.forced_ends for row in rows]
        batch.step(actions)
        for i, row in enumerate(rows):
            row.step(int(actions[i]))
            assert (batch.done[i], *batch.reward[i]) == (row.done, *row.reward)
            if row.done:
                paid[row.forced_ends > ends[i], abs(float(batch.reward[i, 0]))] += 1
            else:
                assert not batch.reward[i].any()
    assert set(paid) == {(True, 0.0), (True, 1.0), (False, 1.0)}


def test_a_deal_without_a_choice_is_played_through_and_counted() -> None:
    batch, rows = Batch(3, TINY, seed=8, skip_forced=True), rows_of(3, TINY, 8, skip=True)
    assert batch.deal.max() >= 3
    assert not batch.done.any()
    play_both(batch, rows, 40)
    assert all(row.skipped_deals > 10 for row in rows)
    assert all(row.game.deal % 3 == i for i, row in enumerate(rows))
    batch.reset()
    for row in rows:
        row.redeal()
    assert_same(batch, rows)


def test_a_deal_without_a_choice_and_without_autoreset_is_over_at_once() -> None:
    batch = Batch(8, TINY, seed=8, skip_forced=True, autoreset=False)
    rows = rows_of(8, TINY, 8, skip=True, again=False)
    assert_same(batch, rows)
    over = batch.done.copy()
    assert over.any()
    assert not over.all()
    assert all(batch.game(i).is_over == over[i] for i in range(8))
    play_both(batch, rows, 5)
    batch.reset(batch.done)
    for row in rows:
        if row.done:
            row.redeal()
    assert_same(batch, rows)


def test_without_skip_forced_every_ply_is_shown() -> None:
    batch = Batch(4, TINY, seed=8, autoreset=False)
    for ply in range(72):
        assert (batch.ply[~batch.done] == ply).all()
        batch.step([PASS] * 4)
    assert batch.done.all()


# --- autoreset=False ---


@pytest.mark.parametrize("skip", [False, True])
def test_a_finished_row_keeps_its_end_and_may_only_pass(skip: bool) -> None:
    batch = Batch(12, "classic", seed=9, skip_forced=skip, autoreset=False)
    rows = rows_of(12, "classic", 9, skip=skip, again=False)
    play_both(batch, rows, 90)
    assert batch.done.all()
    assert batch.deal.tolist() == list(range(12))
    assert not batch.reward.any()
    assert {abs(batch.game(i).returns()[0]) for i in range(12)} == {0, 1}
    for i in range(12):
        assert batch.game(i).phase == Phase.OVER
        assert np.flatnonzero(batch.mask[i]).tolist() == [PASS]
    before = everything(batch)
    batch.step(np.zeros(12, np.int64))
    assert everything(batch) == before
    with pytest.raises(IllegalActionError, match="row 3: take is not legal"):
        batch.step([0, 0, 0, TAKE] + [0] * 8)


def test_the_end_is_paid_once() -> None:
    batch = Batch(12, "classic", seed=9, autoreset=False)
    rng, total = np.random.default_rng(4), np.zeros((12, 2))
    while not batch.done.all():
        before = batch.done.copy()
        batch.step(eager(batch, rng))
        assert not batch.reward[before].any()
        total += batch.reward
    assert total.tolist() == [list(batch.game(i).returns()) for i in range(12)]
    assert 2 < np.abs(total[:, 0]).sum() < 12


# --- reset ---


def test_reset_of_some_rows_leaves_the_others_alone() -> None:
    batch = somewhere()
    before, chosen = everything(batch), batch.done | (np.arange(6) % 2 == 0)
    assert 0 < chosen.sum() < 6
    assert batch.reward[chosen].any()
    deals = batch.deal.copy()
    arrays = {name: getattr(batch, name).copy() for name in ARRAYS}
    batch.reset(chosen)
    for name in ARRAYS:
        assert (getattr(batch, name)[~chosen] == arrays[name][~chosen]).all()
    for i in range(6):
        if chosen[i]:
            fresh = Game("classic", 3, int(deals[i]) + 6)
            assert batch.game(i).to_json() == fresh.to_json()
            assert batch.observation[i].tobytes() == fresh.observation(0).tobytes()
            assert np.flatnonzero(batch.mask[i]).tolist() == fresh.legal_actions()
            assert (batch.actor[i], batch.ply[i], batch.done[i]) == (0, 0, False)
            assert not batch.reward[i].any()
        else:
            assert batch.game(i).to_json().encode() == before[str(i)]


def test_reset_of_all_rows_and_of_none() -> None:
    batch = somewhere()
    before, deals = everything(batch), batch.deal.copy()
    batch.reset(np.zeros(6, bool))
    assert everything(batch) == before
    batch.reset()
    assert (batch.deal == deals + 6).all()
    for array in (batch.ply, batch.reward, batch.done):
        assert not array.any()


def test_reset_wakes_finished_rows() -> None:
    batch, rng = somewhere(autoreset=False), np.random.default_rng(3)
    while not batch.done.all():
        batch.step(batch.sample_actions(rng))
    batch.reset(np.array([True] + [False] * 5))
    assert batch.done.tolist() == [False] + [True] * 5
    assert (batch.deal[0], batch.ply[0]) == (6, 0)
    batch.step(batch.sample_actions(np.random.default_rng(1)))
    assert batch.ply[0] == 1


@pytest.mark.parametrize(
    "mask",
    [np.ones(5, bool), np.ones((6, 1), bool), np.ones(6, int), [1, 0, 1, 0, 1, 0], True, "x"],
)
def test_reset_of_what_is_no_mask(mask: Any) -> None:
    batch = somewhere()
    before = everything(batch)
    with pytest.raises(OptionError, match="mask must be an array of bool and shape"):
        batch.reset(mask)
    assert everything(batch) == before


# --- arrays ---


@pytest.mark.parametrize("n", [1, 5])
def test_arrays_are_valid_at_construction(n: int) -> None:
    batch = Batch(n, "classic", seed=10)
    for name, (dtype, shape) in ARRAYS.items():
        array = getattr(batch, name)
        assert (array.dtype, array.shape) == (np.dtype(dtype), (n, *shape))
    assert_same(batch, rows_of(n, "classic", 10))
    assert set(batch.mask.view(np.uint8).ravel().tolist()) == {0, 1}
    assert (batch.num_games, repr(batch)) == (n, f"<Batch of {n} games>")


def test_arrays_are_written_in_place() -> None:
    batch = Batch(6, "classic")
    arrays = {name: getattr(batch, name) for name in ARRAYS}
    places = {name: array.ctypes.data for name, array in arrays.items()}
    for step in range(130):
        batch.step(batch.sample_actions(np.random.default_rng(step)))
    batch.reset(np.array([True] * 3 + [False] * 3))
    assert all(getattr(batch, name) is array for name, array in arrays.items())
    assert all(array.ctypes.data == places[name] for name, array in arrays.items())


@pytest.mark.parametrize("name", ["deal", "ply"])
@pytest.mark.parametrize("make", [somewhere, lambda: copy.deepcopy(somewhere())])
def test_deal_and_ply_are_read_only(name: str, make: Callable[[], Batch]) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(make(), name)[0] = 1


# --- what is refused ---


def legal_actions(batch: Batch) -> NDArray[np.int64]:
    return batch.mask.argmax(axis=1)


@pytest.mark.parametrize("row", range(6))
@pytest.mark.parametrize("options", [{}, {"skip_forced": True}])
def test_an_illegal_action_changes_nothing_anywhere(row: int, options: dict[str, Any]) -> None:
    batch = somewhere(**options)
    before = everything(batch)
    for action in (*range(-130, 260), 1 << 32, -(1 << 63)):
        if 0 <= action < 83 and batch.mask[row, action]:
            continue
        actions = legal_actions(batch)
        actions[row] = action
        with pytest.raises(IllegalActionError, match=f"^row {row}: .* is not legal"):
            batch.step(actions)
    assert everything(batch) == before


def test_the_first_illegal_row_is_named_with_its_action() -> None:
    batch = Batch(6, "classic")
    actions = np.array([0, 0, 0, DISCARD + 26, 2, 99])
    with pytest.raises(IllegalActionError, match=r"^row 3: discard 7H is not legal$"):
        batch.step(actions)
    actions[3] = LAY + 26
    with pytest.raises(IllegalActionError, match=r"^row 3: lay 7H is not legal$"):
        batch.step(actions)
    actions[3] = 0
    with pytest.raises(IllegalActionError, match=r"^row 4: force is not legal$"):
        batch.step(actions)
    actions[4] = 0
    with pytest.raises(IllegalActionError, match=r"^row 5: action 99 is not legal$"):
        batch.step(actions)
    actions[5] = -1
    with pytest.raises(IllegalActionError, match=r"^row 5: action -1 is not legal$"):
        batch.step(actions)


@pytest.mark.parametrize(
    "actions",
    [
        0,
        [],
        [0] * 5,
        [0] * 7,
        [[0]] * 6,
        [0.0] * 6,
        [False] * 6,
        ["0"] * 6,
        [None] * 6,
        None,
        np.zeros(6, np.float32),
        np.zeros((1, 6), np.int64),
        np.zeros(6, np.complex64),
    ],
    ids=repr,
)
def test_actions_of_a_wrong_shape_or_kind(actions: Any) -> None:
    batch = somewhere()
    before = everything(batch)
    with pytest.raises(IllegalActionError, match=re.escape("integers of shape (6,)")):
        batch.step(actions)
    assert everything(batch) == before


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64, np.int64])
def test_actions_of_every_integer_kind(dtype: type) -> None:
    first, second = somewhere(), somewhere()
    actions = legal_actions(first)
    first.step(actions)
    wide = np.zeros(12, dtype)
    wide[::2] = actions
    second.step(wide[::2])  # not contiguous
    assert everything(first) == everything(second)


def test_an_action_too_big_for_int64_is_refused() -> None:
    with pytest.raises(IllegalActionError, match=r"row 0: action .* is not legal"):
        somewhere().step(np.full(6, (1 << 64) - 1, np.uint64))


@pytest.mark.parametrize("n", [0, -1, "3", 2.0, None, True])
def test_bad_number_of_games(n: Any) -> None:
    with pytest.raises(OptionError, match=f"threads must be .*, not {n!r}"):
        Batch(2, threads=n)
    with pytest.raises(OptionError, match=f"num_games must be .*, not {n!r}"):
        Batch(n)


@pytest.mark.parametrize("seed", [-1, 1 << 64, [0, -1, 0], [0, 1 << 64, 0], [0, 1.5, 0], "abc"])
def test_bad_seed(seed: Any) -> None:
    with pytest.raises(SeedError, match="seed"):
        Batch(3, "classic", seed)


@pytest.mark.parametrize("seed", [True, 1.5, None])
def test_a_seed_of_no_kind(seed: Any) -> None:
    """As Game refuses it."""
    with pytest.raises(ConquianError, match="seed must be"):
        Batch(3, "classic", seed)


@pytest.mark.parametrize("seed", [[], [1, 2], [1, 2, 3, 4], np.zeros(2, np.uint64), "ab"])
def test_a_wrong_number_of_seeds(seed: Any) -> None:
    with pytest.raises(OptionError, match=f"seed has {len(seed)} entries for 3 games"):
        Batch(3, "classic", seed)


@pytest.mark.parametrize("rules", ["modern", None, 10, {}])
def test_bad_rules(rules: Any) -> None:
    with pytest.raises(RuleSetError):
        Batch(3, rules)


@pytest.mark.parametrize("i", [-1, 6, 600])
def test_a_row_that_is_not_there(i: int) -> None:
    with pytest.raises(OptionError, match=f"row {i} is outside 0 to 5"):
        somewhere().game(i)


# --- copies ---

COPIES: dict[str, Callable[[Batch], Batch]] = {
    "copy.copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda batch: pickle.loads(pickle.dumps(batch)),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize(
    "options",
    [{}, {"skip_forced": True}, {"autoreset": False}, {"packed": True}],
    ids=["plain", "skip", "once", "packed"],
)
def test_a_copy_plays_on_identically_into_the_next_deals(way: str, options: dict[str, Any]) -> None:
    batch = somewhere(**options)
    twin = COPIES[way](batch)
    assert (twin.rules, twin.num_games) == (batch.rules, batch.num_games)
    assert everything(twin) == everything(batch)
    ours, theirs = np.random.default_rng(5), np.random.default_rng(5)
    for _ in range(150):
        batch.step(batch.sample_actions(ours))
        twin.step(twin.sample_actions(theirs))
        assert all((getattr(twin, name) == getattr(batch, name)).all() for name in ARRAYS)
    assert everything(twin) == everything(batch)
    assert (batch.deal.min() >= 12) == batch.autoreset
    for each in (batch, twin):
        each.reset()
    assert everything(twin) == everything(batch)


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_batch_with_one_seed_a_row(way: str) -> None:
    batch = Batch(2, TINY, seed=[4, 5], skip_forced=True)
    twin = COPIES[way](batch)
    twin.reset()
    assert twin.deal.tolist() != batch.deal.tolist()
    batch.reset()
    assert everything(twin) == everything(batch)


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_is_independent(way: str) -> None:
    batch = somewhere()
    before = everything(batch)
    twin = COPIES[way](batch)
    twin.step(legal_actions(twin))
    assert everything(batch) == before
    assert not any(np.shares_memory(getattr(batch, n), getattr(twin, n)) for n in ARRAYS)


def test_a_game_of_a_batch_is_its_own() -> None:
    batch = somewhere()
    before = everything(batch)
    game = batch.game(2)
    assert game.to_json().encode() == before["2"]
    game.apply(game.legal_actions()[0])
    assert everything(batch) == before
    kept = batch.game(3)
    text = kept.to_json()
    batch.step(legal_actions(batch))
    assert kept.to_json() == text != batch.game(3).to_json()


# --- sampling and views ---


def test_sampled_actions_are_legal() -> None:
    for options in ({}, {"skip_forced": True}, {"autoreset": False}):
        batch, rng = Batch(6, "classic", **options), np.random.default_rng(6)
        for _ in range(150):
            actions = batch.sample_actions(rng)
            assert (actions.dtype, actions.shape) == (np.int64, (6,))
            assert batch.mask[np.arange(6), actions].all()
            batch.step(actions)


def test_sampling_is_uniform() -> None:
    """Many rows of one game, in states with only answers, lays, discards, and with both."""
    kinds = set()
    batch, rng = Batch(2000, "classic", seed=[11] * 2000), np.random.default_rng(7)
    for _ in range(60):
        actions = np.flatnonzero(batch.mask[0])
        kind = tuple(np.unique(np.digitize(actions, [LAY, DISCARD])).tolist())
        if kind not in kinds and len(actions) > 1:
            kinds.add(kind)
            drawn = np.concatenate([batch.sample_actions(rng) for _ in range(50)])
            counts = np.bincount(drawn, minlength=83)[actions]
            assert counts.sum() == 100_000
            statistic = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
            assert chi2.sf(statistic, len(actions) - 1) > FALSE_ALARM
        batch.step(np.full(2000, eager(batch, rng)[0]))
    assert kinds == {(0,), (1,), (2,), (1, 2)}


def test_sampling_follows_the_generator_and_changes_nothing() -> None:
    batch = somewhere()
    before = everything(batch)
    first, second = (batch.sample_actions(np.random.default_rng(8)) for _ in range(2))
    assert first.tolist() == second.tolist()
    assert everything(batch) == before


def test_views_of_rows() -> None:
    batch, index = somewhere(), np.array([4, 1, 1])
    seeds = np.array([7, 8, (1 << 64) - 1], np.uint64)
    views: Views = batch.views(index, seeds)
    assert (views.observation == batch.observation[index]).all()
    assert (views.mask == batch.mask[index]).all()
    assert (views.rules, views.seeds.tolist()) == (batch.rules, seeds.tolist())
    for k, i in enumerate(index.tolist()):
        game = batch.game(i)
        turned = tuple(int(event) ^ game.actor << 7 for event in views.history[k])
        assert turned[: len(game.history)] == game.history
    assert not np.shares_memory(views.observation, batch.observation)


ROW, SEED = np.zeros(1, np.int64), np.zeros(1, np.uint64)


@pytest.mark.parametrize(
    ("index", "seeds", "message"),
    [
        (ROW - 1, SEED, "index has rows outside 0 to 5"),
        (ROW + 6, SEED, "index has rows outside 0 to 5"),
        (ROW.astype(float), SEED, "index must be an array of int64"),
        (ROW == 0, SEED, "index must be an array of int64"),
        (ROW[None], SEED[None], "index must be an array of int64"),
        ([0], SEED, "index must be an array of int64"),
        (ROW, SEED[:0], "seeds must be an array of uint64"),
        (ROW, ROW, "seeds must be an array of uint64"),
        (ROW, [0], "seeds must be an array of uint64"),
    ],
)
def test_views_of_what_are_no_rows(index: Any, seeds: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        somewhere().views(index, seeds)


def test_views_of_no_rows() -> None:
    assert len(somewhere().views(ROW[:0], SEED[:0])) == 0


def test_views_of_finished_rows_may_only_pass() -> None:
    batch = Batch(2, "classic", autoreset=False)
    while not batch.done.all():
        batch.step(batch.sample_actions(np.random.default_rng(9)))
    views = batch.views(np.arange(2), np.arange(2).astype(np.uint64))
    assert (views.mask == batch.mask).all()
    assert np.flatnonzero(views.mask[0]).tolist() == [PASS]


# --- seeds of single rows, and what either seat sees ---


@pytest.mark.parametrize("options", [{}, {"skip_forced": True, "rules": TINY}, {"packed": True}])
def test_reseeded_rows_play_the_deals_of_their_seeds(options: dict[str, Any]) -> None:
    options = {"rules": "classic", **options}
    batch, twin = Batch(4, seed=[1, 2, 3, 4], **options), Batch(4, seed=[1, 9, 3, 0], **options)
    other = Batch(4, seed=[1, 2, 3, 4], **options)
    for each in (batch, other):
        each.step(each.sample_actions(np.random.default_rng(1)))
        each.reset()
    batch.reseed(np.array([1, 3]), [9, 0])
    for i, same in enumerate((other, twin, other, twin)):
        assert batch.game(i) == same.game(i)
        for name in ("observation", "mask", "actor", "reward", "done", "deal", "ply"):
            assert (getattr(batch, name)[i] == getattr(same, name)[i]).all()
    batch.reset()
    twin.reset()
    assert batch.game(1) == twin.game(1)
    assert batch.game(1).deal > 0


def test_rows_can_have_any_seed() -> None:
    batch = Batch(3, seed=[5, 5, 5])
    batch.reseed(np.arange(3), np.array([0, 1 << 63, (1 << 64) - 1], np.uint64))
    assert [batch.game(i).seed for i in range(3)] == [0, 1 << 63, (1 << 64) - 1]
    batch.reseed(np.arange(0), [])


@pytest.mark.parametrize(
    ("index", "seeds", "error", "message"),
    [
        ([0], [1], OptionError, "index must be an array of int64"),
        (np.array([3]), [1], OptionError, "index has rows outside 0 to 2"),
        (np.array([0, 1]), [1], OptionError, "seeds has 1 entries for 2 rows"),
        (np.array([0, 1]), [1, -1], SeedError, "seed -1"),
        (np.array([0, 1]), [1, 1 << 64], SeedError, "seed"),
        (np.array([0, 1]), [1, None], SeedError, "seed must be"),
    ],
)
def test_a_wrong_reseed_changes_nothing(
    index: Any, seeds: Any, error: type[Exception], message: str
) -> None:
    batch = Batch(3, seed=[1, 2, 3])
    before = everything(batch)
    with pytest.raises(error, match=message):
        batch.reseed(index, seeds)
    assert everything(batch) == before


def test_rows_of_one_seed_cannot_be_reseeded() -> None:
    with pytest.raises(OptionError, match="one seed a row"):
        Batch(3, seed=1).reseed(np.array([0]), [1])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["flat", "planes", "history"])
def test_either_seat_sees_what_a_game_shows_it(encoding: Any, packed: bool) -> None:
    batch, rng = Batch(6, "mexican", autoreset=False, packed=packed), np.random.default_rng(2)
    while not batch.done.all():
        before = everything(batch)
        index = rng.permutation(6)[:4]
        seats = rng.integers(0, 2, 4).astype(np.int8)
        seen = batch.observe(index, seats, encoding)
        for k, (i, seat) in enumerate(zip(index.tolist(), seats.tolist(), strict=True)):
            assert seen[k].tobytes() == batch.game(i).observation(seat, encoding).tobytes()
        assert seen.dtype == np.uint8
        assert everything(batch) == before
        batch.step(batch.sample_actions(rng))
    assert batch.observe(ROW[:0], ROW[:0].astype(np.int8), encoding).shape[0] == 0


SEAT = np.zeros(1, np.int8)


@pytest.mark.parametrize(
    ("index", "seats", "encoding", "message"),
    [
        (ROW + 6, SEAT, "flat", "index has rows outside 0 to 5"),
        ([0], SEAT, "flat", "index must be an array of int64"),
        (ROW, [0], "flat", "seats must be an array of int8"),
        (ROW, ROW, "flat", "seats must be an array of int8"),
        (ROW, SEAT[:0], "flat", "seats must be an array of int8"),
        (ROW, SEAT + 2, "flat", "seats must be 0 or 1"),
        (ROW, SEAT - 1, "flat", "seats must be 0 or 1"),
        (ROW, SEAT, "plane", "encoding must be flat, planes or history"),
    ],
)
def test_what_nobody_can_see(index: Any, seats: Any, encoding: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        somewhere().observe(index, seats, encoding)


# --- states put back, and what is hidden ---


@pytest.mark.parametrize(
    "options",
    [{}, {"skip_forced": True}, {"autoreset": False}, {"packed": True}, {"threads": 2}],
    ids=["plain", "skip", "once", "packed", "threads"],
)
def test_restored_games_go_on_as_they_did(options: dict[str, Any]) -> None:
    batch, rng = Batch(6, "classic", seed=3, **options), np.random.default_rng(2)
    for _ in range(40):
        batch.step(eager(batch, rng))
    states, arrays = batch.states(), tuple(map(id, batch._outputs))
    shown, trace = everything(batch), []
    for again in (False, True):
        rng = np.random.default_rng(5)
        if again:
            batch.restore(states)
            paid = {"reward", "done"}
            before = {name: held for name, held in shown.items() if name not in paid}
            assert {name: everything(batch)[name] for name in before} == before
            assert not batch.reward.any()
            assert tuple(map(id, batch._outputs)) == arrays
        for k in range(60):
            batch.step(batch.sample_actions(rng))
            if again:
                assert everything(batch) == trace[k]
            else:
                trace.append(everything(batch))
    np.testing.assert_array_equal(states, batch_of(states, options).states())


def batch_of(states: NDArray[np.void], options: dict[str, Any]) -> Batch:
    batch = Batch(6, "classic", seed=99, **options)
    batch.restore(states)
    return batch


def test_a_restored_row_that_is_over_has_been_paid() -> None:
    batch, rng = Batch(20, "nano", autoreset=False), np.random.default_rng(0)
    while not batch.done.all():
        batch.step(batch.sample_actions(rng))
    assert any(batch.game(i).returns()[0] for i in range(20))
    batch.restore(batch.states())
    assert batch.done.all()
    assert not batch.reward.any()


def test_what_are_no_states_is_not_restored() -> None:
    batch = somewhere()
    before, states = everything(batch), batch.states()
    for wrong in (states[:5], states.reshape(2, 3), states["deal"], "states", None):
        with pytest.raises(OptionError, match=r"states must be an array of .* and shape \(6,\)"):
            batch.restore(wrong)
    assert everything(batch) == before


@pytest.mark.parametrize("rules", ["classic", "mexican"])
def test_the_hidden_numbers_are_those_of_the_state_of_each_game(rules: str) -> None:
    batch, rng, gifts = Batch(30, rules, seed=3), np.random.default_rng(2), 0
    for _ in range(40):
        hidden = batch.hidden()
        assert (hidden.dtype, hidden.shape) == (np.uint8, (30, 120))
        expected = [batch.game(i).state(batch.actor[i])[416:] for i in range(30)]
        np.testing.assert_array_equal(hidden, expected)
        gifts += hidden[:, 80:].any()
        batch.step(eager(batch, rng))
    assert (gifts > 0) == (rules == "mexican")


# --- processes ---


def test_a_forked_child_steps_on_threads_of_its_own() -> None:
    """The pool's threads stay with the parent; a child that waited for them would hang."""
    code = """
import os, warnings
import numpy as np
from conquian_env import Batch
warnings.simplefilter("ignore")  # Python warns of forks of processes with threads
batch, rng = Batch(64, seed=1, threads=2), np.random.default_rng(0)
batch.step(batch.sample_actions(rng))
child = os.fork()
batch.step(batch.sample_actions(rng))
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout == "0\n"


def test_states_are_checked() -> None:
    rows = Batch(4).states()
    for wrong in (rows[::2], rows.reshape(2, 2), rows["deal"], rows[:0], "rows"):
        with pytest.raises(OptionError, match="rows must be"):
            Batch.from_states("classic", wrong)
    with pytest.raises(OptionError, match="threads"):
        Batch.from_states("classic", rows, threads=0)
    with pytest.raises(OptionError, match="seed must be a number or a list"):
        Batch(2, seed=np.array(3))


def test_no_rows_can_be_stepped() -> None:
    batch = somewhere()
    before = everything(batch)
    batch.step([], np.array([], np.int64))
    assert everything(batch) == before
