"""Networks that come with pactrain."""

from pactrain.models.cnn import cnn
from pactrain.models.densenet import densenet
from pactrain.models.mlp import mlp
from pactrain.models.norms import to_group_norm
from pactrain.models.resnet import resnet
from pactrain.models.vgg import vgg

__all__ = ["cnn", "densenet", "mlp", "resnet", "to_group_norm", "vgg"]
