"""The number of threads follows from the size of the work, yields to the user's own, and is put back."""

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pactrain
from pactrain.models.mlp import mlp
from pactrain.problem import threads
from pactrain.problem.losses import CallableLoss
from pactrain.problem.named_losses import LOSSES
from pactrain.problem.threads import FLOPS_PER_WEIGHT, threads_for, work_in

LOSS = LOSSES["cross_entropy"]
START = 4


@pytest.fixture(autouse=True)
def four_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine on which torch starts with four threads, whatever this one has."""
    for name in (*threads.CHOSEN_BY_USER, "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_untouched", lambda: {START})
    before = torch.get_num_threads()
    torch.set_num_threads(START)
    yield
    torch.set_num_threads(before)


def rows(n: int, inputs: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(0)
    return torch.randn(n, inputs, generator=source), torch.arange(n) % 3


def chosen(model: nn.Module, batch: Any) -> int:
    with threads_for(model, batch, LOSS) as number:
        assert torch.get_num_threads() == number
    return number


def test_small_work_has_one_thread_and_large_work_more() -> None:
    assert chosen(mlp(64, 10), rows(64, 64)) == 1
    assert chosen(mlp(784, 10, widths=(600,) * 3), rows(1000, 784)) == 2
    assert chosen(mlp(784, 10, widths=(1000, 1000)), rows(2000, 784)) == START
    assert chosen(mlp(3072, 10, widths=(3072, 2048)), rows(2, 3072)) == 2, "many weights are work, too"
    assert torch.get_num_threads() == START


def test_work_counts_products_convolutions_and_weights() -> None:
    linear = nn.Linear(5, 3)
    assert work_in(linear, rows(7, 5), LOSS) == 2 * 7 * 5 * 3 + FLOPS_PER_WEIGHT * 18
    conv = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.Flatten(), nn.AdaptiveAvgPool1d(3))
    images = (torch.ones(2, 1, 6, 6), torch.zeros(2, dtype=torch.long))
    assert work_in(conv, images, LOSS) == 2 * 2 * 4 * 4 * 4 * 9 + FLOPS_PER_WEIGHT * 36


def test_sparse_products_count_what_they_hold() -> None:
    x = torch.zeros(10, 10)
    x[0, 0] = 1.0
    network = nn.Linear(10, 3, bias=False)

    def product(_: Any, batch: Tensor) -> Tensor:
        return (batch @ network.weight.T).sum(1)

    full, sparse = (
        work_in(network, form, CallableLoss.of(product)) - FLOPS_PER_WEIGHT * 30 for form in (x, x.to_sparse_coo())
    )
    assert full == 2 * 10 * 10 * 3
    assert sparse == pytest.approx(full / 100)


def test_counting_leaves_the_network_and_the_random_numbers_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 3)).train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    state = torch.get_rng_state()
    work_in(model, rows(8, 4), LOSS)
    assert all(m.training for m in model.modules())
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())


def test_lazy_networks_stay_lazy_and_wrong_shapes_are_left_to_others() -> None:
    lazy = nn.LazyLinear(3)
    assert chosen(lazy, rows(4, 5)) == 1
    assert lazy.has_uninitialized_params()
    assert chosen(nn.Linear(9, 3), rows(4, 5)) == 1


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_the_environment_wins(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, str(START))
    assert chosen(mlp(64, 10), rows(64, 64)) == START


def test_a_number_set_by_the_user_wins() -> None:
    torch.set_num_threads(3)
    assert chosen(mlp(64, 10), rows(64, 64)) == 3
    assert torch.get_num_threads() == 3


def test_processes_of_one_job_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert chosen(mlp(784, 10, widths=(1000, 1000)), rows(2000, 784)) == 2


def test_an_inner_block_keeps_the_number_of_the_outer() -> None:
    with threads_for(mlp(784, 10, widths=(1000, 1000)), rows(2000, 784), LOSS) as outer:
        assert chosen(mlp(64, 10), rows(64, 64)) == outer == START
        assert torch.get_num_threads() == START
    assert chosen(mlp(64, 10), rows(64, 64)) == 1


def test_restored_after_an_exception() -> None:
    def fail() -> None:
        with threads_for(mlp(64, 10), rows(64, 64), LOSS) as number:
            raise KeyError(number)

    with pytest.raises(KeyError, match="1"):
        fail()
    assert torch.get_num_threads() == START
    assert chosen(mlp(64, 10), rows(64, 64)) == 1, "no block is left open"


def test_fit_and_certify_use_one_thread_for_small_networks_and_put_the_number_back() -> None:
    seen: list[int] = []
    data = rows(60, 4)
    result = pactrain.fit(
        nn.Linear(4, 3), data, budget="2 epochs", callbacks=[lambda _: seen.append(torch.get_num_threads())]
    )
    assert set(seen) == {1}
    assert result.config["threads"] == 1
    assert torch.get_num_threads() == START
    seen.clear()
    pactrain.certify(result.posterior, data, draws=60, progress=lambda _: seen.append(torch.get_num_threads()))
    assert set(seen) == {1}
    assert torch.get_num_threads() == START


def test_fit_puts_the_number_back_when_it_fails() -> None:
    def fail(_: object) -> None:
        assert torch.get_num_threads() == 1
        raise KeyError

    with pytest.raises(KeyError):
        pactrain.fit(nn.Linear(4, 3), rows(60, 4), budget="2 epochs", callbacks=[fail])
    assert torch.get_num_threads() == START


def test_the_default_of_this_machine_is_known() -> None:
    names = (*threads.CHOSEN_BY_USER, "LOCAL_WORLD_SIZE")
    script = (
        "import torch; from pactrain.problem import threads; assert torch.get_num_threads() in threads._untouched()"
    )
    environment = {k: v for k, v in os.environ.items() if k not in names}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


@pytest.mark.parametrize(("given", "expected"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_the_command_line_lets_threads_sleep_before_torch_is_loaded(given: dict[str, str], expected: str) -> None:
    script = """
import os, sys
from pactrain.cli.main import main
assert "torch" not in sys.modules
assert os.environ.get("OMP_WAIT_POLICY") != "PASSIVE", "importing changes nothing"
main(["--version"])
print(os.environ["OMP_WAIT_POLICY"])
"""
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | given
    run = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    assert run.stdout.splitlines()[-1] == expected
