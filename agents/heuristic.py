"""Rule-based agents without search."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from conquian_env import RuleSet, Views
from conquian_env.actions import DISCARD, LAY, PASS, TAKE
from conquian_env.cards import NUM_CARDS, PACK, lowest
from conquian_env.jit import jit
from conquian_env.melds import combinations

# What a three-card combination is worth to a card in it, by how many of the other two are own.
LINK_BOTH_OWN, LINK_ONE_OWN, LINK_NONE_OWN = 25, 6, 1


@lru_cache(maxsize=64)
def partner_table(rules: RuleSet) -> NDArray[np.int64]:
    """The other two cards of each three-card combination by card: int64 [40, k], 0 fills up."""
    threes = [combo for combo in combinations(rules) if combo.bit_count() == 3]
    by_card = [[t & ~(1 << c) for t in threes if t >> c & 1] for c in range(NUM_CARDS)]
    table = np.zeros((NUM_CARDS, max(map(len, by_card))), np.int64)
    for card_id, pairs in enumerate(by_card):
        table[card_id, : len(pairs)] = pairs
    return table


@jit
def count_links(partners: NDArray[np.int64], own: int, unseen: int) -> int:
    """How much a card's live combinations are worth."""
    links = 0
    for pair in partners:
        if pair == 0:
            break
        if pair & ~own == 0:
            links += LINK_BOTH_OWN
        elif pair & ~(own | unseen) == 0:
            links += LINK_ONE_OWN if pair & own else LINK_NONE_OWN
    return links


@jit
def _greedy(
    mask: NDArray[np.bool_],
    hand: NDArray[np.int64],
    table: NDArray[np.int64],
    other_table: NDArray[np.int64],
    dead: NDArray[np.int64],
    partners: NDArray[np.int64],
    actions: NDArray[np.int64],
) -> None:
    for i in range(len(actions)):
        lays = mask[i, LAY:DISCARD]
        if mask[i, TAKE]:
            actions[i] = TAKE
        elif lays.any():
            actions[i] = LAY + lays.argmax()
        elif mask[i, PASS]:
            actions[i] = PASS
        else:
            own = hand[i] | table[i]
            unseen = PACK & ~(own | other_table[i] | dead[i])
            actions[i] = _least_linked(hand[i], own, unseen, partners)


@jit
def _least_linked(hand: int, own: int, unseen: int, partners: NDArray[np.int64]) -> int:
    """The discard with the least links, the lowest card on ties."""
    best, fewest = -1, 1 << 30
    while hand:
        card_id = lowest(hand)
        hand &= hand - 1
        links = count_links(partners[card_id], own, unseen)
        if links < fewest:
            best, fewest = card_id, links
    return DISCARD + best


class Greedy:
    """Take whenever legal, lay all, discard the card with the fewest live links, never insist."""

    def act(self, views: Views) -> NDArray[np.int64]:
        """int64 [n]."""
        actions = np.empty(len(views), np.int64)
        _greedy(
            views.mask, views.hand, views.table, views.other_table, views.dead,
            partner_table(views.rules), actions,
        )  # fmt: skip
        return actions
