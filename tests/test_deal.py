"""Deals: known answers of the generator, golden deals, uniformity, seeds.

``python -m tests.test_deal`` writes ``tests/golden/deals.json`` anew. That is a new version of the
game: every recorded seed then means another deal.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from conquian_env import Batch, Game, RuleSet, card_name
from conquian_env.deal import check_deal, seed_bits, shuffle, threefry, unsigned
from conquian_env.errors import SeedError

GOLDEN = Path(__file__).parent / "golden" / "deals.json"
GOLDEN_SEEDS, GOLDEN_DEALS = (0, 1, 2**63), 3


def order(seed: int, deal: int, size: int = 40, redeal: int = 0) -> list[int]:
    """The shuffled pack of a deal."""
    deck = np.zeros(size, np.int8)
    shuffle(deck, seed_bits(seed), deal, redeal)
    return deck.tolist()


def dealt(seed: int, deal: int) -> dict[str, object]:
    """A fresh classic deal: sorted hands, and the stock in the order it is turned."""
    game = Game("classic", seed=seed, deal=deal)
    stock = json.loads(game.to_json())["stock"]
    hands = [" ".join(game.hand(seat)) for seat in range(2)]
    return {"seed": seed, "deal": deal, "hands": hands, "stock": f"{game.face_up} {stock}"}


def dealt_again(seed: int, deal: int, redeal: int) -> dict[str, object]:
    """The order of the pack after so many drawn deals."""
    pack = " ".join(card_name(card_id) for card_id in order(seed, deal, redeal=redeal))
    return {"seed": seed, "deal": deal, "redeal": redeal, "pack": pack}


def golden() -> list[dict[str, object]]:
    deals = [dealt(seed, deal) for seed in GOLDEN_SEEDS for deal in range(GOLDEN_DEALS)]
    again = [(deal, redeal) for deal in (0, 2) for redeal in (1, 6)]
    return deals + [dealt_again(seed, *numbers) for seed in GOLDEN_SEEDS for numbers in again]


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_threefry_gives_the_published_answers(
    key: tuple[int, int], counter: tuple[int, int], words: tuple[int, int]
) -> None:
    assert threefry(*key, *counter) == words


def test_golden_deals_never_change() -> None:
    assert golden() == json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("size", [1, 2, 3, 40])
def test_a_shuffle_is_a_permutation(size: int) -> None:
    for deal in range(50):
        assert sorted(order(7, deal, size)) == list(range(size))


@pytest.mark.parametrize("number", range(5))
def test_rule_2_1_ten_cards_each_and_twenty_in_the_stock(number: int) -> None:
    pack = [card_name(card_id) for card_id in order(3, number)]
    game = Game("classic", seed=3, deal=number)
    assert set(game.hand(0)) == set(pack[:10])
    assert set(game.hand(1)) == set(pack[10:20])
    assert dealt(3, number)["stock"] == " ".join(pack[20:])


def test_rule_2_1_other_deal_sizes_cut_the_same_pack() -> None:
    pack = [card_name(card_id) for card_id in order(3, 4)]
    game = Game(RuleSet(deal=8), seed=3, deal=4)
    assert set(game.hand(0)) == set(pack[:8])
    assert set(game.hand(1)) == set(pack[8:16])
    assert (game.face_up, game.stock_count) == (pack[16], 23)


@cache
def packs(by: str) -> NDArray[np.int64]:
    """20,000 shuffled packs, by deal number under one seed or by seed."""
    deals = range(20_000)
    return np.array([order(11, n) if by == "deal" else order(n, 5) for n in deals])


@pytest.mark.parametrize("by", ["deal", "seed"])
def test_every_card_is_as_likely_in_every_place(by: str) -> None:
    """Pearson's statistic; it would fail for fair shuffles once in a million.

    Rows and columns of card by place both have a fixed sum, so (m - 1) / m of the statistic
    follows a chi-square law of (m - 1)**2 degrees, for m = 40 cards.
    """
    places = np.broadcast_to(np.arange(40), packs(by).shape)
    seen = np.zeros((40, 40))
    np.add.at(seen, (packs(by), places), 1)
    expected = len(packs(by)) / 40
    statistic = ((seen - expected) ** 2).sum() / expected * 39 / 40
    low, high = chi2.ppf([5e-7, 1 - 5e-7], 39**2)
    assert low < statistic < high


@pytest.mark.parametrize("by", ["deal", "seed"])
@pytest.mark.parametrize(("place", "other"), [(0, 1), (0, 10), (19, 20), (38, 39)])
def test_every_pair_of_cards_is_as_likely_in_two_places(by: str, place: int, other: int) -> None:
    """Pearson's statistic of the 40 * 39 ordered pairs; false alarm once in a million."""
    seen = np.bincount(packs(by)[:, place] * 40 + packs(by)[:, other], minlength=1600)
    pairs = seen.reshape(40, 40)[~np.eye(40, dtype=bool)]
    assert pairs.sum() == len(packs(by))
    expected = len(packs(by)) / len(pairs)
    low, high = chi2.ppf([5e-7, 1 - 5e-7], len(pairs) - 1)
    assert low < ((pairs - expected) ** 2).sum() / expected < high


def test_other_seeds_and_other_deal_numbers_give_other_deals() -> None:
    seeds = [*range(40), 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1]
    deals = [*range(20), 2**25, 2**26, 2**26 + 1, 2**57, 2**58 - 1]
    different = {tuple(order(seed, deal)) for seed in seeds for deal in deals}
    assert len(different) == len(seeds) * len(deals)
    again = {tuple(order(s, d, redeal=n)) for s in seeds for d in deals for n in range(1, 7)}
    assert len(again | different) == 7 * len(different)


def test_a_deal_is_the_same_in_a_batch_and_alone() -> None:
    one_seed = Batch(3, "classic", seed=2**63)
    one_seed.reset(np.array([True, False, True]))
    assert [one_seed.game(row).to_json() for row in range(3)] == [
        Game("classic", 2**63, deal).to_json() for deal in (3, 1, 5)
    ]
    seed_a_row = Batch(2, "classic", seed=[0, 2**64 - 1])
    for deal in range(3):
        assert [seed_a_row.game(row).to_json() for row in range(2)] == [
            Game("classic", seed, deal).to_json() for seed in (0, 2**64 - 1)
        ]
        seed_a_row.reset()


@pytest.mark.parametrize("seed", [0, 1, 2**63 - 1, 2**63, 2**64 - 1, np.uint64(2**64 - 1)])
def test_seeds_are_unsigned_64_bits(seed: int) -> None:
    assert unsigned(seed_bits(seed)) == seed == Game("classic", seed=seed).seed


@pytest.mark.parametrize("seed", [-1, 2**64, True, 1.5, "1", None])
def test_a_seed_out_of_range_is_refused(seed: object) -> None:
    with pytest.raises(SeedError, match=rf"^seed .*{seed}"):
        seed_bits(seed)  # type: ignore[arg-type]
    with pytest.raises(SeedError, match=r"^seed "):
        Game("classic", seed=seed)  # type: ignore[arg-type]


@pytest.mark.parametrize("deal", [-1, 2**58, True, 1.5, "1", None])
def test_a_deal_number_out_of_range_is_refused(deal: object) -> None:
    with pytest.raises(SeedError, match=rf"^deal .*{deal}"):
        check_deal(deal)  # type: ignore[arg-type]
    with pytest.raises(SeedError, match=r"^deal "):
        Game("classic", deal=deal)  # type: ignore[arg-type]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(golden(), indent=1) + "\n")
