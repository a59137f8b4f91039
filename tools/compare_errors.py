"""Cases for `compare_checkouts.py`: what is said to mistakes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from compare_cases import Keywords, dicts, net, numbers, raw, rows, trained
from compare_commands import SHORT, command, flowers, train
from compare_values import case
from torch import nn

import pactrain

X, Y = rows()


def error(name: str, action: Callable[[], Any]) -> None:
    """A case that is meant to raise."""
    case(f"error: {name}", fails=True)(action)


def with_nan() -> Any:
    """Inputs with a gap."""
    x = X.clone()
    x[7, 2] = float("nan")
    return x, Y


error("NaN in the inputs", lambda: trained(data=with_nan()))
error("infinity in the targets", lambda: trained(net(6, 1), (X, torch.full((96,), float("inf")))))
error("different numbers of rows", lambda: trained(data=(X, Y[:50])))
error("no rows", lambda: trained(data=(X[:0], Y[:0])))
error("inputs of another width", lambda: trained(net(5)))
error("outputs of another shape", lambda: trained(net(6, 2), numbers()))
error("too few outputs for the classes", lambda: trained(net(6, 2)))
error("test rows of another width", lambda: trained(test=(X[:, :5], Y)))
error("an unknown loss", lambda: trained(loss="zero_one"))
error("a quantile that is none", lambda: trained(net(6, 1), numbers(), loss="quantile:2"))
error("a loss of torch", lambda: trained(loss=F.mse_loss))
error("a loss that is one number", lambda: trained(loss=lambda predict, b: F.cross_entropy(predict(b[0]), b[1])))
error("a delta of 0", lambda: trained(delta=0.0))
error("an unknown bound", lambda: trained(bound="vapnik"))
error("an unknown preset", lambda: trained(preset="best"))
error("an unknown prior", lambda: trained(prior="neuron"))
error("prior groups that lack a weight", lambda: trained(prior=pactrain.Prior(per={"all": ["0.weight"]})))
error("a fixed prior without a std", lambda: pactrain.Prior(learn=False))
error("prior data of more than everything", lambda: trained(prior_data=1.5))
error("a budget that is no time", lambda: trained(budget="soon"))
error("an unknown device", lambda: trained(device="abacus"))
error("a bound for losses in [0, 1] on numbers", lambda: trained(net(6, 1), numbers(), bound="kl"))
error("a sparse matrix", lambda: trained(data=(sp.csr_matrix(X.numpy()), Y)))
error("an iterator", lambda: trained(data=iter([(X, Y)])))
error("a tensor alone", lambda: trained(data=X))
error("a list of two tensors", lambda: trained(data=[X, Y]))
error("texts", lambda: trained(data=(np.array([["a"]] * 96), Y)))
error("batches without a target", lambda: trained(Keywords(), [{k: b[k] for k in ("left", "right")} for b in dicts()]))
error("a float16 network", lambda: trained(net().half(), (X.half(), Y)))
error("a class in place of a network", lambda: pactrain.fit(nn.Linear, (X, Y)))  # type: ignore[arg-type]
error("a network without weights", lambda: trained(nn.Flatten()))
error("LBFGS", lambda: trained(optimizer=lambda groups: torch.optim.LBFGS(groups)))
error("resuming nothing", lambda: trained(resume=True))
error("certify with no draws", lambda: pactrain.certify(pactrain.Posterior(net()), (X, Y), draws=0))
error("a draw within a draw", lambda: _nested(pactrain.Posterior(net())))
error("scikit-learn: one class", lambda: pactrain.sklearn.PACBayesClassifier().fit(raw().numpy(), np.zeros(120)))
error("scikit-learn: a loss for numbers", lambda: pactrain.sklearn.PACBayesClassifier(loss="mse").fit(X, Y))
error("a certificate that is none", lambda: pactrain.Certificate.from_dict({}))


def _nested(posterior: pactrain.Posterior) -> None:
    with posterior.sampled(), posterior.sampled():
        pass


def _twice(**options: Any) -> Any:
    trained(out="run")
    return trained(**options)


error("an existing folder", lambda: _twice(out="run"))
error("resume of a complete run", lambda: _twice(out="run", resume=True))


@case("error: resume with other settings", fails=True)
def _other_settings() -> Any:
    def interrupt(event: Any) -> None:
        if event.phase == "train" and event.done == 2:
            raise KeyboardInterrupt

    trained(out="run", callbacks=[interrupt])
    return trained(out="run", resume=True, delta=0.1)


@case("mistakes of a network that learns nothing")
def _nothing_learnt() -> Any:
    return trained(data=(torch.zeros_like(X), Y)), trained(net(6, 1), (X * 500 + 700, Y * 40.0), preset="authors")


def refused(name: str, *words: str) -> None:
    """A command that ends with one line and code 2."""
    case(f"pactrain error: {name}")(lambda: command(*words, code=2))


refused("unknown data", "train", "--data", "nothing")
refused("no such file", "train", "--data", "none.csv", "--target", "y")
refused("unknown model", "train", "--data", "iris", "--model", "cnn")
refused("loss that does not fit", "train", "--data", "iris", "--loss", "mse")
refused("budget", "train", "--data", "iris", "--budget", "soon")
refused("unknown option", "train", "--dta", "iris")
refused("unknown command", "tran")
refused("nothing to resume", "train", "--data", "iris", "--resume")
refused("no run to certify", "certify", "nowhere")
refused("no certificate", "verify", "none.json")
refused("no run to report", "report", "nowhere")
refused("unknown data set to find", "data", "where", "nothing")


@case("pactrain error: wrong columns and folders")
def _columns() -> Any:
    data = flowers()
    wrong = [("--target", "colour"), (), ("--target", "kind", "--drop", "colour"), ("--target", "kind", "--text", "x")]
    found = [command("train", "--data", data, *SHORT, *words, code=2) for words in wrong]
    train("--data", "iris")
    found += [command("train", "--data", "iris", "--out", "run", code=2), command("predict", "run", data, code=2)]
    Path("empty.csv").write_text("")
    return [*found, command("train", "--data", "empty.csv", "--target", "y", code=2)]
