"""What the environments' arguments may be, and the spaces and deals that follow from them."""

from typing import Any, Literal, get_args

import numpy as np
from gymnasium import spaces

from conquian_env.actions import NUM_ACTIONS
from conquian_env.deal import seed_bits
from conquian_env.errors import OptionError, shown
from conquian_env.game import Game
from conquian_env.observation import Encoding, highs
from conquian_env.rules import RuleSet

MaskLocation = Literal["obs", "info", "both"]
Place = tuple[int, int]


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a value that is not one of the allowed ones, by name."""
    if not any(type(value) is type(each) and value == each for each in allowed):
        known = ", ".join(map(str, allowed))
        raise OptionError(f"{name} must be one of {known}, not {shown(value)}")


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
    rules: RuleSet, seed: int | None, options: dict[str, Any] | None, last: Place | None
) -> tuple[Game, Place]:
    """The game that a ``reset`` begins, and its place: seed and number of the deal.

    A seed starts its deal 0; without one the deal after the last is played, or deal 0 of a random
    seed. ``options`` may hold one of ``deal``, another number of the deal; ``deck``, the whole pack
    as ``Game.from_deck`` wants it; ``position``, a Game to go on from. The last two stand in the
    place of a deal, which is counted. Other keys are ignored, as PettingZoo wants it.

    Raises:
        SeedError, CardError, PositionError, OptionError: an argument is out of range.
    """
    options = {} if options is None else options
    if not isinstance(options, dict):
        raise OptionError(f"options must be a dict, not {shown(options)}")
    if seed is not None:
        seed_bits(seed)
    given = sorted({"deal", "deck", "position"} & options.keys())
    if len(given) > 1:
        raise OptionError(f"options: {' and '.join(given)} exclude each other")
    if seed is None and last is not None:
        seed, deal = last[0], last[1] + 1
    else:
        seed, deal = random_seed() if seed is None else int(seed), 0
    if "position" in options:
        return copied_game("position", options["position"], rules), (seed, deal)
    if "deck" in options:
        return Game.from_deck(rules, options["deck"]), (seed, deal)
    game = Game(rules, seed, options.get("deal", deal))
    return game, (seed, game.deal)


def lead(game: Game, seat: int) -> float:
    """The potential of ``shaping``: cards on a table less the other's, as a part of the target."""
    return (len(game.table(seat)) - len(game.table(1 - seat))) / game.rules.target


def random_seed() -> int:
    """A seed that nobody chose, 0 to 2**64 - 1."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])


def copied_game(name: str, game: object, rules: RuleSet) -> Game:
    """A copy of a game that an environment of these rules can go on from."""
    if not isinstance(game, Game):
        raise OptionError(f"{name} must be a Game, not {shown(game)}")
    if game.rules != rules:
        raise OptionError(f"{name} is a game of {game.rules.to_text()}, not {rules.to_text()}")
    if game.is_over:
        raise OptionError(f"{name} is over")
    return game.copy()
