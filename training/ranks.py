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
    """This process among those that learn together; one alone is rank 0 of 1.

    Attributes:
        device: where what is sent to the others must be.
    """

    rank: int = 0
    size: int = 1
    device: str = "cpu"

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.size == 1:
            return tensor
        total = tensor.to(self.device, copy=True)
        dist.all_reduce(total)
        return total.to(tensor.device)

    def gather(self, tensor: Tensor) -> Tensor:
        """The tensors of all processes, of one shape, one after the other."""
        if self.size == 1:
            return tensor
        sent = tensor.to(self.device)
        gathered = [torch.empty_like(sent) for _ in range(self.size)]
        dist.all_gather(gathered, sent)
        return torch.cat(gathered).to(tensor.device)


@contextmanager
def joined(device: str) -> Iterator[Ranks]:
    """The processes that ``torchrun`` started together, or this one alone.

    Args:
        device: ``cpu`` or ``cuda``, where the networks are.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Ranks()
        return
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()
