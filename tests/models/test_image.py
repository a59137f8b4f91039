"""Networks for images: their weights counted by hand, their options, and what a certificate says of them."""

import dataclasses
from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from torch import nn

from pactrain import Posterior, certify
from pactrain.certification.caveats import model_caveats
from pactrain.data.encoder import Encoder
from pactrain.models import densenet, resnet, vgg
from pactrain.models.image import BUILDERS, image_model
from pactrain.models.named import chosen_model, make_model
from pactrain.models.norms import Norm
from pactrain.problem.module_modes import batch_norms
from pactrain.runtime.errors import PactrainError
from pactrain.runtime.network_names import IMAGE_MODELS


def conv(a: int, b: int, size: int = 3, *, bias: bool) -> int:
    return size * size * a * b + (b if bias else 0)


def chain(widths: Sequence[int], *, norm: int) -> int:
    """3×3 convolutions with bias, one after the other, each with `norm` weights a channel for its normalisation."""
    return sum(conv(a, b, bias=True) + norm * b for a, b in pairwise(widths))


def count_cnn(widths: Sequence[int], side: int) -> int:
    dense = [widths[-1] * side * side, 1024, 512, 10]
    return chain(widths, norm=0) + sum((a + 1) * b for a, b in pairwise(dense))


def count_resnet(depths: Sequence[int]) -> int:
    total, before = conv(3, 64, bias=False) + 2 * 64, 64
    for stage, depth in enumerate(depths):
        after = 64 * 2**stage
        total += conv(before, after, bias=False) + (2 * depth - 1) * conv(after, after, bias=False) + 4 * depth * after
        total += conv(before, after, 1, bias=False) + 2 * after if before != after else 0
        before = after
    return total + 513 * 10


def count_densenet(depths: Sequence[int], growth: int) -> int:
    total, now = conv(3, 2 * growth, bias=False), 2 * growth
    for block, depth in enumerate(depths):
        if block:
            total += 2 * now + now * (now // 2)
            now //= 2
        for _ in range(depth):
            total += 2 * now + now * 4 * growth + 8 * growth + conv(4 * growth, growth, bias=False)
            now += growth
    return total + 2 * now + (now + 1) * 10


VGG13 = [3, 64, 64, 128, 128, 256, 256, 512, 512, 512, 512]
VGG19 = [3, 64, 64, 128, 128, *[256] * 4, *[512] * 8]

COUNTS = {
    "cnn5": (count_cnn([3, 32, 64], 8), 4_744_650),
    "vgg4": (chain([3, 64, 128, 256], norm=2) + (256 * 16 + 1) * 10, 412_682),
    "cnn9": (count_cnn([3, 32, 64, 128, 128, 256, 256], 4), 5_851_338),
    "cnn13": (count_cnn([3, 32, 64, 128, 128, *[256] * 3, *[512] * 3], 2), 10_244_042),
    "cnn15": (count_cnn([3, 32, 64, 128, 128, *[256] * 4, *[512] * 4], 2), 13_193_930),
    "vgg13": (chain(VGG13, norm=2) + 513 * 10, 9_416_010),
    "vgg19": (chain(VGG19, norm=2) + 513 * 10, 20_040_522),
    "resnet18": (count_resnet([2, 2, 2, 2]), 11_173_962),
    "resnet34": (count_resnet([3, 4, 6, 3]), 21_282_122),
    "densenet121": (count_densenet([6, 12, 24, 16], 32), 6_956_298),
}


def weights(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_full_networks_have_the_weights_that_a_count_by_hand_gives(name: str) -> None:
    by_hand, published = COUNTS[name]
    with torch.device("meta"):
        kind, layers = IMAGE_MODELS[name]
        made = BUILDERS[kind](layers)
    assert weights(made) == by_hand == published


@pytest.mark.parametrize("name", IMAGE_MODELS)
def test_narrow_networks_answer_for_every_image(name: str) -> None:
    norm = "" if name.startswith("cnn") else ",norm=group"
    model = make_model(f"{name}:width=.125{norm}", 3072, 7, 1)
    rows = torch.randn(2, 3072, generator=torch.Generator().manual_seed(0))
    out = model.eval()(rows)
    assert out.shape == (2, 7)
    assert torch.isfinite(out).all()
    assert not torch.equal(out[0], out[1])
    assert torch.equal(out, model(rows.reshape(2, 3, 32, 32)))
    assert weights(model) < 0.05 * COUNTS[name][0]
    assert not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())
    again = make_model(f"{name}:width=.125{norm}", 3072, 7, 1).state_dict()
    assert all(torch.equal(again[k], v) for k, v in model.state_dict().items())
    assert not any(k.startswith("images") for k in again)  # the keys are those of the network alone
    if norm:
        assert batch_norms(make_model(f"{name}:width=.125", 3072, 7, 1))


def test_images_of_digits_get_a_frame() -> None:
    model = image_model("cnn9:width=.1", 784, 10)
    rows = torch.rand(3, 784)
    framed = torch.zeros(3, 1, 32, 32)
    framed[:, :, 2:30, 2:30] = rows.reshape(3, 1, 28, 28)
    assert torch.allclose(model(rows), nn.Sequential(*list(model.children())[1:])(framed), atol=1e-6)


def test_only_the_network_with_group_norm_is_certified() -> None:
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(6, 3, 32, 32, generator=generator), torch.arange(6) % 2
    norms: tuple[Norm, Norm] = ("batch", "group")
    for norm in norms:
        found = certify(Posterior(vgg(classes=2, width=0.03, norm=norm)), data, draws=2)
        assert bool(found.caveats) == (norm == "batch")
        assert ("BatchNorm" in str(found)) == (norm == "batch")
        for make in (resnet, densenet):
            assert bool(model_caveats(make(classes=2, width=0.03, norm=norm))) == (norm == "batch")


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("vgg13:depth=3", 3072, "depth=3.*options are width"),
        ("cnn9:norm=group", 3072, "no normalisation"),
        ("resnet18:width=0", 3072, "width must be above 0"),
        ("resnet18", 64 * 64 * 3, "no square images"),
        ("vgg16", 3072, "vgg13, vgg19"),
    ],
)
def test_networks_that_cannot_be_made_say_why(name: str, inputs: int, message: str) -> None:
    with pytest.raises(PactrainError, match=message):
        make_model(name, inputs, 10, 0)


def test_a_network_for_images_is_not_for_a_graph() -> None:
    rows = Encoder("label", "classification", (), (), (), ("a", "b"), 0.0, 1.0)
    assert chosen_model("vgg13:width=.5", rows) == "vgg13:width=.5"
    with pytest.raises(PactrainError, match="does not see edges"):
        chosen_model("vgg13:width=.5", dataclasses.replace(rows, node_features=3))


@pytest.mark.parametrize(
    ("name", "inputs", "framed"), [("cnn5", 64, 8), ("cnn5", 784, 28), ("vgg4", 784, 32), ("vgg4", 3 * 81, 16)]
)
def test_small_networks_take_small_images(name: str, inputs: int, framed: int) -> None:
    model = image_model(f"{name}:width=.25" + ",norm=group" * (name == "vgg4"), inputs, 10).eval()
    rows = torch.rand(3, inputs)
    assert model[0](rows).shape[2:] == (framed, framed)
    assert model(rows).shape == (3, 10)
