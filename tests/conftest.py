"""Settings for every test."""

import torch

# Small networks on shared cores: threads that wait for each other cost more than they bring.
torch.set_num_threads(1)
