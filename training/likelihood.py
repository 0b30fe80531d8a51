"""Which distributions counts do not refuse: 95 % intervals by empirical likelihood.

An interval holds what some distribution can be whose likelihood is not too far below the best (A.
Owen, Empirical Likelihood, 2001). So it stays in range, and has a width when all came out alike.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

REFUSED = NormalDist().inv_cdf(0.975) ** 2 / 2  # log likelihood ratio beyond a 95 % interval


def farthest(direction: Floats, counts: NDArray[np.int64]) -> Floats:
    """The distribution [k] with the highest mean of ``direction`` that counts do not refuse.

    By Lagrange its shares are those of the counts, each over its distance from a point at or above
    the top, scaled. If the likelihood lets that point come to a top that was never seen, what is
    left of it pays for a share there.

    Args:
        direction: [k].
        counts: [k], how often each came, 0 for what could have come and did not.
    """
    here = counts > 0
    shares, below = counts[here] / counts.sum(), (direction.max() - direction)[here]
    allowed = REFUSED / counts.sum()

    def at(distance: float) -> tuple[Floats, float]:
        p = shares / (below + distance)
        p /= p.sum()
        return p, float(shares @ np.log(shares / p))

    span = float(np.ptp(direction))
    near, far = span * 1e-15, span * 1e15
    while far > near * (1 + 1e-13):
        distance = math.sqrt(near * far)
        near, far = (distance, far) if at(distance)[1] > allowed else (near, distance)
    p, loss = at(far)
    end = np.zeros(len(counts))
    end[here] = p * math.exp(loss - allowed)
    end[direction.argmax()] -= math.expm1(loss - allowed)
    scaled: Floats = end / end.sum()
    return scaled
