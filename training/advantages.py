"""Generalised advantage estimation, seat by seat."""

import numpy as np
from numpy.typing import NDArray

from conquian_env.jit import jit

Floats = NDArray[np.float32]


@jit
def _fill(
    actor: NDArray[np.int8],
    reward: Floats,
    done: NDArray[np.bool_],
    value: Floats,
    last_value: Floats,
    gae_lambda: float,
    advantage: Floats,
) -> None:
    length, games = actor.shape
    for game in range(games):
        next_value = last_value[game].copy()
        next_advantage = np.zeros(2, np.float32)
        owed = np.zeros(2, np.float32)
        for t in range(length - 1, -1, -1):
            for seat in range(2):
                if done[t, game]:
                    next_value[seat] = next_advantage[seat] = owed[seat] = 0.0
                owed[seat] += reward[t, game, seat]
            seat = actor[t, game]
            error = owed[seat] + next_value[seat] - value[t, game]
            advantage[t, game] = error + gae_lambda * next_advantage[seat]
            next_value[seat], next_advantage[seat] = value[t, game], advantage[t, game]
            owed[seat] = 0.0


def advantages(
    actor: NDArray[np.int8],
    reward: Floats,
    done: NDArray[np.bool_],
    value: Floats,
    last_value: Floats,
    gae_lambda: float,
) -> tuple[Floats, Floats]:
    """Advantages and returns of T decisions in each of N games, with γ = 1.

    A seat's next state is its own next decision, however many the other seat has in between; the
    rewards on the way are summed, so the loser's last decision is paid -1 though the winner moved
    after it (Schulman et al., arXiv 1506.02438, for each seat).

    Args:
        actor: int8 [T, N], the seat that decided.
        reward: float32 [T, N, 2], to both seats, after the decision.
        done: bool [T, N], the deal ended there.
        value: float32 [T, N], the critic's value for the actor.
        last_value: float32 [N, 2], by seat, of the state after the last decision.
        gae_lambda: λ.

    Returns:
        advantage and return (advantage + value), float32 [T, N] each.
    """
    advantage = np.empty_like(value)
    _fill(actor, reward, done, value, last_value, gae_lambda, advantage)
    return advantage, advantage + value
