"""The observation: every named piece, decoded and computed again slowly from the game."""

import json
from collections.abc import Iterator, Set
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from conquian_env import Game, Phase, RuleSet, Source, View, card, cards
from conquian_env.actions import CODE_MASK, DISCARD, GAVE, PASS, SEAT_FLAG
from conquian_env.cards import NUM_CARDS
from conquian_env.errors import OptionError, PositionError
from conquian_env.observation import (
    CARD_PIECES,
    HIDDEN_HIGHS,
    HIDDEN_PIECES,
    HIDDEN_SIZE,
    HIGHS,
    LAYOUT,
    NO_EVENT,
    OBSERVATION_SIZE,
    OBSERVATION_VERSION,
    PIECES,
    encode,
    highs,
    planes,
    write_history,
)
from conquian_env.state import MAX_EVENTS, NONE
from conquian_env.view import view_of, views_of
from tests.playing import playthroughs

RULES = (
    RuleSet(),
    RuleSet(seven_jack_adjacent=False),
    RuleSet(force="auto"),
    RuleSet(force_source="discard"),
    RuleSet(deal=4),
)
# name, first number, how many, highest value: a change here is a new OBSERVATION_VERSION
TABLE = (
    ("own_hand", 0, 40, 1),
    ("own_table", 40, 40, 1),
    ("other_table", 80, 40, 1),
    ("face_up", 120, 40, 1),
    ("dead", 160, 40, 1),
    ("unseen", 200, 40, 1),
    ("declined", 240, 40, 1),
    ("other_declined", 280, 40, 1),
    ("other_discarded", 320, 40, 1),
    ("known", 360, 40, 1),
    ("phase", 400, 6, 1),
    ("source", 406, 3, 1),
    ("to_act", 409, 1, 1),
    ("stock_left", 410, 1, 40),
    ("own_hand_size", 411, 1, 40),
    ("own_table_size", 412, 1, 40),
    ("other_hand_size", 413, 1, 40),
    ("other_table_size", 414, 1, 40),
    ("stake", 415, 1, 127),
)
NAMES = tuple(name for name, *_ in TABLE)
States = tuple[tuple[Game, "Tally"], ...]


class Tally:
    """By seat, the cards refused and discarded so far, kept by looking at every action."""

    def __init__(self) -> None:
        self.declined: list[frozenset[int]] = [frozenset(), frozenset()]
        self.discarded: list[frozenset[int]] = [frozenset(), frozenset()]

    def after(self, before: Game, action: int) -> "Tally":
        """The tally after an action in the state ``before``."""
        new, seat = Tally(), before.actor
        new.declined, new.discarded = list(self.declined), list(self.discarded)
        if action == PASS and before.phase in (Phase.TURNED, Phase.OFFERED):
            assert before.face_up is not None
            new.declined[seat] |= {card(before.face_up)}
        elif action >= DISCARD:
            new.discarded[seat] |= {action - DISCARD}
        return new


def tallied(rules: RuleSet, games: int, seed: int) -> Iterator[tuple[Game, Tally]]:
    before, tally = Game(rules), Tally()
    for game in playthroughs(rules, games, seed):
        if game.ply == 0:
            tally = Tally()
        else:
            tally = tally.after(before, game.history[len(before.history)] & CODE_MASK)
        yield game, tally
        before = game


@cache
def states_of(rules: RuleSet) -> States:
    return tuple(tallied(rules, games=20, seed=1))


def ones(ids: Set[int]) -> list[int]:
    return [int(card_id in ids) for card_id in range(NUM_CARDS)]


def one_hot(value: object, values: type[Phase] | type[Source]) -> list[int]:
    return [int(value == each) for each in values]


def slowly(game: Game, seat: int, tally: Tally) -> dict[str, list[int]]:
    """The pieces as lists, from the public face of Game and what was done."""
    other = 1 - seat
    saved = json.loads(game.to_json())
    ids: dict[str, Set[int]] = {
        "own_hand": set(map(card, game.hand(seat))),
        "own_table": set(map(card, game.table(seat))),
        "other_table": set(map(card, game.table(other))),
        "face_up": {card(game.face_up)} if game.face_up else set(),
        "dead": set(map(card, game.dead)),
        "unseen": set(map(card, game.hand(other))) | set(cards(saved["stock"])),
        "declined": tally.declined[seat],
        "other_declined": tally.declined[other],
        "other_discarded": tally.discarded[other],
        "known": set(),
    }
    return {name: ones(value) for name, value in ids.items()} | {
        "phase": one_hot(game.phase, Phase),
        "source": one_hot(saved["source"], Source),
        "to_act": [int(game.actor == seat and not game.is_over)],
        "stock_left": [game.stock_count],
        "own_hand_size": [len(game.hand(seat))],
        "own_table_size": [len(game.table(seat))],
        "other_hand_size": [len(game.hand(other))],
        "other_table_size": [len(game.table(other))],
        "stake": [1],
    }


def test_the_layout_is_the_table() -> None:
    assert [(piece.name, piece.size, piece.high) for piece in PIECES] == [
        (name, size, high) for name, _, size, high in TABLE
    ]
    assert list(LAYOUT.items()) == [
        (name, slice(start, start + size)) for name, start, size, _ in TABLE
    ]
    assert (OBSERVATION_SIZE, OBSERVATION_VERSION, CARD_PIECES) == (416, 1, 10)
    assert sum(piece.size for piece in PIECES) == 416
    assert all(piece.meaning for piece in PIECES)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_every_piece_in_every_state(rules: RuleSet) -> None:
    seen = set()
    for game, tally in states_of(rules):
        seen.add(game.phase)
        for seat in (0, 1):
            observation = game.observation(seat)
            assert (observation.dtype, observation.shape) == (np.uint8, (416,))
            decoded = {name: observation[LAYOUT[name]].tolist() for name in NAMES}
            assert decoded == slowly(game, seat, tally)
    assert {Phase.TURNED, Phase.OFFERED, Phase.MELD, Phase.OVER} <= seen


def test_every_phase_and_source_is_looked_at() -> None:
    states = [game for rules in RULES for game, _ in states_of(rules)]
    assert {game.phase for game in states} == set(Phase) - {Phase.GIVE}
    assert {game.view(0).source for game in states} == {*Source, None}
    assert {game.view(0).source for game in states if game.phase == Phase.FORCE} == set(Source)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_view_says_the_same_as_the_observation(rules: RuleSet) -> None:
    for game, tally in states_of(rules):
        for seat in (0, 1):
            view, slow = game.view(seat), slowly(game, seat, tally)
            assert (view.seat, view.actor, view.phase, view.rules) == (
                seat, game.actor, game.phase, rules,
            )  # fmt: skip
            pieces = {
                "own_hand": view.hand, "own_table": view.table, "other_table": view.other_table,
                "dead": view.dead, "unseen": view.unseen, "declined": view.declined,
                "other_declined": view.other_declined, "other_discarded": view.other_discarded,
            }  # fmt: skip
            for name, ids in pieces.items():
                assert ids == tuple(np.flatnonzero(slow[name]).tolist())
            assert view.face_up == (card(game.face_up) if game.face_up else None)
            assert one_hot(view.source, Source) == slow["source"]
            assert [view.stock_count] == slow["stock_left"]
            assert [view.other_hand_size] == slow["other_hand_size"]
            assert view.history == game.history
            assert view.legal_actions == (tuple(game.legal_actions()) if game.actor == seat else ())
            assert view.winner == (game.outcome.winner if game.outcome else None)


def test_the_legal_actions_of_one_seat_are_not_shown_to_the_other() -> None:
    game = Game()
    rows, actions = game._rows[0], tuple(game.legal_actions())
    assert view_of(rows, 0, game.rules, actions).legal_actions == actions
    assert view_of(rows, 1, game.rules, actions).legal_actions == ()


def test_the_view_goes_through_json() -> None:
    for game, _ in states_of(RuleSet(deal=4)):
        for seat in (0, 1):
            view = game.view(seat)
            again = View.from_json(view.to_json())
            assert again == view
            assert hash(again) == hash(view)
            assert (type(again.phase), type(again.rules)) == (Phase, RuleSet)


def test_what_is_no_view_is_refused() -> None:
    text = Game().view(0).to_json()
    values = json.loads(text)
    bad = [text[:end] for end in range(0, len(text), 7)]
    bad += [json.dumps({k: v for k, v in values.items() if k != gone}) for gone in values]
    bad += [json.dumps(values | {"seed": 1}), "[]", "null", "5", "{}", "[" * 100_000]
    bad += [json.dumps(values | {field: "x"}) for field in ("rules", "phase", "source")]
    for each in bad:
        with pytest.raises(PositionError, match=r"^not a saved view: "):
            View.from_json(each)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_no_number_is_above_its_highest(rules: RuleSet) -> None:
    highs = np.concatenate([np.full(size, high) for _, _, size, high in TABLE])
    assert (HIGHS.dtype, HIGHS.tolist()) == (np.uint8, highs.tolist())
    for game, _ in states_of(rules):
        for seat in (0, 1):
            assert (game.observation(seat) <= HIGHS).all()


def test_every_number_that_can_move_does() -> None:
    """No byte of a used piece is stuck: give is no phase yet, known and stake no pieces."""
    stack = np.array([g.observation(s) for g, _ in tallied(RuleSet(), 80, 2) for s in (0, 1)])
    moves = stack.min(axis=0) < stack.max(axis=0)
    stuck = {name for name in NAMES if not moves[LAYOUT[name]].all()}
    assert stuck == {"known", "phase", "stake"}
    assert moves[LAYOUT["phase"]].tolist() == [False, True, True, True, True, True]


def test_observations_of_a_game_are_new_arrays() -> None:
    game = Game()
    first = game.observation(0)
    first[:] = 9
    assert game.observation(0).max() < 40


# --- planes ---


def test_planes_of_one_observation() -> None:
    for game, _ in states_of(RuleSet()):
        observation = game.observation(0)
        grid = planes(observation)
        assert (grid.shape, grid.dtype) == ((26, 4, 10), np.uint8)
        for channel, (name, start, *_rest) in enumerate(TABLE[:10]):
            for card_id in range(NUM_CARDS):
                suit, rank = divmod(card_id, 10)
                assert grid[channel, suit, rank] == observation[start + card_id], name
        for channel in range(10, 26):
            assert (grid[channel] == observation[400 + channel - 10]).all()


def test_planes_of_any_number_of_observations() -> None:
    flat = np.array([game.observation(1) for game, _ in states_of(RuleSet())[:24]])
    assert planes(flat[:0]).shape == (0, 26, 4, 10)
    assert planes(flat).shape == (24, 26, 4, 10)
    deep = planes(flat.reshape(2, 3, 4, 416))
    assert deep.shape == (2, 3, 4, 26, 4, 10)
    assert (deep.reshape(24, 26, 4, 10) == planes(flat)).all()
    assert all((planes(flat)[i] == planes(flat[i])).all() for i in range(24))


# --- history ---


def decoded(history: NDArray[np.uint8], seat: int) -> tuple[int, ...]:
    """The events as the game tells them, from those that ``seat`` was given."""
    events = history[history != NO_EVENT]
    assert (history[: len(events)] == events).all()  # the rest is filled up
    return tuple(int(event) ^ (seat * SEAT_FLAG) for event in events)


def test_write_history_tells_every_event_from_the_side_of_the_seat() -> None:
    for game, _ in states_of(RuleSet()):
        for seat in (0, 1):
            out = np.zeros(MAX_EVENTS, np.uint8)
            write_history(game._rows[0], seat, out)
            assert decoded(out, seat) == game.history
            mine = [event < SEAT_FLAG for event in out[: len(game.history)].tolist()]
            assert mine == [event // SEAT_FLAG == seat for event in game.history]


def test_a_history_names_both_gifts_once_they_are_known() -> None:
    game, out = Game("mexican", seed=4), np.zeros(MAX_EVENTS, np.uint8)
    first, second = (DISCARD + card(game.hand(seat)[seat]) for seat in (0, 1))
    seen = []
    for action in (first, second):
        game.apply(action)
        for seat in (0, 1):
            write_history(game._rows[0], seat, out)
            seen.append(out[:2].tolist())
    assert seen[:2] == [[first, NO_EVENT], [GAVE | SEAT_FLAG, NO_EVENT]]
    assert seen[2:] == [[first, second | SEAT_FLAG], [first | SEAT_FLAG, second]]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_views_say_what_the_actor_of_each_game_sees(rules: RuleSet) -> None:
    games = [game for game, _ in states_of(rules) if not game.is_over]
    seeds = np.arange(len(games)).astype(np.uint64)
    views = views_of(np.concatenate([game._rows for game in games]), rules, seeds)
    assert len(views) == len(games)
    assert (views.rules, views.seeds.tolist()) == (rules, seeds.tolist())
    assert (views.observation.dtype, views.mask.dtype) == (np.uint8, np.bool_)
    assert (views.observation.shape, views.mask.shape) == ((len(games), 416), (len(games), 83))
    assert views.history.shape == (len(games), MAX_EVENTS)
    for i, game in enumerate(games):
        seat = game.actor
        assert (views.observation[i] == game.observation(seat)).all()
        assert np.flatnonzero(views.mask[i]).tolist() == game.legal_actions()
        assert decoded(views.history[i], seat) == game.history
        masks = {
            "own_hand": views.hand, "own_table": views.table, "other_table": views.other_table,
            "dead": views.dead, "face_up": views.face_up,
        }  # fmt: skip
        for name, mask in masks.items():
            bits = [int(mask[i]) >> card_id & 1 for card_id in range(NUM_CARDS)]
            assert bits == game.observation(seat)[LAYOUT[name]].tolist()
            assert int(mask[i]) >> NUM_CARDS == 0


# --- encodings, mirrored seats and the state ---

ENCODINGS = ("flat", "planes", "history")
VARIANTS = (
    RuleSet(),
    RuleSet.preset("mexican"),
    RuleSet(draw="double", exchange=True, max_deals=3),
    RuleSet(first_card="dealt", exchange=True, suits=3, ranks=7, deal=6, stock=5),
)


@cache
def played(rules: RuleSet) -> tuple[Game, ...]:
    return tuple(playthroughs(rules, games=20, seed=1))


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_encodings_hold_the_flat_one_and_stay_in_their_bounds(rules: RuleSet) -> None:
    for game in played(rules)[:600]:
        for seat in (0, 1):
            flat, grid, events = (game.observation(seat, encoding) for encoding in ENCODINGS)
            assert (grid == planes(flat)).all()
            assert (events[:OBSERVATION_SIZE] == flat).all()
            out = np.zeros(MAX_EVENTS, np.uint8)
            write_history(game._rows[0], seat, out)
            assert (events[OBSERVATION_SIZE:] == out).all()
            for encoding, seen in zip(ENCODINGS, (flat, grid, events), strict=True):
                assert (seen.dtype, seen.shape) == (np.uint8, highs(encoding).shape)
                assert (seen <= highs(encoding)).all()


def test_shapes_of_the_encodings() -> None:
    assert [highs(encoding).shape for encoding in ENCODINGS] == [(416,), (26, 4, 10), (616,)]
    two, events = np.zeros((2, 416), np.uint8), np.zeros((2, 200), np.uint8)
    shapes = [encode(two, encoding, events).shape for encoding in ENCODINGS]
    assert shapes == [(2, 416), (2, 26, 4, 10), (2, 616)]


@pytest.mark.parametrize("encoding", ["plane", "", None, 0, "Flat"])
def test_an_unknown_encoding_is_named(encoding: Any) -> None:
    with pytest.raises(OptionError, match="encoding must be flat, planes or history"):
        Game().observation(0, encoding)
    with pytest.raises(OptionError, match="encoding"):
        highs(encoding)


def mirrored(game: Game) -> Game:
    """The same position with the seats exchanged."""
    rows = game.to_state()
    for name in ("hand", "table", "declined", "discarded", "known", "given"):
        rows[name] = rows[name][:, ::-1].copy()
    rows["actor"] ^= 1
    rows["winner"] = np.where(rows["winner"] == NONE, NONE, 1 - rows["winner"])
    rows["history"][0, : rows["events"][0]] ^= SEAT_FLAG
    return Game.from_state(game.rules, rows)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_both_seats_see_mirrored_states_as_identical_tensors(rules: RuleSet) -> None:
    for game in played(rules):
        twin = mirrored(game)
        assert twin.legal_actions() == game.legal_actions()
        for seat in (0, 1):
            for encoding in ENCODINGS:
                ours, theirs = (
                    game.observation(seat, encoding),
                    twin.observation(1 - seat, encoding),
                )
                assert ours.tobytes() == theirs.tobytes()
            assert game.state(seat).tobytes() == twin.state(1 - seat).tobytes()
            assert game.observation(1 - seat).tobytes() != game.observation(seat).tobytes()


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_the_state_is_the_observation_and_what_is_hidden(rules: RuleSet) -> None:
    assert [(piece.name, piece.size) for piece in HIDDEN_PIECES] == [
        ("other_hand", 40), ("turns", 40), ("other_gift", 40),
    ]  # fmt: skip
    gifts = set()
    for game in played(rules):
        saved = json.loads(game.to_json())
        for seat in (0, 1):
            state = game.state(seat)
            assert (state.dtype, state.shape) == (np.uint8, (OBSERVATION_SIZE + HIDDEN_SIZE,))
            assert (state[:OBSERVATION_SIZE] == game.observation(seat)).all()
            hand, turns, gift = np.split(state[OBSERVATION_SIZE:], 3)
            assert hand.tolist() == ones(set(map(card, game.hand(1 - seat))))
            order = {card_id: place for place, card_id in enumerate(cards(saved["stock"]), 1)}
            assert turns.tolist() == [order.get(card_id, 0) for card_id in range(NUM_CARDS)]
            secret = saved["given"][1 - seat] if game.phase == Phase.GIVE else None
            assert gift.tolist() == ones({card(secret)} if secret else set())
            gifts.add(int(gift.sum()))
            assert (state[OBSERVATION_SIZE:] <= HIDDEN_HIGHS).all()
    assert gifts == ({0, 1} if rules.exchange else {0})


def test_the_state_moves_with_the_hidden_cards() -> None:
    rng = np.random.default_rng(1)
    for game in played(RuleSet())[::7]:
        for seat in (0, 1):
            if len(game.view(seat).unseen) > 9 and game.hand(1 - seat) and game.stock_count > 2:
                other = game.resample_hidden(seat, rng)
                assert (other.state(seat) != game.state(seat)).any()
                assert (other.observation(seat) == game.observation(seat)).all()
