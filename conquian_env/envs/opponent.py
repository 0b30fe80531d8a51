"""The other seat of a one-seat environment: who plays it, and which seat is the learner's."""

import importlib
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from conquian_env.envs.options import check_option
from conquian_env.errors import OptionError, shown
from conquian_env.jit import jit
from conquian_env.seeds import draw, key
from conquian_env.view import Views, legal_choices

SeatChoice = Literal["random", "alternate", 0, 1]


@runtime_checkable
class Opponent(Protocol):
    """Whatever plays the other seat; every agent of a tournament is one."""

    def act(self, views: Views) -> NDArray[np.int64]:
        """A legal action for each of the n decisions, int64 [n]; chance is in ``views.seeds``."""
        ...


class Uniform:
    """Every legal action is equally likely."""

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        actions = np.empty(len(views), np.int64)
        _uniform(views.mask, views.seeds.view(np.int64), actions)
        return actions


@jit
def _uniform(mask: NDArray[np.bool_], seeds: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
    for i in range(len(mask)):
        place = (((seeds[i] >> 32) & 0x7FFFFFFF) * mask[i].sum()) >> 31
        for action in range(mask.shape[1]):
            if mask[i, action]:
                if place == 0:
                    actions[i] = action
                    break
                place -= 1


def make_opponent(spec: "str | Opponent") -> Opponent:
    """The opponent that a spec names.

    Args:
        spec: ``random``; ``package.module:Class``, a class on the path that is made without
            arguments; or the object itself.

    Raises:
        OptionError: there is no such class, or it has no ``act``.
    """
    if isinstance(spec, str) and spec == "random":
        return Uniform()
    made: object = spec
    if isinstance(spec, str):
        module, _, name = spec.partition(":")
        try:
            made = getattr(importlib.import_module(module), name)()
        except (ImportError, AttributeError, ValueError, TypeError) as error:
            raise OptionError(f"opponent {spec!r}: {error}") from error
    if isinstance(made, type) or not isinstance(made, Opponent):
        raise OptionError(
            f"opponent must have act(views), be 'random' or 'module:Class': {shown(spec)}"
        )
    return made


class Opposition:
    """An opponent in many games at once, its randomness and the seats.

    Seats and randomness are functions of each game's seed and deal, so that neither the number of
    games nor what was played before moves them.

    Args:
        opponent: see ``make_opponent``.
        seat: the learner's: 0, 1, ``alternate`` (0 in even deals) or ``random``.

    Raises:
        OptionError: an argument is out of range.
    """

    def __init__(self, opponent: str | Opponent, seat: SeatChoice) -> None:
        check_option("seat", seat, get_args(SeatChoice))
        self.opponent, self.seat = make_opponent(opponent), seat
        self._keys = np.zeros((2, 0, 2), np.int64)

    def reseed(self, num_games: int, index: NDArray[np.int64], seeds: list[int]) -> None:
        """The games of ``index`` have new seeds."""
        if self._keys.shape[1] != num_games:
            self._keys = np.zeros((2, num_games, 2), np.int64)
        for i, seed in zip(index, seeds, strict=True):
            self._keys[:, i] = key("seats", seed), key("opponent", seed)

    def seats(self, index: NDArray[np.int64], deals: NDArray[np.int64]) -> NDArray[np.int8]:
        """The learner's seat in deals of games, int8 [k]."""
        if self.seat == "random":
            drawn = draw(self._keys[0, index], deals, np.zeros_like(deals))
            return (drawn & np.uint64(1)).astype(np.int8)
        if self.seat == "alternate":
            return (deals % 2).astype(np.int8)
        return np.full(len(index), self.seat, np.int8)

    def seeds(
        self, index: NDArray[np.int64], deals: NDArray[np.int64], plies: NDArray[np.int16]
    ) -> NDArray[np.uint64]:
        """The opponent's randomness for decisions in games, uint64 [k]."""
        return draw(self._keys[1, index], deals, plies)

    def act(self, views: Views) -> NDArray[np.int64]:
        """The opponent's actions, int64 [k].

        Raises:
            IllegalActionError: it gave something else than a legal action for each decision. Its
                own errors come through, with a note of whose they are.
        """
        who = f"opponent {type(self.opponent).__name__}"
        mask = views.mask.copy()  # the opponent's own may be written to
        try:
            chosen = self.opponent.act(views)
        except Exception as error:
            error.add_note(f"raised by {who}")
            raise
        return legal_choices(who, chosen, mask)
