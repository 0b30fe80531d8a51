"""Who meets whom, and in what parts."""

import pytest

from conquian_env.errors import OptionError
from training.schedule import Part, pairings, parts


def test_formats():
    assert pairings("round-robin", 3) == [(0, 1), (0, 2), (1, 2)]
    assert pairings("gauntlet", 4) == [(0, 1), (0, 2), (0, 3)]
    assert pairings("ladder", 4) == [(0, 1), (1, 2), (2, 3)]
    assert pairings("ladder", 4, rungs=2) == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(("round-robin", 1), "two agents"), (("ladder", 3, 0), "rung"), (("swiss", 3), "'swiss'")],
)
def test_what_cannot_be_is_refused(arguments, said):
    with pytest.raises(OptionError, match=said):
        pairings(*arguments)


def test_parts_hold_every_deal_once_and_every_pairing_is_begun_first():
    cut = parts([(0, 1), (0, 2)], 25, 10)
    assert cut[:2] == [Part(0, 1, 0, 10), Part(0, 2, 0, 10)]
    assert cut[-1] == Part(0, 2, 20, 25)
    for other in (1, 2):
        deals = [d for p in cut if p.second == other for d in range(p.start, p.stop)]
        assert deals == list(range(25))
    assert parts([(0, 1)], 5, 3, begin=7) == [Part(0, 1, 7, 10), Part(0, 1, 10, 12)]
