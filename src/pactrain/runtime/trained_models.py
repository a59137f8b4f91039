"""Networks that were trained in this process: their weights are no data-free prior mean any more."""

from weakref import WeakSet

from torch import nn

TRAINED: WeakSet[nn.Module] = WeakSet()
"""What `fit` and plain training have trained."""
