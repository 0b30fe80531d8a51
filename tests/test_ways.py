"""The ways to a final table against a slow second count, and in positions counted by hand."""

from itertools import combinations as subsets

import pytest

from agents.ways import MOST_WAYS, combos_by_size, find_ways, new_desk
from conquian_env import Phase, RuleSet, cards
from conquian_env.cards import NAMES, card_mask
from conquian_env.melds import combinations
from tests.playing import playthroughs


def mask(names: str) -> int:
    return card_mask(cards(names))


def found(rules: RuleSet, own: str, table: str, unseen: str) -> dict[int, int]:
    desk = new_desk(combos_by_size(rules))
    n = find_ways(mask(own), mask(table), mask(unseen), rules.target, desk)
    return dict(desk.ways[:n].tolist())


def slow_ways(rules: RuleSet, own: set[int], table: set[int], unseen: set[int]) -> dict[int, int]:
    """Every choice of separate combinations that have two own cards or more."""
    melds = [
        meld
        for meld in ({c for c in range(40) if combo >> c & 1} for combo in combinations(rules))
        if len(meld & own) >= 2 and meld <= own | unseen and len(meld - own) <= 3
    ]
    unions = (
        set().union(*chosen)
        for k in range(1, rules.target // 3 + 1)
        for chosen in subsets(melds, k)
        if sum(map(len, chosen)) == rules.target
    )
    return {
        card_mask(way): len(way - own)
        for way in unions
        if len(way) == rules.target and table <= way and len(way - own) <= 3
    }


@pytest.mark.parametrize("name", ["classic", "mexican", "micro"])
def test_the_ways_are_all_there_are(name: str) -> None:
    some, rules = 0, RuleSet.preset(name)
    desk = new_desk(combos_by_size(rules))
    for number, game in enumerate(playthroughs(rules, games=12, seed=2)):
        if number % 7 == 0 and game.phase in {Phase.OFFERED, Phase.MELD}:
            view = game.view(game.actor)
            own, table, unseen = {*view.hand, *view.table}, set(view.table), set(view.unseen)
            n = find_ways(*map(card_mask, (own, table, unseen)), rules.target, desk)
            assert dict(desk.ways[:n].tolist()) == slow_ways(rules, own, table, unseen)
            assert len(set(desk.ways[:n, 0].tolist())) == n
            some += n > 0
    assert some > 5


FIVE = RuleSet(deal=5)
OWN = "AC 2C 3C AD AH KS"


def test_the_ways_of_a_hand_counted_by_hand() -> None:
    assert found(FIVE, OWN, "", "AS 4C") == {
        mask("AC 2C 3C AD AH AS"): 1,
        mask("AC 2C 3C 4C AD AH"): 1,
        mask("AC 2C 3C 4C AD AS"): 2,
        mask("AC 2C 3C 4C AH AS"): 2,
        mask("2C 3C 4C AD AH AS"): 2,
    }


def test_a_way_holds_all_that_is_down() -> None:
    (lost,) = found(FIVE, OWN, "", "AS 4C").keys() - found(FIVE, OWN, "AC 2C 3C", "AS 4C").keys()
    assert lost == mask("2C 3C 4C AD AH AS")


def test_a_way_needs_cards_that_may_still_come() -> None:
    assert found(FIVE, OWN, "", "AS") == {mask("AC 2C 3C AD AH AS"): 1}
    assert found(FIVE, OWN, "", "4S") == {}


def test_no_combination_has_fewer_than_two_own_cards() -> None:
    """Of KS QS JS the king alone is own."""
    assert found(FIVE, "AC 2C 3C AD 4H KS", "", "QS JS") == {}
    assert found(FIVE, "AC 2C 3C AD QS KS", "", "JS") == {mask("AC 2C 3C JS QS KS"): 1}


def test_four_cards_are_never_missing() -> None:
    nine, own = RuleSet(deal=9), "AC 2C 7D JD 4H 4S"
    assert found(nine, own, "", "3C 4C QD 4D") == {}
    assert set(found(nine, f"{own} 3C", "", "4C QD 4D").values()) == {3}


def test_there_are_never_more_ways_than_there_is_room_for() -> None:
    own = " ".join(name for name in NAMES if name[0] in "A2345")
    assert len(found(RuleSet(), own, "", "6C 6D 6H 6S")) == MOST_WAYS
