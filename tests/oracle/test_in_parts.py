"""The certificates of trainings that went part by part, from the weights that were judged, in float64; the oracle's own copies of the rules of docs/record.md."""

import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

import pactrain
import pactrain.training.train as training
from tests.oracle.cases import digits, mlp
from tests.oracle.complaints import digest, spent
from tests.oracle.formulas import UNTAKEN, VALUES, Array, counted, dyadic, kl_terms
from tests.oracle.networks import Network, Rows, losses_of, network_of, stream
from tests.oracle.runs import rows_of, state_of
from tests.oracle.statements import State

N, SEED, DELTA = 330, 4, 0.1
DRAWS = 400


@dataclass(frozen=True)
class Seen:
    """A run, and what its posterior was each time when it was judged."""

    record: dict[str, Any]
    states: list[State]
    initial: Array
    network: Network
    rows: Rows  # in the order of the blocks


def run(certificate: str) -> Seen:
    """Train on digits, with a copy of the posterior at each block."""
    module: Any = training
    trainer, made, states = module.Trainer, list[Any](), list[State]()

    def watched(*args: Any, **kwargs: Any) -> Any:
        made.append(trainer(*args, **kwargs))
        return made[-1]

    def look(event: Any) -> None:
        if event.phase == "block":
            states.append(state_of(made[-1].posterior))

    model, data = mlp(64, 16, 10), digits(0, N)
    network = network_of(model.double(), "layer")
    initial = np.concatenate([model.get_parameter(name).detach().numpy().reshape(-1) for name in network.names])
    model.float()
    with patch.object(module, "Trainer", watched):
        asked: dict[str, Any] = {"certificate": certificate, "seed": SEED, "delta": DELTA, "budget": "20 epochs"}
        result = pactrain.fit(model, data, callbacks=[look], **asked)
    order = torch.randperm(N, generator=stream(SEED, "prior data"))
    return Seen(
        result.certificate.to_dict(),
        states,
        initial,
        network_of(model.double(), "layer"),
        rows_of(data, "").part(order),
    )


def errors(seen: Seen, weights: Array, rows: Rows) -> Array:
    """Of each row 1 if the network takes it for another class."""
    found = losses_of(seen.network.answers(weights, rows), rows.target).error
    assert found is not None
    return found


def check_record(seen: Seen, n: int, event: str) -> dict[str, Any]:
    """The one statement that there is, after all that is not of its own kind has been checked."""
    record = seen.record
    (s,) = record["statements"]
    assert (record["n"], record["delta"], record["seed"]) == (n, DELTA, SEED)
    assert record["budget"] == {event: DELTA}
    assert spent([s]) == pytest.approx(DELTA)
    assert record["digest"] == digest(record)
    assert (s["quantity"], s["bound"]) == ("0-1 error", event)
    shares = np.unique(seen.rows.target.numpy(), return_counts=True)[1] / N
    assert s["constant_answer"] == pytest.approx(1 - shares.max())
    assert s["label"] == ("certified" if s["value"] < s["constant_answer"] else "heuristic")
    assert s["value"] == pytest.approx(VALUES[event](s["inputs"]), rel=1e-9)
    return dict(s)


def test_each_block_of_a_progressive_certificate_judges_the_network_before_it() -> None:
    seen = run("progressive")
    half = N // 2
    ends = [round(0.4 * N), half, *(half + (N - half) * i // 10 for i in range(1, 11))]
    s = check_record(seen, N - half, "progressive")
    assert s["label"] == "certified"
    found = [tuple(map(int, part.split(":"))) for part in s["inputs"]["blocks"].split(" ")]
    blocks = [seen.rows.part(slice(a, b)) for a, b in pairwise(ends)]
    judged = [(len(rows), int(errors(seen, at.mean, rows).sum())) for at, rows in zip(seen.states, blocks, strict=True)]
    assert found == judged
    assert all(not np.array_equal(a.mean, b.mean) for a, b in pairwise(seen.states))


def test_each_level_of_a_recursive_certificate_has_its_own_prior_rows_and_errors() -> None:
    seen = run("recursive")
    s = check_record(seen, N, "recursive")
    assert s["inputs"]["delta_draws"] == pytest.approx(0.2 * DELTA)
    levels = [text.split(";") for text in s["inputs"]["levels"].split(" / ")]
    starts = [0, *(N >> i for i in (5, 4, 3, 2, 1))]
    assert [int(level[0]) for level in levels] == [N - start for start in starts]
    for t, (now, level, start) in enumerate(zip(seen.states, levels, starts, strict=True)):
        rows, (kl, nats) = seen.rows.part(slice(start, None)), map(float, level[1:3])
        if t:
            before = seen.states[t - 1]
            expected = float(kl_terms(now.mean - before.mean, now.log_std, before.log_std).sum())
            assert nats == 0
        else:
            own, shift = now, now.mean - seen.initial

            def at(groups: Array, own: State = own, shift: Array = shift) -> float:
                return float(kl_terms(shift, own.log_std, groups[seen.network.group_of]).sum())

            prior, price = dyadic(now.prior_log_std, seen.network.inputs, at)
            expected = at(prior)
            assert nats == pytest.approx(price + UNTAKEN)
        assert kl == pytest.approx(expected, rel=1e-4, abs=1e-4)
        means = [sum(i * c for i, c in counted(text).items()) / float(level[3]) for text in level[5:]]
        drawn = [_drawn(seen, state, rows) for state in seen.states[max(0, t - 1) : t + 1]]
        h = drawn[-1]
        wanted = [1 - (drawn[0] * (1 - h)), h, h * (1 - drawn[0])] if t else [h]
        assert means == pytest.approx([float(x.mean()) for x in wanted], abs=0.03)


def _drawn(seen: Seen, state: State, rows: Rows) -> Array:
    """Of each row the share of networks drawn from a posterior that are wrong; those of two posteriors are independent."""
    source = np.random.default_rng(zlib.crc32(state.mean.tobytes()))
    noise = source.standard_normal((DRAWS, len(state.mean)))
    shares: Array = np.mean([errors(seen, state.mean + np.exp(state.log_std) * z, rows) for z in noise], axis=0)
    return shares
