"""Networks that come with pactrain."""

from pactrain.models.mlp import mlp

__all__ = ["mlp"]
