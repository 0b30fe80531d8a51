"""The policy and value network: weights shared over suits (DeepSets over four rows)."""

import torch
from torch import Tensor, nn

from conquian_env.actions import LAY
from conquian_env.cards import NUM_RANKS, NUM_SUITS
from conquian_env.observation import CARD_PIECES, CARDS_END, LAYOUT, OBSERVATION_SIZE

NUM_ANSWERS = LAY  # their ids come first
NUM_SCALARS = OBSERVATION_SIZE - CARDS_END
NO = -1e9  # logit of an action that is not legal; finite, so that gradients stay finite


class SuitLayer(nn.Module):
    """A residual layer: each suit's row sees itself and the mean of the four rows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, width)
        self.mean = nn.Linear(width, width, bias=False)

    def forward(self, rows: Tensor) -> Tensor:
        """[n, 4, width] to [n, 4, width]."""
        x = self.norm(rows)
        return rows + torch.relu(self.own(x) + self.mean(x.mean(1, keepdim=True)))


class SuitNetwork(nn.Module):
    """Policy and value, exactly equivariant under the 24 permutations of the suits.

    The ten card pieces of the observation become one row of 100 numbers for each suit; the other
    numbers are added to every row. Lays and discards are read off the rows, the three answers and
    the value off their mean and maximum.
    """

    scale: Tensor

    def __init__(self, width: int = 192, layers: int = 3) -> None:
        super().__init__()
        self.width, self.depth = width, layers
        self.register_buffer("scale", _scale(), persistent=False)
        self.cards = nn.Linear(CARD_PIECES * NUM_RANKS, width)
        self.scalars = nn.Linear(NUM_SCALARS, width)
        self.layers = nn.Sequential(*(SuitLayer(width) for _ in range(layers)))
        self.card_logits = nn.Linear(width, 2 * NUM_RANKS)
        self.pooled = nn.Linear(2 * width, width)
        self.answer_logits = nn.Linear(width, NUM_ANSWERS)
        self.value = nn.Linear(width, 1)
        for head in (self.card_logits, self.answer_logits):
            nn.init.orthogonal_(head.weight, 0.01)  # begin near the uniform policy
            nn.init.zeros_(head.bias)

    def forward(self, observation: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """One evaluation of n decisions.

        Args:
            observation: uint8 or float [n, 416].
            mask: bool [n, 83].

        Returns:
            log-probabilities float32 [n, 83], at most ``NO`` where not legal, and the value of the
            deal for the actor, float32 [n], in (-1, 1).
        """
        n = observation.shape[0]
        x = observation.to(self.value.weight.dtype)
        grid = x[:, :CARDS_END].reshape(n, CARD_PIECES, NUM_SUITS, NUM_RANKS)
        rows = grid.transpose(1, 2).reshape(n, NUM_SUITS, CARD_PIECES * NUM_RANKS)
        scalars = x[:, CARDS_END:] / self.scale
        rows = torch.relu(self.cards(rows) + self.scalars(scalars)[:, None])
        rows = self.layers(rows)
        pooled = torch.relu(self.pooled(torch.cat([rows.mean(1), rows.amax(1)], -1)))
        lay, discard = self.card_logits(rows).split(NUM_RANKS, -1)
        logits = torch.cat([self.answer_logits(pooled), lay.flatten(1), discard.flatten(1)], 1)
        logits = logits.float().masked_fill(~mask, NO)
        return torch.log_softmax(logits, -1), torch.tanh(self.value(pooled).float()).squeeze(-1)


def _scale() -> Tensor:
    """Counts of cards are read in tens."""
    scale = torch.ones(NUM_SCALARS)
    for name in ("stock_left", "own_hand_size", "own_table_size", "other_hand_size",
                 "other_table_size"):  # fmt: skip
        scale[LAYOUT[name].start - CARDS_END] = 10.0
    return scale
