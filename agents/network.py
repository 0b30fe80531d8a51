"""Policy and value networks: one that shares its weights over the suits, and a plain one."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from agents.inputs import (
    ABSORBED,
    HOPES,
    LINKS,
    LOG_STEPS,
    NEAR,
    NEAREST,
    NUM_NUMBERS,
    WAY_PIECES,
    input_size,
    number_size,
    row_size,
)
from conquian_env.actions import LAY, NUM_ACTIONS
from conquian_env.cards import NUM_CARDS, NUM_RANKS, NUM_SUITS
from conquian_env.errors import OptionError, shown
from conquian_env.observation import CARD_PIECES, CARDS_END, HIDDEN_PIECES, LAYOUT

NUM_ANSWERS = LAY  # their ids come first
NO = -1e9  # logit of an action that is not legal; finite, so that gradients stay finite
HIDDEN_ROW = len(HIDDEN_PIECES) * NUM_RANKS
COUNTS = ("stock_left", "own_hand_size", "own_table_size", "other_hand_size", "other_table_size")


class Output(NamedTuple):
    """What a network makes of n decisions.

    Attributes:
        log_probabilities: float32 [n, 83], at most ``NO`` where not legal.
        value: float32 [n] in (-1, 1), what the deal is worth to the actor.
        other_hand: float32 [n, 40], log odds that the other seat holds each card; None where
            the network has no such head.
    """

    log_probabilities: Tensor
    value: Tensor
    other_hand: Tensor | None


@dataclass(frozen=True)
class NetworkConfig:
    """What a network is made from.

    Attributes:
        kind: ``suit`` or ``plain``.
        width: features of a layer; in ``suit`` each of the four rows has so many.
        layers: after the inputs, of ``width`` features each.
        ways: whether the network is told of the ways to a final table (agents/inputs.py).
        other_hand: whether a head says what the other seat holds, to learn from.
    """

    kind: Literal["suit", "plain"] = "suit"
    width: int = 128
    layers: int = 3
    ways: bool = True
    other_hand: bool = False

    # Read by pydantic where this is part of a run's configuration: unknown keys fail.
    __pydantic_config__ = {"extra": "forbid", "strict": True}  # noqa: RUF012

    def __post_init__(self) -> None:
        """Refuse what no network can be made from; the message names the field."""
        if self.kind not in ("suit", "plain"):
            raise OptionError(f"kind must be suit or plain, not {shown(self.kind)}")
        for name, most in (("width", 4096), ("layers", 64)):
            size = getattr(self, name)
            if type(size) is not int or not 1 <= size <= most:
                raise OptionError(f"{name} must be from 1 to {most}, not {shown(size)}")
        for name in ("ways", "other_hand"):
            if type(getattr(self, name)) is not bool:
                raise OptionError(f"{name} must be true or false, not {shown(getattr(self, name))}")


class _SuitStep(torch.autograd.Function):
    """What ``SuitLayer`` computes; with gradients by hand a third faster than by autograd."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, own: Tensor, mean: Tensor, bias: Tensor) -> Tensor:
        pooled = _mean(rows)
        active = nn.functional.linear(rows, own)
        active.add_(nn.functional.linear(pooled, mean, bias)).relu_()
        ctx.save_for_backward(rows, pooled, active, own, mean)
        return rows + active

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        rows, pooled, active, own, mean = ctx.saved_tensors
        (grad,) = grads
        through = torch.ops.aten.threshold_backward(grad, active, 0)
        shared = _sum(through)
        flat = through.flatten(0, 1)
        to_rows = torch.addmm(grad.flatten(0, 1), flat, own).view_as(rows)
        to_rows.add_(shared @ (mean / NUM_SUITS))
        ones = shared.new_ones(1, len(shared))
        return to_rows, flat.T @ rows.flatten(0, 1), shared.T @ pooled, (ones @ shared)[0]


class SuitLayer(nn.Module):
    """A residual layer: each suit's row sees itself and the mean of the four rows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.own = nn.Linear(width, width, bias=False)
        self.mean = nn.Linear(width, width)

    def forward(self, rows: Tensor) -> Tensor:
        """[4, n, width] to [4, n, width]."""
        weights = self.own.weight, self.mean.weight, self.mean.bias
        cast = (one.to(rows.dtype) for one in weights)
        out: Tensor = _SuitStep.apply(rows, *cast)  # type: ignore[no-untyped-call]
        return out


class SuitRows(nn.Module):
    """Inputs to a row of features a suit, equivariant under the permutations of the suits.

    Rows come first, so that what is said of each is one multiplication of [4 n, width]. There is
    no normalisation: three layers learn as well without, and it costs a quarter of the time.
    """

    card_scale: Tensor
    number_scale: Tensor

    def __init__(self, config: NetworkConfig, hidden: bool = False) -> None:
        super().__init__()
        width = config.width
        self.row, hidden_row = row_size(config.ways), HIDDEN_ROW if hidden else 0
        card_scale, number_scale = _scales(config.ways)
        hidden_scale = torch.ones(hidden_row)
        hidden_scale[NUM_RANKS : 2 * NUM_RANKS] = 1 / NUM_RANKS  # how soon a card will be turned
        self.register_buffer("card_scale", torch.cat([card_scale, hidden_scale]), persistent=False)
        self.register_buffer("number_scale", number_scale, persistent=False)
        self.cards = nn.Linear(self.row + hidden_row, width, bias=False)
        self.numbers = nn.Linear(number_size(config.ways), width)
        self.layers = nn.Sequential(*(SuitLayer(width) for _ in range(config.layers)))

    def forward(self, inputs: Tensor, hidden: Tensor | None, dtype: torch.dtype) -> Tensor:
        """uint8 [n, inputs] (and uint8 [n, 120]) to ``dtype`` [4, n, width]."""
        n = inputs.shape[0]
        rows = inputs[:, : NUM_SUITS * self.row].reshape(n, NUM_SUITS, self.row)
        if hidden is not None:
            grid = hidden.reshape(n, len(HIDDEN_PIECES), NUM_SUITS, NUM_RANKS)
            rows = torch.cat([rows, grid.transpose(1, 2).reshape(n, NUM_SUITS, HIDDEN_ROW)], 2)
        rows = rows.transpose(0, 1).to(dtype, memory_format=torch.contiguous_format)
        numbers = inputs[:, NUM_SUITS * self.row :].to(dtype)
        shared = _linear(self.numbers, numbers, self.number_scale)
        features: Tensor = self.layers(
            _linear(self.cards, rows, self.card_scale).add_(shared).relu_()
        )
        return features


class SuitNetwork(nn.Module):
    """Policy and value, exactly equivariant under the 24 permutations of the suits (DeepSets).

    Lays, discards and the other hand are read off the row of their suit, the three answers and the
    value off the mean of the rows.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config, width = config, config.width
        self.rows = SuitRows(config)
        self.card_logits = nn.Linear(width, 2 * NUM_RANKS)
        self.pooled = nn.Linear(width, width)
        self.answer_logits = nn.Linear(width, NUM_ANSWERS)
        self.value = nn.Linear(width, 1)
        self.other_hand = nn.Linear(width, NUM_RANKS) if config.other_hand else None
        _begin_uniform(self.card_logits, self.answer_logits)

    def forward(self, inputs: Tensor, mask: Tensor, dtype: torch.dtype = torch.float32) -> Output:
        """One evaluation of n decisions, computed in ``dtype``.

        Args:
            inputs: uint8 [n, inputs], see ``inputs.network_inputs``.
            mask: bool [n, 83].
            dtype: float32 or bfloat16.
        """
        rows = self.rows(inputs, None, dtype)
        pooled = _linear(self.pooled, _mean(rows)).relu_()
        lay, discard = torch.split(_linear(self.card_logits, rows).transpose(0, 1), NUM_RANKS, -1)
        logits = [_linear(self.answer_logits, pooled), lay.flatten(1), discard.flatten(1)]
        held = None
        if self.other_hand is not None:
            held = _linear(self.other_hand, rows).transpose(0, 1).flatten(1).float()
        return Output(_masked(torch.cat(logits, 1), mask), _value(self.value, pooled), held)


class PlainLayer(nn.Linear):
    """A fully connected layer."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """[n, width] to [n, width]."""
        return _linear(self, x).relu_()


class PlainNetwork(nn.Module):
    """A multilayer perceptron over all inputs at once, for comparison."""

    scale: Tensor

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config, width = config, config.width
        card_scale, number_scale = _scales(config.ways)
        scale = torch.cat([card_scale.repeat(NUM_SUITS), number_scale])
        self.register_buffer("scale", scale, persistent=False)
        self.first = nn.Linear(input_size(config.ways), width)
        self.layers = nn.Sequential(*(PlainLayer(width) for _ in range(config.layers - 1)))
        self.logits = nn.Linear(width, NUM_ACTIONS)
        self.value = nn.Linear(width, 1)
        self.other_hand = nn.Linear(width, NUM_CARDS) if config.other_hand else None
        _begin_uniform(self.logits)

    def forward(self, inputs: Tensor, mask: Tensor, dtype: torch.dtype = torch.float32) -> Output:
        """As ``SuitNetwork.forward``."""
        x = _linear(self.first, inputs.to(dtype), self.scale).relu_()
        for layer in self.layers:
            x = layer(x)
        held = None if self.other_hand is None else _linear(self.other_hand, x).float()
        return Output(_masked(_linear(self.logits, x), mask), _value(self.value, x), held)


class Critic(nn.Module):
    """The value of a deal with all cards open, for the learner alone; always over suit rows."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.rows = SuitRows(config, hidden=True)
        self.pooled = nn.Linear(width, width)
        self.value = nn.Linear(width, 1)

    def forward(self, inputs: Tensor, hidden: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """uint8 [n, inputs] and uint8 [n, 120] to float32 [n] in (-1, 1), for the actor."""
        pooled = _linear(self.pooled, _mean(self.rows(inputs, hidden, dtype))).relu_()
        return _value(self.value, pooled)


Network = SuitNetwork | PlainNetwork


def make_network(config: NetworkConfig) -> Network:
    """A new network, its weights drawn from torch's global generator."""
    return SuitNetwork(config) if config.kind == "suit" else PlainNetwork(config)


def _linear(layer: nn.Linear, x: Tensor, scale: Tensor | None = None) -> Tensor:
    """``layer`` in the dtype of ``x``, of inputs multiplied by ``scale``."""
    weight = layer.weight if scale is None else layer.weight * scale
    bias = None if layer.bias is None else layer.bias.to(x.dtype)
    return nn.functional.linear(x, weight.to(x.dtype), bias)


def _masked(logits: Tensor, mask: Tensor) -> Tensor:
    return torch.log_softmax(logits.float().masked_fill(~mask, NO), -1)


def _begin_uniform(*heads: nn.Linear) -> None:
    """Begin near the uniform policy."""
    for head in heads:
        nn.init.orthogonal_(head.weight, 0.01)
        nn.init.zeros_(head.bias)


def _scales(ways: bool) -> tuple[Tensor, Tensor]:
    """What the inputs of a row, and those that belong to no card, are multiplied by."""
    pieces = torch.ones(CARD_PIECES + WAY_PIECES)
    told = pieces[CARD_PIECES:]
    told[:] = 1 / (2 * LOG_STEPS)
    told[HOPES:NEAR] = 1 / (4 * LOG_STEPS)
    told[NEAR:LINKS] = 1 / NEAREST
    told[ABSORBED] = 1.0
    numbers = torch.full((number_size(ways),), 1 / (2 * LOG_STEPS))
    numbers[:NUM_NUMBERS] = 1.0
    for name in COUNTS:  # of cards, in tens
        numbers[LAYOUT[name].start - CARDS_END] = 1 / NUM_RANKS
    return pieces.repeat_interleave(NUM_RANKS)[: row_size(ways)], numbers


def _sum(rows: Tensor) -> Tensor:
    """Over the suits, [4, n, width] to [n, width]; four times as fast as ``rows.sum(0)``."""
    one, two, three, four = rows.unbind(0)
    return (one + two).add_(three).add_(four)


def _mean(rows: Tensor) -> Tensor:
    return _sum(rows) / NUM_SUITS


def _value(head: nn.Linear, features: Tensor) -> Tensor:
    """[n, width] to float32 [n] in (-1, 1)."""
    return torch.tanh(_linear(head, features).float()).squeeze(-1)
