"""Promise 1: the engine and ``tests/oracle.py`` agree in every state (rules 2 to 5).

Games are played by both at once on the same deals. Half of the games are uniformly random over
the legal actions; in the other half both seats are eager: nine times in ten they take, insist
and lay where they can. What the games have shown is counted, and no count may be zero.
"""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conquian_env import Batch, Game, RuleSet, card, card_name, cards
from conquian_env.errors import RuleSetError
from tests.oracle import DISCARD, FORCE, PASS, TAKE, Oracle
from tests.test_deal import order

PHASES = ("give", "turned", "offered", "meld", "force", "over")
ROWS = (*PHASES, "nine or ten down", "forced take", "forced win", "last-card win", "doubled")
GAMES = [300, pytest.param(2_000, marks=pytest.mark.slow)]
Counts = Counter[tuple[str, int]]


class Follower:
    """The oracle on the deal of one game: it checks every state, counts, and picks the actions.

    Rows count states by phase for the seat that acts (``over``: that acted last), states whose
    actor has nine or more cards down, takes and wins that the other seat insisted on, and wins by
    taking the last stock card or a discard after it; ``doubled`` are states of deals after a draw.
    """

    def __init__(self, game: Game, eager: bool, counts: Counts) -> None:
        self.oracle = oracle_of(game)
        self.where = f"{game.rules}, seed {game.seed}, deal {game.deal}"
        self.eager, self.counts = eager, counts
        self.forced = False
        self.actor = 0

    @property
    def is_over(self) -> bool:
        return self.oracle.phase == "over"

    def check(self, game: Game) -> None:
        """The game is in the oracle's state; count it."""
        oracle = self.oracle
        assert engine_state(game) == oracle_state(oracle), f"{self.where}, ply {game.ply}"
        assert np.flatnonzero(game.legal_mask()).tolist() == oracle.legal(), self.where
        self.actor = self.actor if self.is_over else oracle.actor
        self.counts[oracle.phase, self.actor] += 1
        if oracle.stake > 1:
            self.counts["doubled", self.actor] += 1
        self.counts["nine or ten down", self.actor] += (
            not self.is_over and len(oracle.tables[self.actor]) >= 9
        )
        if oracle.winner is not None:
            self.counts["forced win", oracle.winner] += self.forced
            self.counts["last-card win", oracle.winner] += not (self.forced or oracle.stock)

    def play(self, rng: np.random.Generator) -> int:
        """Pick a legal action and play it in the oracle."""
        action = self.choose(rng)
        if action in (TAKE, FORCE):
            self.forced = action == FORCE
        self.counts["forced take", 1 - self.actor] += action == FORCE
        self.oracle.apply(action)
        return action

    def choose(self, rng: np.random.Generator) -> int:
        legal = self.oracle.legal()
        if self.eager and rng.random() < 0.9:
            legal = [action for action in legal if PASS < action < DISCARD] or legal
        return legal[rng.integers(len(legal))]


def oracle_of(game: Game) -> Oracle:
    """The oracle on the deal of a game not yet begun."""
    start = json.loads(game.to_json())
    return Oracle(
        (cards(start["hands"][0]), cards(start["hands"][1])),
        cards(f"{start['face_up'] or ''} {start['stock']}"),
        removed=cards(start["removed"]),
        deals=[redealt(game, n) for n in range(1, game.rules.highest_stake.bit_length())],
        **game.rules.to_dict(),
    )


def redealt(game: Game, number: int) -> tuple[tuple[list[int], list[int]], list[int]]:
    """The hands and the stock, in order, of a game's re-deal."""
    rules = game.rules
    deck = order(game.seed, game.deal, rules.pack_size, number)
    ids = [10 * (place // rules.ranks) + place % rules.ranks for place in deck]
    size = rules.deal
    return (ids[:size], ids[size : 2 * size]), ids[2 * size :]


def names(ids: set[int]) -> tuple[str, ...]:
    return tuple(map(card_name, sorted(ids)))


def engine_state(game: Game) -> dict[str, object]:
    saved = json.loads(game.to_json())
    return {
        "legal": game.legal_actions(),
        "phase": str(game.phase),
        "actor": None if game.is_over else game.actor,
        "face_up": game.face_up,
        "source": saved["source"],
        "hands": (game.hand(0), game.hand(1)),
        "tables": (game.table(0), game.table(1)),
        "dead": game.dead,
        "stock": saved["stock"],
        "stock_count": game.stock_count,
        "given": [given and card(given) for given in saved["given"]],
        "known": [sorted(cards(known)) for known in saved["known"]],
        "winner": game.outcome.winner if game.outcome else None,
        "returns": game.returns(),
        "stake": game.stake,
        "redeal": game.redeal,
    }


def oracle_state(oracle: Oracle) -> dict[str, object]:
    return {
        "legal": oracle.legal(),
        "phase": oracle.phase,
        "actor": None if oracle.phase == "over" else oracle.actor,
        "face_up": None if oracle.face_up is None else card_name(oracle.face_up),
        "source": oracle.source,
        "hands": (names(oracle.hands[0]), names(oracle.hands[1])),
        "tables": (names(oracle.tables[0]), names(oracle.tables[1])),
        "dead": names(oracle.dead),
        "stock": " ".join(map(card_name, oracle.stock)),
        "stock_count": len(oracle.stock),
        "given": oracle.given,
        "known": [sorted(known) for known in oracle.known],
        "winner": oracle.winner,
        "returns": oracle.returns(),
        "stake": oracle.stake,
        "redeal": oracle.deal_number,
    }


def compare(rules: RuleSet, games: int, seed: int) -> Counts:
    """Play half of the games through ``Game`` and half through ``Batch``; what was seen."""
    never = {"give"} if not rules.exchange else set()
    never |= {"doubled"} if rules.draw == "end" else set()
    rows = [row for row in ROWS if row not in never]
    counts: Counts = Counter({(row, seat): 0 for row in rows for seat in (0, 1)})
    rng = np.random.default_rng(seed)
    for deal in range(games // 2):
        follow_game(Game(rules, seed, deal), deal % 2 == 0, counts, rng)
    follow_batch(Batch(games // 2, rules, seed + 1, autoreset=False), counts, rng)
    return counts


def follow_game(game: Game, eager: bool, counts: Counts, rng: np.random.Generator) -> None:
    follower = Follower(game, eager, counts)
    follower.check(game)
    while not follower.is_over:
        game.apply(follower.play(rng))
        follower.check(game)


def follow_batch(batch: Batch, counts: Counts, rng: np.random.Generator) -> None:
    rows = range(batch.num_games)
    followers = [Follower(batch.game(row), row % 2 == 0, counts) for row in rows]
    for row in rows:
        check_row(batch, row, followers[row], just_played=False)
    while not all(follower.is_over for follower in followers):
        playing = [not follower.is_over for follower in followers]
        batch.step(
            [f.play(rng) if live else PASS for f, live in zip(followers, playing, strict=True)]
        )
        for row in rows:
            check_row(batch, row, followers[row], just_played=playing[row])


def check_row(batch: Batch, row: int, follower: Follower, just_played: bool) -> None:
    """The arrays of a row say what the oracle says; of a finished row, that only pass is left."""
    oracle = follower.oracle
    assert batch.done[row] == follower.is_over, follower.where
    legal = [PASS] if follower.is_over else oracle.legal()
    assert np.flatnonzero(batch.mask[row]).tolist() == legal, follower.where
    assert follower.is_over or batch.actor[row] == oracle.actor, follower.where
    paid = oracle.returns() if just_played else (0.0, 0.0)
    assert tuple(batch.reward[row].tolist()) == paid, follower.where
    if just_played or not follower.is_over:
        follower.check(batch.game(row))


def as_text(title: str, counts: Counts) -> str:
    rows = [row for row in ROWS if (row, 0) in counts]
    lines = [f"{row:<18}{counts[row, 0]:>10,}{counts[row, 1]:>10,}" for row in rows]
    return "\n".join(["", f"{title:<18}{'seat 0':>10}{'seat 1':>10}", *lines])


@pytest.mark.parametrize("games", [1_500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("preset", ["classic", "classic-1.1"])
def test_promise_1_the_engine_agrees_with_the_oracle_in_every_state(
    preset: str, games: int, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = compare(RuleSet.preset(preset), games, seed=games)
    table = as_text(f"{preset} {games:,}", counts)
    with capsys.disabled():
        print(table)
    assert sum(counts["over", seat] for seat in (0, 1)) == games
    assert all(counts.values()), f"something was never seen:\n{table}"


def unseen_rows(counts: Counts) -> set[str]:
    """Rows that one of the seats never came to; tables of nine are not every rule set's."""
    return {row for (row, _), count in counts.items() if count == 0} - {"nine or ten down"}


@pytest.mark.parametrize("games", GAMES)
@pytest.mark.parametrize(
    ("rules", "never"),
    [
        (RuleSet.preset("bicycle"), ""),
        (RuleSet.preset("mexican"), ""),
        (RuleSet.preset("nine"), ""),
        (RuleSet.preset("nano"), "forced win, turned"),  # seat 0 turns the one stock card
        (RuleSet.preset("micro"), "forced win"),
        (RuleSet.preset("mini"), "forced win, turned"),
        (RuleSet(first_card="dealt", hand_melds=True, exchange=True), ""),
        (RuleSet(force="auto", hand_melds=True), "force, forced take, forced win"),
        (RuleSet(draw="double", exchange=True, max_deals=3), ""),
        (RuleSet(draw="double", first_card="dealt", deal=9, stock=12), ""),
        (RuleSet(lay_order="ascending", hand_melds=True), ""),
    ],
    ids=str,
)
def test_promise_1_the_variants_agree_too(rules: RuleSet, never: str, games: int) -> None:
    counts = compare(rules, games, seed=games)
    assert sum(counts["over", seat] for seat in (0, 1)) == games
    if games >= 2_000:
        assert unseen_rows(counts) == set(filter(None, never.split(", ")))


def rule_sets() -> st.SearchStrategy[RuleSet]:
    """Any rule set that can be played."""
    fields = {
        "seven_jack_adjacent": st.booleans(),
        "deal": st.integers(2, 12),
        "first_card": st.sampled_from(["turned", "dealt"]),
        "force": st.sampled_from(["optional", "off", "auto"]),
        "force_source": st.sampled_from(["any", "discard"]),
        "hand_melds": st.booleans(),
        "exchange": st.booleans(),
        "draw": st.sampled_from(["end", "double"]),
        "lay_order": st.sampled_from(["any", "ascending"]),
        "suits": st.integers(2, 4),
        "ranks": st.integers(3, 10),
        "stock": st.none() | st.integers(1, 20),
    }
    return st.fixed_dictionaries(fields).map(possible).filter(lambda rules: rules is not None)


def possible(fields: dict[str, object]) -> RuleSet | None:
    try:
        return RuleSet.from_dict(fields)
    except RuleSetError:
        return None


@settings(
    derandomize=True, deadline=None, max_examples=200,
    suppress_health_check=[HealthCheck.filter_too_much],
)  # fmt: skip
@given(rules=rule_sets(), seed=st.integers(0, 2**32))
def test_promise_1_other_rule_sets_agree_too(rules: RuleSet, seed: int) -> None:
    counts = compare(rules, 4, seed)
    assert counts["over", 0] + counts["over", 1] == 4
    if rules.force != "optional":
        assert counts["force", 0] + counts["force", 1] == 0
