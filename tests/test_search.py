"""Agents that search: legal everywhere, better than what they start from, and honest."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from agents import make_agent
from agents.agent import AgentError
from agents.search import likely_worlds
from conquian_env import Game, RuleSet, parse_action
from conquian_env.cards import card_mask, cards
from conquian_env.solver import Solver
from tests.playing import playthroughs
from training.match import play_match

SEED = np.zeros(1, np.uint64)
SPECS = ["rollout:worlds=2", "pimc:worlds=1,limit=2000", "ismcts:simulations=6,group=3"]
RULES = ["classic-1.1", "bicycle", "mexican", "nine", "nano", "micro", "mini",
         "classic,force=auto", "mexican,lay_order=ascending,first_card=dealt,stock=6"]  # fmt: skip


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("spec", SPECS)
def test_search_plays_every_rule_set(spec: str, rules: str) -> None:
    agent = make_agent(spec)
    for game in playthroughs(RuleSet.from_text(rules), 1, seed=3):
        if not game.is_over:
            action = agent.act(game.views(SEED))[0]
            assert action in game.legal_actions()


def last_chance(face_up: str) -> Game:
    """Seat 0 has nine down and K K in hand, one card is left; KS wins, 6S must not be taken."""
    return Game.from_position(
        "classic",
        hands=("KH KC", "2H 4H 6C 7D JD QD AC 3C 5H 7H"),
        tables=("2S 3S 4S 5S AD 2D 3D 4D", ""),
        face_up=face_up,
        stock="QC",
    )


@pytest.mark.parametrize("spec", ["rollout:worlds=10", "pimc:worlds=5", "ismcts:simulations=60"])
def test_search_wins_when_it_can(spec: str) -> None:
    agent = make_agent(spec)
    game = last_chance("KS")
    assert agent.act(game.views(SEED))[0] == parse_action("take")


def test_worlds_are_drawn_by_what_was_declined() -> None:
    """The other passed KH: that it holds KC and KD is a tenth as likely as without the pass."""
    game = Game.from_deck(
        "classic",
        "AC 3C 5C 7C QC AD 3D 5D 7D QD 2C 4C 6C JC KC 2D 4D 6D JD KD "
        "KH AH 2H 3H 4H 5H 6H 7H JH QH AS 2S 3S 4S 5S 6S 7S JS QS KS",
    )
    game.apply(0)
    game.apply(0)
    kings = card_mask(cards("KC KD"))
    share = []
    for doubt in (1.0, 0.1):
        hands = likely_worlds(game.view(0), 4000, doubt, np.random.default_rng(0)).states()["hand"]
        share.append(float((hands[:, 1] & kings == kings).mean()))
    assert 0.05 < share[1] / share[0] < 0.2


def test_a_rule_set_without_a_value_is_refused_by_name() -> None:
    game = Game("classic,draw=double", seed=1)
    while len(game.legal_actions()) == 1:
        game.apply(game.legal_actions()[0])
    with pytest.raises(AgentError, match="draw"):
        make_agent("pimc").act(game.views(SEED))


def test_threads_that_share_an_agent_do_not_share_its_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Compiled code runs in both at once, and the memory of one is not for the other to write."""
    agent, views = make_agent("pimc:worlds=1,limit=2000"), last_chance("KS").views(SEED)
    alone = agent.act(views)
    at_work, both, real = [], Barrier(2, timeout=60), Solver.action_values

    def action_values(self: Solver, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at_work.append(self)
        both.wait()
        return real(self, rows)

    monkeypatch.setattr(Solver, "action_values", action_values)
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(agent.act, [views, views])] == [alone, alone]
    assert at_work[0] is not at_work[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", ["rollout:worlds=20", "pimc:worlds=3,bias=0.3", "ismcts:simulations=150"]
)
def test_search_beats_greedy(spec: str) -> None:
    """The lower bound of a 95 % interval is above 0: a false pass in one of forty."""
    result = play_match(
        (spec, make_agent(spec)), ("greedy", make_agent("greedy")), RuleSet(), pairs=150, seed=11
    )
    assert result.score.low > 0, result.score
