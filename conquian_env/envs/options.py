"""What the environments' arguments may be, and the spaces and deals that follow from them."""

from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces

from conquian_env.actions import NUM_ACTIONS
from conquian_env.deal import seed_bits
from conquian_env.errors import OptionError
from conquian_env.game import Game
from conquian_env.observation import Encoding, highs
from conquian_env.rules import RuleSet

MaskLocation = Literal["obs", "info", "both"]


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a value that is not one of the allowed ones, by name."""
    if value not in allowed or type(value) not in map(type, allowed):
        raise OptionError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}")


def observation_space(encoding: Encoding, mask_location: MaskLocation) -> spaces.Space[Any]:
    """A Box of the encoding, in a Dict with the mask unless that is in the info.

    Raises:
        OptionError: an argument is out of range.
    """
    check_option("observation", encoding, get_args(Encoding))
    check_option("mask_location", mask_location, get_args(MaskLocation))
    high = highs(encoding)
    box = spaces.Box(np.zeros_like(high), high, dtype=np.uint8)
    if mask_location == "info":
        return box
    mask = spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)
    return spaces.Dict({"observation": box, "action_mask": mask})


def first_game(
    rules: RuleSet, seed: int | None, options: dict[str, Any] | None, last: Game | None
) -> Game:
    """The game that a ``reset`` begins.

    A seed starts its deal 0; without one the next deal of the last game's seed is played, or deal 0
    of a random seed. ``options`` may hold one of ``deal``, the number of the deal; ``deck``, the
    whole pack as ``Game.from_deck`` wants it; ``position``, a Game to go on from. Other keys are
    ignored, as PettingZoo wants it.

    Raises:
        SeedError, CardError, PositionError, OptionError: an argument is out of range.
    """
    options = options or {}
    if seed is not None:
        seed_bits(seed)  # a deck or a position has one of its own, but a wrong one is an error
    given = sorted({"deal", "deck", "position"} & options.keys())
    if len(given) > 1:
        raise OptionError(f"options: {' and '.join(given)} exclude each other")
    if "position" in options:
        return copied_game("position", options["position"], rules)
    if "deck" in options:
        return Game.from_deck(rules, options["deck"])
    deal = 0
    if seed is None and last is not None:
        seed, deal = last.seed, last.deal + 1
    elif seed is None:
        seed = random_seed()
    return Game(rules, seed, options.get("deal", deal))


def random_seed() -> int:
    """A seed that nobody chose, 0 to 2**64 - 1."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def copied_game(name: str, game: object, rules: RuleSet) -> Game:
    """A copy of a game that an environment of these rules can go on from."""
    if not isinstance(game, Game):
        raise OptionError(f"{name} must be a Game, not {game!r:.60}")
    if game.rules != rules:
        raise OptionError(f"{name} is a game of {game.rules.to_text()}, not {rules.to_text()}")
    if game.is_over:
        raise OptionError(f"{name} is over")
    return game.copy()
