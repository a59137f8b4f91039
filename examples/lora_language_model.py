"""LoRA on a small causal language model that counts by 1, 2, 4, 5, 7 and 8: its adapter learns to count by threes, from 128 sequences."""

import tempfile

import torch
import transformers
from peft import LoraConfig, get_peft_model

import pactrain
from pactrain.integrations.transformers import PACBayesTrainer

transformers.logging.set_verbosity_error()
torch.manual_seed(0)


def counted(by):
    """128 sequences of numbers modulo 16 from random starts; every tenth number is replaced by a random one."""
    numbers = (torch.randint(16, (128, 1)) + by * torch.arange(12)) % 16
    return torch.where(torch.rand(128, 12) < 0.1, torch.randint(16, (128, 12)), numbers)


sizes = transformers.GPT2Config(
    vocab_size=16, n_positions=12, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
)
network, known = transformers.GPT2LMHeadModel(sizes), torch.tensor([1, 2, 4, 5, 7, 8])
adam = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(300):
    adam.zero_grad()
    mixed = counted(known[torch.randint(6, (128, 1))])
    network(input_ids=mixed, labels=mixed).loss.backward()
    adam.step()

lora = LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
train, test = ([{"input_ids": row, "labels": row} for row in counted(3)] for _ in range(2))
settings = transformers.TrainingArguments(
    tempfile.mkdtemp(), num_train_epochs=60, per_device_train_batch_size=16, gradient_accumulation_steps=2,
    use_cpu=True, report_to=[], logging_strategy="no", save_strategy="no", disable_tqdm=True,
)  # fmt: skip
trainer = PACBayesTrainer(model=get_peft_model(network, lora), args=settings, train_dataset=train)
before = trainer.evaluate(test)["eval_loss"]
trainer.train()
after, posterior = trainer.evaluate(test)["eval_loss"], trainer.posterior
print(f"test loss {before:.2f} before, {after:.2f} after; {posterior.num_weights} weights are random")
rows = [{"input_ids": row["input_ids"][None], "labels": row["labels"][None]} for row in train]
print(pactrain.certify(posterior, rows, loss=trainer.prepared.loss, draws=50))
