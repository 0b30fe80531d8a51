"""The tree of the game and the OpenSpiel game on it."""

import copy
import pickle
import random
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator
from functools import cache
from itertools import islice, pairwise, product
from math import comb

import numpy as np
import pyspiel
import pytest
from open_spiel.python.algorithms import exploitability
from open_spiel.python.algorithms.ismcts import ISMCTSBot
from open_spiel.python.algorithms.mcts import RandomRolloutEvaluator
from open_spiel.python.observation import make_observation
from open_spiel.python.policy import UniformRandomPolicy
from scipy.stats import chi2

from conquian_env import Game, Phase, RuleSet, card
from conquian_env.actions import CODE_MASK, TURN
from conquian_env.cards import card_ids
from conquian_env.errors import IllegalActionError, OptionError, RuleSetError
from conquian_env.openspiel import ConquianState, parse_rules, rules_text
from conquian_env.rules import PRESETS
from conquian_env.tree import CHANCE, TERMINAL, Node
from tests.playing import choose
from tests.positions import VARIANTS
from training.sequence_form import sequence_form

RULES = (
    *PRESETS,
    "bicycle;force:auto;lay_order:ascending",
    "mexican;first_card:dealt;suits:3;ranks:7;deal:6;stock:5",
)
TINY = "classic;suits:3;ranks:2;deal:2"
TINIES = (
    TINY + ";exchange:true;stock:1",
    TINY + ";hand_melds:true;lay_order:ascending",
    "classic;suits:4;ranks:2;deal:3;stock:1",  # with tables to force cards on
)


def load(rules: str, skip_forced: bool = False) -> pyspiel.Game:
    return pyspiel.load_game(f"python_conquian(rules={rules},skip_forced={skip_forced})")


def walk(node: Node) -> Iterator[Node]:
    yield node
    for move in node.actions or node.chances:
        yield from walk(node.child(move))


@cache
def plays(rules: str, number: int = 4, skip_forced: bool = False) -> list[list[ConquianState]]:
    """All states of some random games; in every other game, the last moves are preferred."""
    found = []
    for play in range(number):
        chooser = random.Random(play)
        state = load(rules, skip_forced).new_initial_state()
        states = [state]
        while not state.is_terminal():
            if state.is_chance_node():
                cards, chances = zip(*state.chance_outcomes(), strict=True)
                move = chooser.choices(cards, chances)[0]
            else:
                legal = state.legal_actions()
                move = legal[-1] if play % 2 and chooser.random() < 0.8 else chooser.choice(legal)
            state = state.child(move)
            states.append(state)
        found.append(states)
    return found


# --- OpenSpiel's own test ---


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("rules", RULES)
def test_random_sim(rules: str, skip_forced: bool) -> None:
    pyspiel.random_sim_test(load(rules, skip_forced), num_sims=10, serialize=True, verbose=False)


# --- chance ---


@pytest.mark.parametrize("rules", ["nano", TINY])
def test_every_pair_of_hands_is_equally_likely_and_has_one_history(rules: str) -> None:
    dealt: Counter[tuple[int, int]] = Counter()

    def deal(node: Node, probability: float) -> None:
        if not node.missing[1]:
            assert node.dealt not in dealt
            dealt[node.dealt] = probability  # type: ignore[assignment]
            return
        assert sum(node.chances.values()) == pytest.approx(1, abs=1e-12)
        for card_id, chance in node.chances.items():
            deal(node.child(card_id), probability * chance)

    deal(Node.root(parse_rules(rules)), 1.0)
    pack, size = parse_rules(rules).pack_size, parse_rules(rules).deal
    assert len(dealt) == comb(pack, size) * comb(pack - size, size)
    assert list(dealt.values()) == pytest.approx([1 / len(dealt)] * len(dealt), rel=1e-12)


@pytest.mark.parametrize("rules", RULES)
def test_every_unseen_card_is_equally_likely_to_be_turned(rules: str) -> None:
    for states in plays(rules):
        for state in states:
            node = state.node
            if node.player != CHANCE or node.missing[1]:
                continue
            game = node.game
            unseen = set(map(card, game.hand(0))) | set(game.view(0).unseen)
            pool = unseen - set(map(card, game.hand(0) + game.hand(1)))
            assert node.chances == pytest.approx(dict.fromkeys(sorted(pool), 1 / len(pool)))
            assert list(node.chances) == sorted(pool)


# --- the same game ---


def dealt_card(node: Node, hands: tuple[tuple[str, ...], ...]) -> int:
    seat = 0 if node.missing[0] else 1
    return card(hands[seat][-node.missing[seat]])


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("rules", RULES)
def test_it_is_the_game_that_game_plays(rules: str, skip_forced: bool) -> None:
    """A dealt Game leads the way: legal actions, views, observations and returns are equal."""
    for deal in range(6):
        game, rng = Game(parse_rules(rules), seed=1, deal=deal), np.random.default_rng(deal)
        hands, way = (game.hand(0), game.hand(1)), {}
        while not game.is_over:
            move = choose(game, rng, eager=deal % 2 == 1)
            way[len(game.history)] = game.copy(), move
            game.apply(move)
        node, chosen = Node.root(game.rules, skip_forced), 0
        while node.player != TERMINAL:
            events = len(node.game.history)
            if node.player == CHANCE:
                turn = game.history[events] & CODE_MASK if events < len(game.history) else 0
                node = node.child(dealt_card(node, hands) if node.missing[1] else turn - TURN)
                continue
            alongside, move = way[events]
            assert (node.player, list(node.actions)) == (alongside.actor, alongside.legal_actions())
            for seat in (0, 1):
                assert node.game.view(seat) == alongside.view(seat)
            node, chosen = node.child(move), chosen + 1
        assert node.game.returns() == game.returns()
        real = [state for state, _ in way.values() if len(state.legal_actions()) > 1]
        assert chosen == len(real if skip_forced else way)


@pytest.mark.parametrize("rules", RULES)
def test_the_state_says_what_its_node_says(rules: str) -> None:
    for states in plays(rules):
        for state in states:
            node = state.node
            assert state.current_player() == node.player
            assert state.is_terminal() == (node.player == TERMINAL)
            assert state.legal_actions() == list(node.actions or node.chances)
            assert state.returns() == list(node.game.returns())
        assert states[-1].is_terminal()
        assert set(states[-1].returns()) in ({1.0, -1.0}, {0.0})


def test_names_of_moves() -> None:
    state = load("nano").new_initial_state()
    assert [state.action_to_string(move) for move in state.legal_actions()[:2]] == ["AC", "2C"]
    while state.is_chance_node():
        state.apply_action(state.legal_actions()[-1])
    assert [state.action_to_string(move) for move in state.legal_actions()] == ["pass", "take"]


@pytest.mark.parametrize("rules", RULES)
def test_lengths_are_bounded(rules: str) -> None:
    game = load(rules)
    for states in plays(rules, 12):
        players = [player for player, _ in moves_of(states[-1])]
        assert players.count(CHANCE) <= game.max_chance_nodes_in_history()
        assert len(players) - players.count(CHANCE) <= game.max_game_length()
        assert len(states[-1].node.game.history) <= states[-1].node.setup.max_events


# --- information ---

Seen, Path = tuple[Hashable, ...], tuple[int, ...]
FALSE_ALARM = 1e-6  # of each chi-square test, over the choice of its seed


def seen(state: ConquianState, seat: int) -> Seen:
    """What the seat has seen, told from the moves alone: the yardstick of the encodings."""
    node = state.node
    dealt, given, events = 2 * node.setup.rules.deal, [], []
    for place, (player, move) in enumerate(moves_of(state)):
        if place < dealt:
            events.append(move if (place >= dealt // 2) == seat else "a card")
        elif node.setup.rules.exchange and len(given) < 2 and player != CHANCE:
            given.append(move)
            events.append(move if player == seat else "a gift")
            events += given if len(given) == 2 else []
        else:
            events.append((player, move))
    return tuple(events)


def moves_of(state: ConquianState) -> list[tuple[int, int]]:
    return [(int(pair.player), int(pair.action)) for pair in state.full_history()]


def surfaces(state: ConquianState, seat: int) -> tuple[object, ...]:
    return (
        state.information_state_string(seat),
        tuple(state.information_state_tensor(seat)),
        state.observation_string(seat),
        tuple(state.observation_tensor(seat)),
    )


def all_states(rules: str) -> Iterator[ConquianState]:
    def walk(state: ConquianState) -> Iterator[ConquianState]:
        yield state
        for move in state.legal_actions():
            yield from walk(state.child(move))

    yield from walk(load(rules).new_initial_state())


@pytest.mark.parametrize("rules", [*TINIES[:2], pytest.param(TINIES[2], marks=pytest.mark.slow)])
def test_encodings_hold_what_the_seat_has_seen_and_nothing_else(rules: str) -> None:
    """In every state of a small game, chance and the end included, for both seats."""
    shown: dict[tuple[int, Seen], set[int]] = defaultdict(set)
    meant: tuple[dict[object, Seen], dict[object, Seen]] = {}, {}
    for state in all_states(rules):
        for seat in (0, 1):
            key, surface = seen(state, seat), surfaces(state, seat)
            shown[seat, key].add(hash(surface))
            if state.node.missing[1]:
                continue  # the cards dealt to the other are not counted
            assert meant[0].setdefault(surface[0], (seat, *key)) == (seat, *key)
            tensor = (seat, surface[1])
            assert meant[1].setdefault(hash(tensor), (seat, *key)) == (seat, *key)
    assert {len(surface) for surface in shown.values()} == {1}


def swapped(states: list[ConquianState], seat: int) -> Iterator[list[ConquianState]]:
    """The same play, a card that stays in the hand of ``seat`` swapped for one never seen."""
    end = states[-1].node
    dealt, moves = 2 * end.setup.rules.deal, states[-1].history()
    kept = end.dealt[seat] & int(end.rows["hand"][0, seat])
    for hidden, unseen in product(card_ids(kept), card_ids(end.rows["removed"][0])):
        hands = [list(card_ids(hand)) for hand in end.dealt]
        hands[seat] = sorted({*hands[seat], unseen} - {hidden})
        state = load(rules_text(end.setup.rules)).new_initial_state()
        others = [state]
        try:
            for move in [*hands[0], *hands[1], *moves[dealt:]]:
                others.append(others[-1].child(move))
        except IllegalActionError:  # with the other card a take or lay would not have been legal
            continue
        yield others


@pytest.mark.parametrize("rules", RULES)
def test_cards_that_stay_hidden_change_nothing(rules: str) -> None:
    """Told without ``resample``: no state after the deal shows the other seat which they are."""
    compared = 0
    for play in plays(rules):
        dealt = 2 * play[0].node.setup.rules.deal
        states = play[: (dealt + len(play)) // 2]  # later on no card may be left unseen
        for seat in (0, 1):
            for others in islice(swapped(states, seat), 3):
                for state, other in zip(states[dealt:], others[dealt:], strict=True):
                    assert state.current_player() == other.current_player()
                    assert surfaces(state, 1 - seat) == surfaces(other, 1 - seat)
                    assert str(state) != str(other)
                    compared += 1
    assert compared > 20


# --- perfect recall ---


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("rules", TINIES)
def test_perfect_recall(rules: str, skip_forced: bool) -> None:
    """An information state tells the own earlier ones with what was done there, and what may be."""
    past: dict[str, tuple[object, ...]] = {}
    legal: dict[str, list[int]] = {}

    def visit(node: Node, memories: tuple[tuple[object, ...], tuple[object, ...]]) -> None:
        if node.player >= 0:
            known, memory = node.information(node.player), memories[node.player]
            assert past.setdefault(known, memory) == memory
            assert legal.setdefault(known, node.actions) == node.actions
        for move in node.actions or node.chances:
            now = list(memories)
            if node.player >= 0:
                now[node.player] = (*memory, known, move)
            visit(node.child(move), (now[0], now[1]))

    visit(Node.root(parse_rules(rules), skip_forced), ((), ()))
    assert len(legal) > 40


# --- resampling ---


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("rules", RULES)
def test_a_resampled_state_looks_the_same_and_is_reached(rules: str, skip_forced: bool) -> None:
    chooser, changed = random.Random(1), 0
    for states in plays(rules, skip_forced=skip_forced):
        for state in states:
            for seat in (0, 1):
                other = state.resample_from_infostate(seat, chooser.random)
                assert surfaces(other, seat) == surfaces(state, seat)
                assert (other.current_player(), other.is_terminal()) == (
                    state.current_player(), state.is_terminal(),
                )  # fmt: skip
                changed += other.node.dealt != state.node.dealt
                replayed = load(rules, skip_forced).new_initial_state()
                for move in other.history():
                    replayed.apply_action(move)
                assert str(replayed) == str(other)
    assert changed > 50


def test_resampling_follows_the_sampler() -> None:
    state = plays("classic")[0][60]
    first, second = (state.resample_from_infostate(0, random.Random(3).random) for _ in range(2))
    assert first.history() == second.history() != state.history()


def assert_drawn_by_chance(drawn: Counter[Path], chances: dict[Path, float]) -> None:
    """Nothing outside ``chances`` was drawn, and everything in proportion to it."""
    assert set(drawn) <= set(chances)
    scale = drawn.total() / sum(chances.values())
    statistic = sum((drawn[c] - scale * p) ** 2 / (scale * p) for c, p in chances.items())
    assert chi2.sf(statistic, len(chances) - 1) > FALSE_ALARM


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("rules", TINIES)
def test_resampling_draws_as_chance_does(rules: str, skip_forced: bool) -> None:
    """Among all nodes with the same information and as many cards dealt; three of every kind.

    Once the hands are dealt chance leads to each of them with the same probability.
    """
    root = Node.root(parse_rules(rules), skip_forced)
    kinds: dict[Hashable, dict[str, dict[Path, float]]] = defaultdict(lambda: defaultdict(dict))

    def visit(node: Node, path: Path, chance: float) -> None:
        for seat in (0, 1):
            kind = (seat, node.player, node.game.phase, sum(node.missing))
            kinds[kind][node.information(seat)][path] = chance
        for move in node.actions or node.chances:
            visit(node.child(move), (*path, move), chance * node.chances.get(move, 1))

    visit(root, (), 1.0)
    rng, tested = np.random.default_rng(2), 0
    for (seat, _, _, missing), known in kinds.items():
        cells = [chances for chances in known.values() if len(chances) > 1]
        for i in rng.permutation(len(cells))[:3]:
            chances, node, tested = cells[i], root, tested + 1
            assert missing or max(chances.values()) == pytest.approx(min(chances.values()))
            for move in next(iter(chances)):
                node = node.child(move)
            drawn = Counter(tuple(node.resample(seat, rng)) for _ in range(20 * len(chances)))
            assert_drawn_by_chance(drawn, chances)
    assert tested > 20


def test_a_bot_searches_on_resampled_states() -> None:
    """Information-set Monte Carlo tree search, which resamples at every simulation."""
    state = next(state for state in plays("mexican")[0] if state.node.game.phase == Phase.OFFERED)
    bot = ISMCTSBot(
        game=state.get_game(),
        uct_c=1.0,
        evaluator=RandomRolloutEvaluator(random_state=np.random.RandomState(1)),
        max_simulations=30,
        random_state=np.random.RandomState(2),
        use_observation_string=False,
    )
    assert bot.step(state) in state.legal_actions()


# --- copies ---


def copies(state: ConquianState) -> Iterator[ConquianState]:
    game = state.get_game()
    yield state.clone()
    yield copy.deepcopy(state)
    yield pickle.loads(pickle.dumps(state))
    yield game.deserialize_state(state.serialize())
    yield pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))[1]


@pytest.mark.parametrize("skip_forced", [False, True])
@pytest.mark.parametrize("rules", ["mexican", "classic"])
def test_copies_in_every_phase_play_on_alike(rules: str, skip_forced: bool) -> None:
    phases = set()
    for states in plays(rules, skip_forced=skip_forced):
        for state, after in pairwise(states):
            before, move = str(state), after.history()[-1]
            phases.add((state.current_player() == CHANCE, state.node.game.phase))
            for twin in copies(state):
                assert isinstance(twin, ConquianState)
                assert (str(twin), twin.history()) == (before, state.history())
                twin.apply_action(move)
                assert (str(twin), twin.history()) == (str(after), after.history())
                assert twin.legal_actions() == after.legal_actions()
            assert (str(state), state.history()) == (before, after.history()[:-1])
    assert {(True, Phase.TURNED), (False, Phase.TURNED), (False, Phase.MELD)} <= phases
    assert ((False, Phase.GIVE) in phases) == (rules == "mexican")


def test_games_are_pickled_and_equal() -> None:
    game = load("nano;stock:2", skip_forced=True)
    twin = pickle.loads(pickle.dumps(game))
    assert (twin, str(twin), type(twin)) == (game, str(game), type(game))
    assert twin.new_initial_state().node.setup == game.new_initial_state().node.setup
    assert game != load("nano")


# --- exact algorithms ---


def test_best_responses_in_python_and_in_cpp_agree() -> None:
    game = load(TINY, skip_forced=True)
    uniform = UniformRandomPolicy(game)
    table = {
        node.information(node.player): [(a, 1 / len(node.actions)) for a in node.actions]
        for node in walk(game.root)
        if node.actions
    }
    value = exploitability.nash_conv(game, uniform)
    assert value == pytest.approx(pyspiel.nash_conv(game, table), abs=1e-12)
    assert value > 0.01


def test_forced_moves_do_not_change_what_a_policy_is_worth() -> None:
    whole, real = (load(TINIES[0], skip) for skip in (False, True))
    values = [exploitability.nash_conv(game, UniformRandomPolicy(game)) for game in (whole, real)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


@pytest.mark.slow
def test_the_tree_of_nano_is_as_large_as_its_sequence_form_says() -> None:
    players: Counter[int] = Counter()

    def visit(node: Node, played: int) -> int:
        players[node.player] += 1
        played += node.player >= 0
        return max(
            (visit(node.child(m), played) for m in node.actions or node.chances), default=played
        )

    root = Node.root(RuleSet.preset("nano"))
    assert visit(root, 0) == 16 <= root.setup.rules.max_plies
    assert players.total() - players[CHANCE] == sequence_form("nano").histories


# --- parameters and refusals ---


@pytest.mark.parametrize("rules", [*map(RuleSet.preset, PRESETS), *VARIANTS], ids=str)
def test_rules_have_a_text(rules: RuleSet) -> None:
    assert parse_rules(rules_text(rules)) == rules
    if rules.draw == "end":
        game = pyspiel.load_game("python_conquian", {"rules": rules_text(rules)})
        assert pyspiel.load_game(str(game)).root.setup.rules == rules


def test_rules_with_changes() -> None:
    assert parse_rules("nano;stock:none;force:off").to_dict() == {
        **RuleSet.preset("nano").to_dict(),
        "stock": None,
        "force": "off",
    }
    assert rules_text(RuleSet()) == "classic"
    assert rules_text(RuleSet(deal=8, hand_melds=True)) == "classic;deal:8;hand_melds:true"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("klassik", "unknown preset 'klassik'"),
        ("", "unknown preset ''"),
        ("nano;speed:1", "unknown rule field 'speed'"),
        ("nano;deal", "deal must be a whole number, not ''"),
        ("nano;deal:9", "deal=9: two hands"),
        ("nano;deal:five", "deal must be a whole number, not 'five'"),
        ("classic;draw:double", "draw='double': each deal is a game"),
    ],
)
def test_bad_rules_are_refused(rules: str, message: str) -> None:
    with pytest.raises((RuleSetError, OptionError), match=message):
        load(rules)


def test_nodes_share_nothing_that_can_change() -> None:
    node = Node.root(RuleSet.preset("nano"))
    node.chances.clear()
    node = Node.root(RuleSet.preset("nano"))
    while node.player == CHANCE:
        node = node.child(next(iter(node.chances)))
    assert isinstance(node.actions, tuple)


def test_illegal_moves_are_refused_and_change_nothing() -> None:
    for states in plays("nano", 2):
        for state in states:
            before = str(state), state.history()
            legal = state.legal_actions()
            for move in {-9, 0, 1, 2, 39, 40, 82, 83} - set(legal):
                with pytest.raises(IllegalActionError, match=f"{move} is none of"):
                    state.apply_action(move)
            assert (str(state), state.history()) == before


def test_observers() -> None:
    game, state = load("nano"), plays("nano")[0][12]
    for recall in (False, True):
        observation = make_observation(game, pyspiel.IIGObservationType(perfect_recall=recall))
        observation.set_from(state, 0)
        assert observation.tensor.dtype == np.float32
        assert observation.tensor[:416].tolist() == state.node.game.observation(0).tolist()
        assert ("history" in observation.dict) == recall
        text = state.information_state_string(0) if recall else state.observation_string(0)
        assert observation.string_from(state, 0) == text
    assert observation.dict["dealt"].nonzero()[0].tolist() == list(card_ids(state.node.dealt[0]))
    rows = 255 - np.packbits(observation.dict["history"].astype(np.uint8), axis=1)[:, 0]
    assert rows.tolist() == state.node.history(0).tolist()


@pytest.mark.parametrize(
    "kind",
    [
        {"private_info": pyspiel.PrivateInfoType.NONE},
        {"private_info": pyspiel.PrivateInfoType.ALL_PLAYERS},
        {"public_info": False},
    ],
    ids=str,
)
def test_other_observers_are_refused(kind: dict[str, object]) -> None:
    with pytest.raises(OptionError, match="only what one player may know"):
        load("nano").make_py_observer(pyspiel.IIGObservationType(perfect_recall=True, **kind))
    with pytest.raises(OptionError):
        make_observation(load("nano"), params={"planes": True})


def test_the_package_does_not_import_openspiel() -> None:
    code = "import sys, conquian_env, conquian_env.conquian_v0; assert 'pyspiel' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
