"""Signs in data and networks that a certificate's assumptions do not hold."""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pactrain import Posterior, certify
from pactrain.certification.data_checks import data_caveats, digest_data, digest_tensors, shared_rows
from pactrain.models import to_group_norm
from pactrain.problem.batches import LoaderBatches, TensorBatches
from tests.zoo import build, rows

CPU = torch.device("cpu")


class Noisy(Dataset[tuple[Tensor, Tensor]]):
    """Examples that are augmented anew each time they are read."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if index >= 40:
            raise IndexError
        x, y = rows(40)
        return x[index] + 0.1 * torch.randn(6), y[index]


def test_augmentation_is_noticed_and_shuffling_is_not() -> None:
    shuffled = LoaderBatches(DataLoader(TensorDataset(*rows(40)), batch_size=8, shuffle=True), CPU)
    assert data_caveats(shuffled) == []
    noisy = LoaderBatches(DataLoader(Noisy(), batch_size=8), CPU)
    assert "augmentation" in data_caveats(noisy)[0].reason
    certificate = certify(Posterior(build("mlp")), DataLoader(Noisy(), batch_size=8), draws=2)
    assert "certified" not in {s.label for s in certificate.statements}


def test_graphs_are_noticed() -> None:
    class Graph:
        edge_index = torch.zeros(2, 1)

    for batch in (Graph(), {"edge_index": torch.zeros(2, 1)}):
        assert "not independent" in data_caveats(LoaderBatches([batch], CPU))[0].reason


def test_fingerprints() -> None:
    x, y = rows(20)
    a, b = TensorBatches((x, y), 5), TensorBatches((x.clone(), y.clone()), 7)
    assert digest_data(a) == digest_data(b)
    x2 = x.clone()
    x2[3, 2] += 1e-6
    assert digest_data(a) != digest_data(TensorBatches((x2, y), 5))
    assert digest_tensors([x]) != digest_tensors([x.double()])
    assert shared_rows(a, TensorBatches((x2[2:5], y[2:5]), 3)) == 2


def test_group_norm_takes_the_place_of_batch_norm() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 12, 3), nn.BatchNorm2d(12), nn.ReLU(), nn.Sequential(nn.BatchNorm2d(12, affine=False))
    )
    scale = model.get_parameter("1.weight")
    assert to_group_norm(model) is model
    assert isinstance(model[1], nn.GroupNorm)
    assert model[1].weight is scale
    assert isinstance(model.get_submodule("3.0"), nn.GroupNorm)
    assert model(torch.ones(2, 3, 5, 5)).shape == (2, 12, 3, 3)
    single = to_group_norm(nn.Sequential(nn.BatchNorm1d(8)))
    assert float(single(torch.randn(4, 8)).detach().abs().min()) > 0  # a number alone in its group would become 0
    converted = Posterior(to_group_norm(build("batchnorm")))
    assert not certify(converted, rows(), draws=2).caveats
