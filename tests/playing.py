"""Games played for the tests: every state on the way, the same ones for the same seed."""

from collections.abc import Iterator, Sequence

import numpy as np

from conquian_env import Game, RuleSet
from conquian_env.actions import DISCARD, PASS


def choose(game: Game, rng: np.random.Generator, eager: bool) -> int:
    """A legal action; an ``eager`` player takes, forces and lays as long as he may."""
    legal = game.legal_actions()
    wanted = [action for action in legal if PASS < action < DISCARD] if eager else []
    return int(rng.choice(wanted or legal))


def playthroughs(rules: RuleSet | str, games: int, seed: int) -> Iterator[Game]:
    """Every state, the last included, of the first deals of ``seed``; each a game of its own.

    In even deals both seats play uniformly at random, in odd ones both are eager.
    """
    for deal in range(games):
        rng = np.random.default_rng((seed, deal))
        game = Game(rules, seed=seed, deal=deal)
        yield game.copy()
        while not game.is_over:
            game.apply(choose(game, rng, eager=deal % 2 == 1))
            yield game.copy()


def play(game: Game, actions: Sequence[int]) -> list[str]:
    """Play the actions in place; the whole state after each of them, as JSON."""
    states = []
    for action in actions:
        game.apply(action)
        states.append(game.to_json())
    return states


def random_actions(game: Game, seed: int, eager: bool = False) -> list[int]:
    """The actions of a random game from here to its end; ``game`` itself stays as it is."""
    rng, game, actions = np.random.default_rng(seed), game.copy(), []
    while not game.is_over:
        actions.append(choose(game, rng, eager))
        game.apply(actions[-1])
    return actions
