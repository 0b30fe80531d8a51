"""What an agent is."""

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from conquian_env import Views
from conquian_env.errors import ConquianError
from conquian_env.jit import jit


class AgentError(ConquianError):
    """A spec that names no agent, or an agent that broke the protocol; names the agent."""


@runtime_checkable
class Agent(Protocol):
    """A strategy: a function of each decision's view, many decisions at a time.

    Rows have nothing to do with each other: an agent keeps nothing from one to the next, and draws
    from ``views.seeds`` alone, so that its play does not depend on how decisions are batched.

    It may also have ``probabilities(views) -> float32 [n, 83]``, from which ``act`` draws, and
    ``rules``, the only RuleSet it can play.
    """

    def act(self, views: Views) -> NDArray[np.int64]:
        """A legal action for each of the n decisions, int64 [n]."""
        ...


def uniforms(seeds: NDArray[np.uint64]) -> NDArray[np.float64]:
    """One number in [0, 1) for each seed (uint64 [n]), from its upper 53 bits."""
    upper = (seeds >> np.uint64(11)).astype(np.float64)
    numbers: NDArray[np.float64] = np.ldexp(upper, -53)
    return numbers


def draw(
    probabilities: NDArray[np.floating], mask: NDArray[np.bool_], seeds: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """One action a row: float [n, 83], bool [n, 83], uint64 [n] in, int64 [n] out.

    The probabilities of a row's legal actions sum to 1.
    """
    chosen = np.empty(len(seeds), np.int64)
    _draw(probabilities, mask, uniforms(seeds), chosen)
    return chosen


@jit
def _draw(
    probabilities: NDArray[np.floating],
    mask: NDArray[np.bool_],
    places: NDArray[np.float64],
    chosen: NDArray[np.int64],
) -> None:
    for i in range(len(chosen)):
        chosen[i] = pick(probabilities[i], mask[i], places[i])


@jit
def pick(probabilities: NDArray[np.floating], mask: NDArray[np.bool_], place: float) -> int:
    """The legal action in whose part of [0, 1) ``place`` is; rounding is left to the last one."""
    chosen = -1
    for action in range(len(mask)):
        if mask[action] and probabilities[action] != 0:
            chosen = action
            place -= probabilities[action]
            if place < 0:
                break
    return chosen
