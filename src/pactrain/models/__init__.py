"""Networks that come with pactrain."""

from pactrain.models.mlp import mlp
from pactrain.models.norms import to_group_norm

__all__ = ["mlp", "to_group_norm"]
