"""Settings for all tests."""

import torch

torch.set_num_threads(1)  # the networks are tiny and the tests run side by side
