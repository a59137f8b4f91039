"""Networks that were trained in this process: their weights are no longer a data-free prior mean."""

from weakref import WeakSet

from torch import nn

TRAINED: WeakSet[nn.Module] = WeakSet()
"""What `fit` and plain training have trained."""
