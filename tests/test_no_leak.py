"""No leak: nothing a seat can see depends on what it may not know, in any phase.

``SURFACES`` lists every way to look at a game; a module that adds one adds a line. The checker
re-deals the hidden cards and compares byte by byte. That it would find a leak is tested too, by
planting one of a single bit.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import cache, partial
from itertools import combinations, permutations
from typing import Any, get_type_hints

import numpy as np
import pytest
from scipy.stats import chi2

from agents.process.wire import request
from conquian_env import Game, Phase, RuleSet, View, Views, card, view
from conquian_env.cards import NAMES
from conquian_env.conquian_v0 import raw_env
from conquian_env.envs.picture import RenderMode
from conquian_env.envs.single import ConquianEnv
from tests import oracle
from tests.playing import choose, playthroughs

RULES = (
    RuleSet(),
    RuleSet(seven_jack_adjacent=False),
    RuleSet(force="auto"),
    RuleSet(force_source="discard"),
    RuleSet(deal=4),
    RuleSet.preset("bicycle"),
    RuleSet.preset("mexican"),
    RuleSet(first_card="dealt", exchange=True, suits=3, ranks=7, deal=6, stock=5),
    RuleSet(draw="double", exchange=True, max_deals=3),
    RuleSet(lay_order="ascending", hand_melds=True, deal=8),
)
PHASES = tuple(Phase)


def seen_as_actor(game: Game, seat: int) -> Views | None:
    """What an agent is given, if the seat is to act (or was the last, in a finished row)."""
    if game.actor != seat:
        return None
    return view.views_of(game._rows, game.rules, np.array([5], np.uint64))


def views_bytes(game: Game, seat: int) -> bytes:
    seen = seen_as_actor(game, seat)
    if seen is None:
        return b""
    arrays = [getattr(seen, field.name) for field in fields(seen) if field.name != "rules"]
    arrays += [array.base for array in arrays if array.base is not None]  # padding and all
    return b"".join(array.tobytes() for array in arrays) + repr(seen.rules).encode()


def request_bytes(game: Game, seat: int) -> bytes:
    """What is sent to an agent in a process of its own."""
    seen = seen_as_actor(game, seat)
    return b"" if seen is None else request(seen)


def mask_bytes(game: Game, seat: int) -> bytes:
    return game.legal_mask().tobytes() if game.actor == seat else b""


@cache
def aec_env(rules: RuleSet, encoding: Any, seat: Any) -> raw_env:
    mode: RenderMode | None = "ansi" if encoding == "flat" else None  # one picture is enough
    return raw_env(rules, mode, "both", perspective=seat, observation=encoding)


def env_bytes(game: Game, seat: int, encoding: str) -> bytes:
    """What the environment shows an agent: observation and mask, info, and its picture."""
    env = aec_env(game.rules, encoding, seat)
    env._begin(game)
    if game.is_over:
        env._end(game.returns()[0])
        env._after_move()
    agent = env.possible_agents[seat]
    seen, info = env.observe(agent), env.infos[agent]
    assert isinstance(seen, dict)
    arrays = [seen["observation"], seen["action_mask"], info["action_mask"]]
    course = (env.rewards, env.terminations, env.agent_selection, sorted(info), env.render())
    return b"".join(array.tobytes() for array in arrays) + repr(course).encode()


@cache
def single_env(rules: RuleSet, encoding: Any, seat: Any) -> ConquianEnv:
    mode: RenderMode | None = "ansi" if encoding == "flat" else None
    env = ConquianEnv(rules, "random", seat, encoding, "both", render_mode=mode)
    env.reset(seed=0)
    return env


def single_bytes(game: Game, seat: int, encoding: str) -> bytes:
    """What the one-seat environment shows, which is at the learner's decisions and at the end."""
    if game.actor != seat and not game.is_over:
        return b""
    env = single_env(game.rules, encoding, seat)
    env._game, env._over = game, game.is_over
    seen, info = env._observe(), env._info()
    assert isinstance(seen, dict)
    arrays = [seen["observation"], seen["action_mask"], info.pop("action_mask"), env.action_masks()]
    return b"".join(array.tobytes() for array in arrays) + repr((info, env.render())).encode()


SURFACES: dict[str, Callable[[Game, int], bytes]] = {
    "view": lambda game, seat: repr(game.view(seat)).encode(),
    "view JSON": lambda game, seat: game.view(seat).to_json().encode(),
    "view text": lambda game, seat: str(game.view(seat)).encode(),
    "picture": lambda game, seat: game.view(seat)._repr_html_().encode(),
    "observation": lambda game, seat: game.observation(seat).tobytes(),
    "views": views_bytes,
    "request": request_bytes,
    "mask": mask_bytes,
    "environment": partial(env_bytes, encoding="flat"),
    "environment planes": partial(env_bytes, encoding="planes"),
    "environment history": partial(env_bytes, encoding="history"),
    "single": partial(single_bytes, encoding="flat"),
    "single planes": partial(single_bytes, encoding="planes"),
    "single history": partial(single_bytes, encoding="history"),
    "course": lambda game, _: repr((game.phase, game.actor, game.ply, game.outcome)).encode(),
}


def visible(game: Game, seat: int) -> dict[str, bytes]:
    """Every byte that the seat can see of the game, by the way it looks."""
    return {name: look(game, seat) for name, look in SURFACES.items()}


def leaks(states: Iterable[Game], resamples: int = 3) -> Iterator[tuple[Phase, int, str]]:
    """Where a surface changes when the hidden cards do: phase, observer and surface."""
    rng = np.random.default_rng(1)
    for game in states:
        for seat in (0, 1):
            seen = visible(game, seat)
            for _ in range(resamples):
                other = visible(game.resample_hidden(seat, rng), seat)
                yield from ((game.phase, seat, name) for name in seen if seen[name] != other[name])


def unfinished(game: Game) -> bool:
    """The actor still has to lay cards."""
    return not game.is_over and game.melds(game.actor) is None


@cache
def states_of(rules: RuleSet) -> tuple[Game, ...]:
    """Up to ten states, of as many games as can be, of every kind that play comes to."""
    kinds = defaultdict(list)
    for game in playthroughs(rules, 80, seed=2):
        kinds[game.phase, game.actor, unfinished(game), game.outcome].append(game)
    rng = np.random.default_rng(2)
    return tuple(kind[i] for kind in kinds.values() for i in rng.permutation(len(kind))[:10])


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_no_byte_leaks_in_any_phase(rules: RuleSet) -> None:
    states = states_of(rules)
    assert {game.phase for game in states} == {
        phase
        for phase in PHASES
        if (phase != Phase.FORCE or rules.force != "auto")
        and (phase != Phase.GIVE or rules.exchange)
    }
    assert {game.actor for game in states if unfinished(game)} == {0, 1}
    assert set(leaks(states)) == set()


def one_of_each_game(rules: RuleSet | str, phase: Phase, games: int) -> Iterator[Game]:
    """A state in the phase from each of so many games."""
    found = deal = 0
    while found < games:
        rng, states = np.random.default_rng((12, deal)), []
        game = Game(rules, seed=12, deal=deal)
        deal += 1
        while not game.is_over:
            if game.phase == phase:
                states.append(game.copy())
            game.apply(choose(game, rng, eager=rng.random() < 0.8))
        if states or phase == Phase.OVER:
            found += 1
            yield states[rng.integers(len(states))] if states else game


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_no_byte_leaks_in_a_thousand_games(phase: Phase) -> None:
    """Of every surface, both seats, in each phase of both kinds of environment."""
    rules = "mexican" if phase == Phase.GIVE else "classic"
    assert set(leaks(one_of_each_game(rules, phase, 1000), resamples=1)) == set()


def pixels(game: Game, seat: int) -> bytes:
    """The array that the environment draws for a seat."""
    env = raw_env(game.rules, render_mode="rgb_array", perspective=seat)
    env._game = game
    return env.render().tobytes()


@pytest.mark.parametrize("rules", [RuleSet(), RuleSet.preset("mexican")], ids=RuleSet.to_text)
def test_no_pixel_leaks_in_any_phase(rules: RuleSet) -> None:
    rng = np.random.default_rng(9)
    states = {(game.phase, game.actor, unfinished(game)): game for game in states_of(rules)}
    for game in states.values():
        for seat in (0, 1):
            seen = pixels(game, seat)
            assert pixels(game.resample_hidden(seat, rng), seat) == seen
            assert pixels(game, 1 - seat) != seen


# --- a leak of one bit is found ---


def other_hand(game: Game, seat: int) -> int:
    hand = game.hand(1 - seat)
    return card(hand[0]) & 1 if hand else 0


def next_card(game: Game, _: int) -> int:
    row = game._rows[0]
    return int(row["stock"][row["stock_next"]]) & 1 if game.stock_count else 0


SECRETS: dict[str, Callable[[Game, int], int]] = {
    "other hand": other_hand,
    "next card": next_card,
    "seed": lambda game, _: game.seed & 1,
    "deal": lambda game, _: game.deal >> 1 & 1,
}
Secret = Callable[[Game, int], int]


def leak_observation(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    """The last byte of the observation, the stake, is off by a bit."""
    honest = Game.observation

    def observation(game: Game, seat: int, encoding: Any = "flat") -> Any:
        out = honest(game, seat, encoding)
        out[-1] ^= secret(game, seat)
        return out

    monkeypatch.setattr(Game, "observation", observation)


def leak_view(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    """The size of the stock is off by one."""
    honest = Game.view

    def leaky(game: Game, seat: int) -> View:
        seen = honest(game, seat)
        return replace(seen, stock_count=seen.stock_count ^ secret(game, seat))

    monkeypatch.setattr(Game, "view", leaky)


def leak_mask(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    """The last action of the actor comes and goes."""
    honest = Game.legal_mask

    def legal_mask(game: Game) -> Any:
        mask = honest(game)
        mask[-1] ^= secret(game, game.actor)
        return mask

    monkeypatch.setattr(Game, "legal_mask", legal_mask)


def leak_views(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    """The last byte of the agents' history is off by a bit."""
    honest = view.views_of

    def views_of(rows: Any, rules: RuleSet, seeds: Any) -> Views:
        views = honest(rows, rules, seeds)
        game = Game.from_state(rules, rows)
        views.history[0, -1] ^= secret(game, game.actor)
        return views

    monkeypatch.setattr(view, "views_of", views_of)


def leak_history(monkeypatch: pytest.MonkeyPatch, secret: Secret) -> None:
    """The last byte of the history, which no deal is long enough to reach, is off by a bit."""
    honest = Game.observation

    def observation(game: Game, seat: int, encoding: Any = "flat") -> Any:
        out = honest(game, seat, encoding)
        if encoding == "history":
            out[-1] ^= secret(game, seat)
        return out

    monkeypatch.setattr(Game, "observation", observation)


ENVS = {name for name in SURFACES if name.startswith(("environment", "single"))}
PLANTS = {
    "observation": (leak_observation, {"observation", *ENVS}),
    "history": (leak_history, {"environment history", "single history"}),
    "view": (
        leak_view,
        {"view", "view JSON", "view text", "picture", "environment", "single"},
    ),
    "mask": (leak_mask, {"mask", *ENVS}),
    "views": (leak_views, {"views", "request"}),
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("surface", PLANTS)
def test_a_planted_bit_is_found(
    monkeypatch: pytest.MonkeyPatch, surface: str, secret: str, phase: Phase
) -> None:
    plant, expected = PLANTS[surface]
    if (surface, phase) == ("mask", Phase.OVER):
        expected = expected - ENVS  # which have no legal action of the game left to show
    plant(monkeypatch, lambda game, seat: SECRETS[secret](game, seat) * (game.phase == phase))
    rules = RuleSet.preset("mexican" if phase == Phase.GIVE else "classic")
    states = [game for game in states_of(rules) if game.phase == phase][::2]
    found = set(leaks(states))
    assert {where for where, _, _ in found} == {phase}
    assert {seat for _, seat, _ in found} == {0, 1}
    assert {name for _, _, name in found} == expected


# --- what resampling does ---


def hidden(game: Game, seat: int) -> tuple[tuple[str, ...], str]:
    """What the seat may not know: the other hand and the stock."""
    return game.hand(1 - seat), json.loads(game.to_json())["stock"]


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_a_resampled_game_is_a_game(rules: RuleSet) -> None:
    rng = np.random.default_rng(3)
    for game in states_of(rules):
        for seat in (0, 1):
            other = game.resample_hidden(seat, rng)
            assert Game.from_json(other.to_json()).to_json() == other.to_json()
            removed = json.loads(other.to_json())["removed"].split()
            unseen = [*other.hand(1 - seat), *hidden(other, seat)[1].split(), *removed]
            assert sorted(unseen) == sorted(NAMES[card_id] for card_id in game.view(seat).unseen)
            assert (other.legal_actions() == []) == other.is_over


def test_resampling_changes_the_hidden_cards_and_leaves_the_game_alone() -> None:
    rng = np.random.default_rng(4)
    for game in states_of(RuleSet()):
        before = game.to_json()
        for seat in (0, 1):
            if len(game.view(seat).unseen) < 12:
                continue
            others = [game.resample_hidden(seat, rng) for _ in range(3)]
            stocks = {hidden(other, seat)[1] for other in (game, *others)}
            hands = {other.hand(1 - seat) for other in (game, *others)}
            assert len(stocks) == 4 or game.stock_count < 5
            assert len(hands) == 4 or len(game.hand(1 - seat)) < 3
        assert game.to_json() == before


def test_resampling_draws_a_new_seed() -> None:
    rng, game = np.random.default_rng(5), Game("classic", seed=9, deal=4)
    seeds = [game.resample_hidden(1, rng).seed for _ in range(200)]
    assert len({9, *seeds}) == 201
    assert all(any(seed >> bit & 1 for seed in seeds) for bit in range(64))
    assert not any(all(seed >> bit & 1 for seed in seeds) for bit in range(64))
    assert {game.resample_hidden(1, rng).deal for _ in range(9)} == {0}


def test_resampling_follows_the_generator() -> None:
    first, second = (Game().resample_hidden(0, np.random.default_rng(6)) for _ in range(2))
    assert first.to_json() == second.to_json()


# --- uniform over what the rules allow ---

FALSE_ALARM = 1e-6  # of each chi-square test, over the choice of its seed


def assert_uniform(drawn: Counter[Any], cells: Iterable[Any]) -> None:
    """Nothing outside ``cells`` was drawn, and each of them equally often."""
    cells = set(cells)
    assert set(drawn) <= cells
    expected = drawn.total() / len(cells)
    statistic = sum((drawn[cell] - expected) ** 2 / expected for cell in cells)
    assert chi2.sf(statistic, len(cells) - 1) > FALSE_ALARM


def turned() -> Game:
    """Seat 0 sees neither the three cards of seat 1 nor the two of the stock."""
    return Game.from_position(
        "classic",
        hands=("AC 3C 5D 7D 2H 4H 6C QC KS JD", "KD 4C KC"),
        tables=("", "3S 4S 5S 6S 2D 3D 4D"),
        face_up="7H",
        stock="2C AH",
    )


def taking() -> Game:
    """Seat 1 has taken 6H and needs 7H from hand, and either 5H or JH."""
    return Game.from_position(
        "classic",
        hands=("AC 3C 5D 7D 2H 4H 2C QC KS JD", "5H 7H 6C"),
        tables=("", "AS 2S 3S 4S AD 2D 3D 6H"),
        stock="KC JH",
        phase="meld",
        actor=1,
    )


def watched() -> Game:
    """Seat 0 itself is in the middle of a take."""
    return Game.from_position(
        "classic",
        hands=("5H 7H QC", "AC KD KS"),
        tables=("AS 2S 3S 4S AD 2D 3D 6H", "3C 4C 5C 6C 4D 5D 6D"),
        stock="QH JS",
        phase="meld",
    )


def assignments(game: Game) -> set[tuple[tuple[str, ...], str]]:
    """What seat 0 must think possible: hands that can finish the table, orders of the stock."""
    unseen = [NAMES[card_id] for card_id in game.view(0).unseen]
    table = frozenset(map(card, game.table(1)))
    found = set()
    for hand in combinations(unseen, len(game.hand(1))):
        if oracle.can_grow(table, frozenset(map(card, hand))):
            rest = [name for name in unseen if name not in hand]
            found |= {(hand, " ".join(order)) for order in permutations(rest)}
    return found


@pytest.mark.parametrize(
    ("make", "hands"),
    [
        (turned, 10),
        (taking, 5),  # of ten: 7H and two others, but not 6C and KC
        (watched, 10),  # the own unfinished table says nothing of the other hand
    ],
)
def test_resampling_is_uniform_over_what_is_possible(make: Callable[[], Game], hands: int) -> None:
    game, rng = make(), np.random.default_rng(7)
    possible = assignments(game)
    assert len(possible) == 2 * hands  # two orders of the stock
    drawn = Counter(hidden(game.resample_hidden(0, rng), 0) for _ in range(6000))
    assert_uniform(drawn, possible)


def test_resampling_is_uniform_in_a_whole_deal() -> None:
    """Each unseen card is as often in the other hand, and as often next in the stock."""
    game, rng = Game("classic", seed=8), np.random.default_rng(8)
    games = [game.resample_hidden(1, rng) for _ in range(3000)]
    unseen = [NAMES[card_id] for card_id in game.view(1).unseen]
    assert len(unseen) == 29
    nexts = Counter(hidden(other, 1)[1][:2] for other in games)
    lasts = Counter(hidden(other, 1)[1][-2:] for other in games)
    held = Counter(name for other in games for name in other.hand(0))
    assert_uniform(nexts, unseen)
    assert_uniform(lasts, unseen)
    assert_uniform(held, unseen)  # ten different cards of a hand: the statistic is even smaller


# --- what a view holds ---


def test_a_view_holds_nothing_but_its_fields() -> None:
    assert [field.name for field in fields(View)] == [
        "rules", "seat", "actor", "phase", "face_up", "source", "hand", "table", "other_table",
        "other_hand_size", "dead", "unseen", "known", "declined", "other_declined",
        "other_discarded", "stock_count", "given", "received", "legal_actions", "history",
        "winner", "stake",
    ]  # fmt: skip
    plain = (int, str, tuple, RuleSet, type(None))
    for game in states_of(RuleSet()):
        seen = game.view(0)
        assert not hasattr(seen, "__dict__")
        values = [getattr(seen, field.name) for field in fields(View)]
        assert all(isinstance(value, plain) for value in values)
        assert all(type(e) is int for value in values if type(value) is tuple for e in value)
        with pytest.raises(AttributeError):
            seen.seat = 1  # type: ignore[misc]


def test_views_hold_no_seed_no_deal_and_no_rows() -> None:
    assert [field.name for field in fields(Views)] == [
        "rules", "observation", "mask", "hand", "table", "other_table", "dead", "face_up",
        "history", "seeds",
    ]  # fmt: skip
    assert set(get_type_hints(Views)) == {field.name for field in fields(Views)}
    game = Game("classic", seed=9)
    views = seen_as_actor(game, 0)
    assert views is not None
    assert not hasattr(views, "__dict__")
    assert views.seeds.tolist() == [5]
    for field in fields(Views):
        array = getattr(views, field.name)
        while isinstance(array, np.ndarray):  # down to the memory it is a window of
            assert array.dtype.names is None
            assert not np.shares_memory(array, game._rows)
            array = array.base
        assert array is None or field.name == "rules"


def test_the_unseen_cards_are_the_other_hand_and_the_stock() -> None:
    for game in states_of(RuleSet()):
        for seat in (0, 1):
            hand, stock = hidden(game, seat)
            assert {*hand, *stock.split()} == {NAMES[c] for c in game.view(seat).unseen}


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_the_state_forgets_the_order_in_which_hands_were_dealt(rules: RuleSet) -> None:
    """Only the stock lies in order; hands and removed cards are sets."""
    dealt = 2 * rules.deal
    for game in states_of(rules):
        order = game._rows["stock"][0, : rules.pack_size]
        start = Game(rules, game.seed, game.deal)
        turned = [] if start.face_up is None else [card(start.face_up)]
        stock = [*turned, *map(card, hidden(start, 0)[1].split())]
        assert (order[:dealt] == -1).all()
        if game.redeal:
            continue  # the start was another deal
        assert order[dealt : dealt + rules.stock_size].tolist() == stock
        assert (order[dealt + rules.stock_size :] == -1).all()
