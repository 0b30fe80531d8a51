"""A game between a person and an agent: what each is shown, what is kept, and what can go wrong."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import make_agent
from conquian_env import Game, RuleSet, View, Views, action_name, card_name, parse_action
from conquian_env.errors import ConquianError, IllegalActionError, OptionError
from conquian_env.record import read_records, replay
from conquian_env.viewer import to_html
from training.play.session import PERSON, Named, Session, Setting
from training.play.words import question, result

RULES = ["classic", "mexican", "bicycle", "classic,force=auto", "classic,draw=double"]
CARD = re.compile(r"\b[A2-7JQK][CDHS]\b")


class Raises:
    def act(self, views: Views) -> np.ndarray:
        raise ValueError("no idea")


class Illegal:
    def act(self, views: Views) -> np.ndarray:
        return np.full(len(views), 82)


class Watched:
    """Greedy; keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Views] = []

    def act(self, views: Views) -> np.ndarray:
        self.shown.append(views)
        return make_agent("greedy").act(views)


def session(
    out: Path = Path("games.jsonl"),
    agent: Any = "greedy",
    rules: str = "classic",
    seed: int = 1,
    seat: int = 0,
    **options: Any,
) -> Session:
    opponent = Named(agent, make_agent(agent)) if isinstance(agent, str) else Named("it", agent)
    adviser = options.pop("adviser", Named("expert", make_agent("expert")))
    setting = Setting(opponent, adviser, RuleSet.from_text(rules), out, **options)
    made = Session(setting, seed, 0, seat)
    made.begin()
    return made


def played(game: Session, seed: int = 0) -> Iterator[Session]:
    """The game at each choice of a person who plays at random, and at its end."""
    rng = np.random.default_rng(seed)
    while not game.over:
        yield game
        game.choose(int(rng.choice(game.legal)))
    yield game


def ended(game: Session) -> Session:
    """The game after a person played it at random."""
    *_, last = played(game)
    return last


def seen_cards(view: View) -> set[str]:
    """All cards that the person has in front of the eyes."""
    shown = {*view.hand, *view.table, *view.other_table, *view.dead, *view.known}
    shown |= {card for card in (view.face_up, view.given, view.received) if card is not None}
    return set(map(card_name, shown))


# --- what is shown ---


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("rules", RULES)
def test_the_person_reads_of_no_card_that_was_never_seen(rules: str, seat: int) -> None:
    for seed in range(6):
        for game in played(session(rules=rules, seed=seed, seat=seat), seed):
            views = [state.view(seat) for state in replay(game.record())]
            seen = set().union(*map(seen_cards, views))
            assert {card for line in game.story() for card in CARD.findall(line.what)} <= seen
            assert game.view == views[-1]


def test_a_gift_is_not_told_before_the_person_has_chosen() -> None:
    game = session(rules="mexican", seat=1)
    assert [str(line) for line in game.story()] == ["greedy gave a card"]
    assert not CARD.search(str(game.news()))
    game.choose(game.legal[0])
    told = [str(line) for line in game.story()]
    received = game.view.received
    assert received is not None
    assert told[1:3] == [
        f"You gave {card_name(game.view.given or 0)}",
        f"greedy had given {card_name(received)} for it",
    ]


def test_the_agent_is_shown_what_its_seat_knows_and_nothing_else() -> None:
    agent = Watched()
    game = ended(session(agent=agent, seat=1))
    states = list(replay(game.record()))[:-1]
    decisions = [s for s in states if s.actor == 0 and len(s.legal_actions()) > 1]
    assert len(decisions) == len(agent.shown) > 2
    for state, views in zip(decisions, agent.shown, strict=True):
        np.testing.assert_array_equal(views.observation[0], state.observation(0))


def test_all_that_happened_is_told_once_and_in_order() -> None:
    game = session(seed=1)
    assert [str(line) for line in game.news()] == [
        "You turned 6D",
        "You passed 6D on (the only choice)",
        "greedy took 6D",
        "greedy laid 6H",
        "greedy laid 6S",
        "greedy laid 7S",
        "greedy laid JS",
        "greedy laid QS",
        "greedy discarded KH",
    ]
    game.choose(1)
    assert [str(line) for line in game.news()] == ["You took KH"]
    assert len(game.story()) == 10


def test_whether_the_agent_had_a_choice_is_not_told() -> None:
    told = [
        line for seed in range(5) for game in played(session(seed=seed)) for line in game.story()
    ]
    assert {line.who for line in told if "only choice" in line.what} == {"You"}


@pytest.mark.parametrize("rules", RULES)
def test_the_end_and_each_question_are_put_in_words(rules: str) -> None:
    asked = set()
    for seed in range(8):
        for game in played(session(rules=rules, seed=seed), seed):
            if not game.over:
                asked.add(question(game.view).split()[0])
        said, paid = result(game.view, "greedy"), game.record().returns[0]
        assert said.startswith({1: "You win", 0: "A draw", -1: "greedy wins"}[int(np.sign(paid))])
        assert (f"for {abs(paid):.0f}" in said) == (abs(paid) > 1)
        assert str(game.story()[-1]) == said
    assert {"Take", "Lay"} <= asked


# --- decisions ---


@pytest.mark.parametrize("rules", RULES)
def test_the_person_is_asked_where_there_is_a_choice_and_nowhere_else(rules: str) -> None:
    game = session(rules=rules)
    choices = sum(1 for _ in played(game)) - 1
    states = list(replay(game.record()))[:-1]
    real = [state for state in states if state.actor == 0 and len(state.legal_actions()) > 1]
    assert choices == len(real) > 0


def test_what_is_not_legal_changes_nothing() -> None:
    game = session(seed=1)
    before = game.record(), game.view
    for actions in ([2], [82], [1, 2], [0, 82], ["x"], [True], [1, 3 + 9, 3 + 19, 43]):
        with pytest.raises(IllegalActionError):
            game.choose(*actions)
        assert (game.record(), game.view) == before


@pytest.mark.parametrize(
    ("actions", "said"),
    [
        (["lay 3S"], "lay 3S: not in phase offered; answer the face-up card first"),
        (["take", "lay QS"], "lay QS: QS is not in your hand"),
        (["take", "take"], "take: you have taken a card and must lay or discard"),
        (["take", "lay 7H"], "lay 7H: no legal table of yours holds 7H"),
        (["force"], "force: there is nothing to force in phase offered"),
    ],
)
def test_why_something_is_not_legal_is_said_to_the_person(actions: list[str], said: str) -> None:
    with pytest.raises(IllegalActionError) as caught:
        session(seed=1).choose(*map(parse_action, actions))
    assert str(caught.value) == said


def test_a_take_may_be_played_in_one_go() -> None:
    one, other = session(seed=1), session(seed=1)
    one.choose(1)
    one.choose(3 + 19)
    one.choose(43 + 5)
    other.choose(1, 3 + 19, 3 + 9, 43 + 5)  # one of the lays had been the only choice
    assert one.record().actions == other.record().actions


def test_what_is_refused_in_a_row_tells_nothing_of_the_card_that_is_turned() -> None:
    told = set()
    for seed in range(8):
        for game in played(session(seed=seed, seat=1)):
            if game.view.phase == "offered" and 0 in game.legal:
                with pytest.raises(IllegalActionError) as caught:
                    game.choose(0, 1)  # the decliner turns the next card, unless the other insists
                told.add("" if game.view.stock_count == 0 else str(caught.value))
    assert "take: first see the card that is turned" in told
    assert told <= {"", "take: first see the card that is turned", "take: it is not your turn then"}


def test_a_hint_that_was_taken_back_is_still_known() -> None:
    game = session(seed=1, undo=True)
    hint = game.hint()
    game.choose(game.legal[0])
    game.undo()
    assert game.hinted == hint
    game.choose(game.legal[0])
    note = next(note for note in game.record().notes if "undone" in note)
    assert note == {"agents": {"expert": hint}, "undone": 1}


def test_a_choice_is_taken_back_with_all_that_came_of_it() -> None:
    game = session(seed=1, undo=True, rules="classic")
    assert not game.can_undo
    with pytest.raises(OptionError, match="nothing to undo"):
        game.undo()
    states = [(game.view, game.story())]
    for _ in range(4):
        game.choose(game.legal[0])
        states.append((game.view, game.story()))
    for view, story in reversed(states[:-1]):
        game.undo()
        assert (game.view, game.story()) == (view, story)
    for view, story in states[1:]:  # the agent answers as before
        game.choose(game.legal[0])
        assert (game.view, game.story()) == (view, story)
    assert [note["undone"] for note in game.record().notes if "undone" in note] == [4]


def test_nothing_is_taken_back_unless_that_was_asked_for_or_after_the_end() -> None:
    game = session(seed=1)
    game.choose(0)
    with pytest.raises(OptionError, match="--undo"):
        game.undo()
    game = ended(session(seed=1, undo=True))
    with pytest.raises(OptionError, match="nothing to undo"):
        game.undo()


def test_a_hint_is_what_the_adviser_would_do_and_is_noted() -> None:
    game = session(seed=1)
    state = Game("classic", seed=1)
    for action in game.record().actions:
        state.apply(action)
    best = make_agent("expert").act(state.views(np.zeros(1, np.uint64)))[0]
    hint = game.hint()
    assert hint == {action_name(a): float(a == best) for a in game.legal}
    assert game.hinted == hint
    ply = game.ply
    game.choose(game.legal[0])
    assert game.hinted == {}
    assert game.record().notes[ply] == {"agents": {"expert": hint}}


# --- what is kept ---


def test_the_record_has_the_agents_thoughts_where_analyse_puts_them() -> None:
    game = ended(session(agent="random", seat=1))
    record = game.record()
    assert record.agents == ("random", PERSON)
    thoughts = 0
    for state, note in zip(replay(record), record.notes, strict=False):
        legal = state.legal_actions()
        if state.actor == 0 and len(legal) > 1:
            uniform = dict.fromkeys(map(action_name, legal), round(1 / len(legal), 4))
            assert note == {"agents": {"random": uniform}}
            thoughts += 1
        else:
            assert note == {}
    assert len(game.thoughts()) == thoughts > 2
    assert "random" in to_html([record])


def test_thoughts_are_the_agents_decisions_in_words() -> None:
    game = ended(session(seat=1))
    for line, thought in game.thoughts():
        assert line.who == "greedy"
        (action,) = [name for name, share in thought.items() if share == 1.0]
        did = {"pass": ("passed", "declined", "did not"), "take": ("took",), "lay": ("laid",)}
        assert line.what.startswith(did.get(action.split()[0], ("discarded", "insisted")))


def test_a_game_is_added_to_its_file_once(tmp_path: Path) -> None:
    out = tmp_path / "games.jsonl"
    first, second = session(out, seed=1), session(out, seed=2)
    for game in (first, second):
        game.choose(game.legal[0])
    assert [first.save(), first.save(), second.save()] == [1, 1, 2]
    assert read_records(out) == [first.record(), second.record()]
    assert first.record().outcome is None


def test_a_game_without_an_action_is_not_kept(tmp_path: Path) -> None:
    seed = next(s for s in range(50) if not session(seed=s).record().actions)
    game = session(tmp_path / "games.jsonl", seed=seed)
    assert game.save() is None
    assert not list(tmp_path.iterdir())


def test_a_game_that_cannot_be_saved_is_still_there(tmp_path: Path) -> None:
    out = tmp_path / "gone" / "games.jsonl"
    game = session(out)
    game.choose(game.legal[0])
    with pytest.raises(OSError, match="gone"):
        game.save()
    out.parent.mkdir()
    assert game.save() == 1


# --- agents that fail ---


@pytest.mark.parametrize(
    ("agent", "said"), [(Raises(), "failed: ValueError('no idea')"), (Illegal(), "82 is not legal")]
)
def test_an_agent_that_fails_ends_the_game_which_is_kept(
    agent: object, said: str, tmp_path: Path
) -> None:
    game = session(tmp_path / "games.jsonl", agent, seed=1)
    assert game.over
    assert game.failure.startswith("agent it")
    assert said in game.failure
    assert game.legal == []
    with pytest.raises(ConquianError):
        game.choose(0)
    assert game.save() == 1
    assert read_records(tmp_path / "games.jsonl")[0].outcome is None


def test_a_game_without_an_adviser_has_no_hints() -> None:
    game = session(seed=1, adviser=None)
    assert game.hinted == {}
    with pytest.raises(OptionError, match="no hints in this game"):
        game.hint()


def test_an_adviser_that_fails_gives_no_hint_and_changes_nothing() -> None:
    game = session(seed=1, adviser=Named("it", Raises()))
    before = game.record()
    with pytest.raises(ConquianError, match="no idea"):
        game.hint()
    assert (game.record(), game.hinted, game.over) == (before, {}, False)
