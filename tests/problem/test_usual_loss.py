"""The loss that is usual for an output and a target; what cannot be guessed is asked for."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import pactrain
from pactrain.problem.as_loss import as_loss
from pactrain.problem.usual_loss import first_output
from pactrain.runtime.errors import DataError
from tests.zoo import rows

X, CLASSES = rows(60)
FLAG = X[:, 0] > 0


def chosen(outputs: int, target: Tensor, *last: nn.Module) -> pactrain.Loss:
    return as_loss(None, (X, target), nn.Sequential(nn.Linear(6, outputs), *last))


@pytest.mark.parametrize("target", [FLAG.long(), FLAG, FLAG.float(), FLAG.float()[:, None], FLAG.double()])
def test_one_logit_and_zeros_and_ones_are_binary_classification(target: Tensor) -> None:
    assert chosen(1, target).name == "binary_cross_entropy"


def test_columns_of_zeros_and_ones() -> None:
    labels = (X[:, :3] > 0).float()
    assert chosen(3, labels).several_labels
    one_hot = F.one_hot(CLASSES, 3)
    for target in (one_hot, one_hot.float()):
        loss = chosen(3, target)
        assert loss.name == "cross_entropy"
        model = nn.Linear(6, 3)
        assert torch.equal(loss(model, (X, target)), as_loss("cross_entropy", None)(model, (X, CLASSES)))


def test_classes_and_amounts_are_as_ever() -> None:
    assert chosen(3, CLASSES).name == "cross_entropy"
    assert chosen(1, X[:, 0]).name == "mse"
    assert chosen(3, X[:, :3]).name == "mse"


@pytest.mark.parametrize("dim", [1, 3])
def test_one_hot_pixels_and_tokens(dim: int) -> None:
    classes = torch.arange(48).reshape(2, 4, 6) % 5
    output, target = (t.movedim(-1, dim) for t in (torch.randn(2, 4, 6, 5), F.one_hot(classes, 5).float()))
    loss = as_loss(None, (output, target), nn.Identity())
    assert loss.name == "cross_entropy"
    expected = F.cross_entropy(output.movedim(dim, 1), classes, reduction="none").flatten(1).mean(1)
    torch.testing.assert_close(loss(nn.Identity(), (output, target)), expected)


@pytest.mark.parametrize("value", [0, 1])
def test_the_same_target_everywhere_is_asked_about(value: int) -> None:
    target = torch.full((60,), float(value))
    for same in (target, target.long()):
        with pytest.raises(DataError, match=f"all {value} .* if they are classes, pass loss='binary_cross_entropy'"):
            chosen(1, same)
    assert chosen(1, target.bool()).name == "binary_cross_entropy"
    assert chosen(1, target, nn.Sigmoid()).name == "BCELoss"


def test_sorted_tables_are_judged_by_all_their_rows() -> None:
    x, rare = torch.randn(3000, 6), (torch.arange(3000) > 2990).float()
    result = pactrain.fit(nn.Linear(6, 1), (x, rare), budget="1 epoch")
    assert result.config["loss"] == "binary_cross_entropy"


def test_a_sigmoid_at_the_end_gives_probabilities() -> None:
    loss = chosen(1, FLAG.float(), nn.Sigmoid())
    assert loss.probabilities is not None
    assert loss.probabilities(torch.tensor([0.3])).tolist() == pytest.approx([0.3])


class Functional(nn.Module):
    """A network whose last function is no module, and whose last module is not its last function."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.layer, self.gate = nn.Linear(6, outputs), nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.layer(self.gate(x))
        return hidden.softmax(1) if hidden.shape[1] > 1 else hidden.sigmoid().squeeze(1)


def test_the_last_function_tells_what_outputs_are() -> None:
    assert as_loss(None, (X, FLAG.float()), Functional(1)).name == "BCELoss"
    gated = nn.Sequential(nn.Linear(6, 1))
    gated.unused = nn.Sigmoid()  # a later module that the network does not end in
    gated.forward = lambda x: gated[0](x)  # type: ignore[method-assign]
    assert as_loss(None, (X, FLAG.float()), gated).name == "binary_cross_entropy"


@pytest.mark.parametrize("target", [CLASSES, F.one_hot(CLASSES, 3).float()])
def test_a_softmax_at_the_end_gives_probabilities(target: Tensor) -> None:
    model = Functional(3)
    loss = as_loss(None, (X, target), model)
    torch.testing.assert_close(loss(model, (X, target)), F.nll_loss(model(X).log(), CLASSES, reduction="none"))
    logits = nn.Linear(6, 3)
    chances = nn.Sequential(copy.deepcopy(logits), nn.Softmax(1))
    plain, result = (pactrain.fit(m, (X, target), budget="9 epochs") for m in (logits, chances))
    assert result.metrics["train"]["nll"] == pytest.approx(plain.metrics["train"]["nll"], rel=1e-4)
    torch.testing.assert_close(torch.tensor(result.predict(X).probabilities), chances(X).detach().double())


@pytest.mark.parametrize(
    ("last", "loss", "words"),
    [
        (nn.Softmax(1), "cross_entropy", "ends in a softmax and cross_entropy computes another one"),
        (nn.Softmax(1), nn.CrossEntropyLoss(label_smoothing=0.1), "ends in a softmax"),
        (nn.Sigmoid(), nn.BCEWithLogitsLoss(), r"ends in a sigmoid .* pass loss=nn.BCELoss\(\)"),
        (nn.Identity(), nn.NLLLoss(), r"takes logarithms of probabilities, .* end in nn.LogSoftmax\(1\)"),
        (nn.Identity(), nn.BCELoss(), r"takes probabilities, .* or pass loss=nn.BCEWithLogitsLoss\(\)"),
    ],
)
def test_outputs_that_are_not_what_the_loss_takes(last: nn.Module, loss: pactrain.Loss, words: str) -> None:
    torch.manual_seed(0)
    labels = isinstance(loss, (nn.BCELoss, nn.BCEWithLogitsLoss))
    with pytest.raises(DataError, match=words):
        as_loss(loss, (X, (X[:, :3] > 0).float() if labels else CLASSES), nn.Sequential(nn.Linear(6, 3), last))


def test_classes_as_floats_shares_and_signs_are_asked_about() -> None:
    for target, outputs, words in (
        (CLASSES.float(), 3, r"whole numbers, .* pass y.long\(\)"),
        (X[:, :3].softmax(1), 3, "shares that add up to 1 .* loss='cross_entropy'"),
        (2 * FLAG.float() - 1, 1, "-1 and 1 .* write 0 for -1"),
        (2 * FLAG.long() - 1, 1, "-1 and 1 .* write 0 for -1"),
    ):
        with pytest.raises(DataError, match=words):
            chosen(outputs, target)
        assert as_loss("mse", (X, target), nn.Linear(6, outputs)).name == "mse"
    with pytest.raises(DataError, match=r"whole numbers, and the targets are torch.float32; pass y.long\(\)"):
        as_loss(nn.CrossEntropyLoss(), (X, CLASSES.float()), nn.Linear(6, 3))


def test_counts_beside_one_output_are_asked_about() -> None:
    with pytest.raises(DataError, match=r"from 0 to 6 .* if they are amounts, pass loss='mse'"):
        chosen(1, torch.arange(60) % 7)
    model = nn.Linear(6, 1)
    later = torch.cat([FLAG[:30].float(), torch.full((30,), 2.5)])
    with pytest.raises(DataError, match=r"the targets go from 2\.5 to 2\.5"):  # the first batch looked like labels
        pactrain.fit(model, [(X[:30], later[:30]), (X[30:], later[30:])], budget="1 epoch")


class Tokens(nn.Module):
    """One row of scores per token, the classes last, as Hugging Face has them."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(9, 8), nn.Linear(8, classes)

    def forward(self, ids: Tensor) -> Tensor:
        out: Tensor = self.head(self.words(ids))
        return out


def test_tokens_with_their_classes_last() -> None:
    ids = torch.randint(0, 9, (40, 5), generator=torch.Generator().manual_seed(0))
    labels = ids % 4
    labels[:, -1] = -100
    result = pactrain.fit(Tokens(4), (ids, labels))
    assert result.metrics["train"]["accuracy"] > 0.95
    assert result.posterior.predict(ids, draws=2).mean.sum(-1).allclose(torch.ones(40, 5, dtype=torch.float64))
    with pytest.raises(DataError, match="may have its classes in dimension 1 or last"):
        as_loss(None, (ids[:, :4], labels[:, :4]), Tokens(4))
    labels[3] = -100
    with pytest.raises(DataError, match="row 3 of a batch has no label"):
        pactrain.fit(Tokens(4), (ids, labels))


class TinyForCausalLM(Tokens):
    """Named as causal language models are."""


def test_a_causal_language_model_predicts_the_next_token() -> None:
    ids = torch.arange(5) + torch.arange(4)[:, None]
    model = TinyForCausalLM(9)
    loss = as_loss(None, (ids, ids), model)
    expected = F.cross_entropy(model(ids)[:, :-1].movedim(-1, 1), ids[:, 1:], reduction="none").mean(1)
    assert loss.name == "next_token"
    assert torch.allclose(loss(model, (ids, ids)), expected)


def test_a_look_at_the_network_leaves_it_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    before = {name: t.clone() for name, t in model.state_dict().items()}
    output = first_output(model, (X, CLASSES))
    assert output is not None
    assert output.shape == (2, 4)
    assert model.training
    assert all(torch.equal(before[name], t) for name, t in model.state_dict().items())


@pytest.mark.parametrize("last", [[], [nn.Sigmoid()]])
def test_predictions_of_one_logit_are_classes(last: list[nn.Module]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 1), *last)
    result = pactrain.fit(model, (X, FLAG))
    prediction = result.predict(X)
    assert prediction.values.tolist() == (model(X)[:, 0] > (0.5 if last else 0)).long().tolist()
    assert (prediction.values == FLAG.numpy()).mean() > 0.8
    assert prediction.probabilities is not None
    assert ((prediction.probabilities >= 0) & (prediction.probabilities <= 1)).all()
