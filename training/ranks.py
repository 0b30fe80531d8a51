"""Several processes that learn one policy: ``torchrun --nproc-per-node 2 -m training.train …``.

Every process plays a part of the games and works out its part of each gradient step. What is drawn
depends on the numbers of the games, never on who plays them, so the number of processes changes
nothing but the order in which sums are rounded.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class Ranks:
    """This process among those that learn together; one alone is rank 0 of 1."""

    rank: int = 0
    size: int = 1

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """The tensors of all processes by rank, of one shape."""
        if self.size == 1:
            return [tensor]
        gathered = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(gathered, tensor)
        return gathered


@contextmanager
def joined() -> Iterator[Ranks]:
    """The processes that ``torchrun`` started together, or this one alone."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Ranks()
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()
