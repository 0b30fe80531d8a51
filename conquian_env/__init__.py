"""Conquian, the oldest rummy of the western world, as an environment for learning agents."""

from gymnasium.envs.registration import register

from conquian_env.actions import action_name, parse_action
from conquian_env.batch import Batch
from conquian_env.cards import card, card_name, cards
from conquian_env.game import Game, Outcome, Termination
from conquian_env.record import GameRecord
from conquian_env.rules import RuleSet
from conquian_env.solver import Solution, solve
from conquian_env.state import Phase, Source
from conquian_env.version import __version__ as __version__
from conquian_env.view import View, Views

register(
    "Conquian-v0",
    entry_point="conquian_env.envs.single:ConquianEnv",
    vector_entry_point="conquian_env.envs.vector:ConquianVectorEnv",
)

__all__ = [
    "Batch",
    "Game",
    "GameRecord",
    "Outcome",
    "Phase",
    "RuleSet",
    "Solution",
    "Source",
    "Termination",
    "View",
    "Views",
    "action_name",
    "card",
    "card_name",
    "cards",
    "parse_action",
    "solve",
]
