"""Seeds from seeds: fixed, separate, and the same in any company."""

import numpy as np
import pytest

from conquian_env.errors import SeedError
from conquian_env.seeds import deal_seeds, decision_seeds, derive

PINNED_DEALS = [11064493987189805757, 12716279908747752541]
PINNED_DECISION = [3306319643989298087]


def test_values_are_pinned():
    """Published matches are named by a seed: these may only change with a new major version."""
    assert deal_seeds(0, np.arange(2)).tolist() == PINNED_DEALS
    some = decision_seeds(7, np.array([5]), np.array([1], np.int8), np.array([3], np.int16))
    assert some.tolist() == PINNED_DECISION


def test_entries_do_not_depend_on_company():
    numbers = np.arange(1000)
    together = deal_seeds(3, numbers)
    assert deal_seeds(3, numbers[[17, 5]]).tolist() == together[[17, 5]].tolist()
    assert len(set(together.tolist())) == 1000


def test_every_argument_counts():
    one, two = np.array([1]), np.array([2])
    values = [
        derive("deals", 0, one, two), derive("agents", 0, one, two), derive("deals", 1, one, two),
        derive("deals", 0, two, one), derive("deals", 0, one, one),
        decision_seeds(0, one, np.array([0], np.int8), np.array([4], np.int16)),
        decision_seeds(0, one, np.array([1], np.int8), np.array([4], np.int16)),
    ]  # fmt: skip
    assert len({int(value[0]) for value in values}) == len(values)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, None])
def test_seed_range(seed):
    with pytest.raises(SeedError):
        deal_seeds(seed, np.arange(1))
