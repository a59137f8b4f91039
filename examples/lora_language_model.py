"""LoRA on a small causal language model that has seen all steps: its adapter is trained to count by threes, and learns a little of it."""

import tempfile

import torch
import transformers
from peft import LoraConfig, get_peft_model

import pactrain
from pactrain.integrations.transformers import PACBayesTrainer

transformers.logging.set_verbosity_error()
torch.manual_seed(0)


def counted(by):
    """Sequences of numbers modulo 16 from random starts; every tenth number is replaced by a random one."""
    numbers = (torch.randint(16, (128, 1)) + by * torch.arange(12)) % 16
    return torch.where(torch.rand(128, 12) < 0.1, torch.randint(16, (128, 12)), numbers)


sizes = transformers.GPT2Config(
    vocab_size=16, n_positions=12, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
)
network, threes = transformers.GPT2LMHeadModel(sizes), counted(3)
adam = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(100):
    adam.zero_grad()
    mixed = counted(torch.randint(1, 16, (128, 1)))
    network(input_ids=mixed, labels=mixed).loss.backward()
    adam.step()

lora = LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
adapted = get_peft_model(network, lora)
rows = [{"input_ids": row, "labels": row} for row in threes]
settings = transformers.TrainingArguments(
    tempfile.mkdtemp(), num_train_epochs=60, per_device_train_batch_size=16, gradient_accumulation_steps=2,
    use_cpu=True, report_to=[], logging_strategy="no", save_strategy="no", disable_tqdm=True,
)  # fmt: skip
trainer = PACBayesTrainer(model=adapted, args=settings, train_dataset=rows)
before = trainer.evaluate(rows)["eval_loss"]
trainer.train()
after, posterior = trainer.evaluate(rows)["eval_loss"], trainer.posterior
print(
    f"loss {before:.2f} before, {after:.2f} after; {posterior.num_weights} random weights, KL {posterior.kl().item():.0f} nats"
)
print(pactrain.certify(posterior, [{"input_ids": threes, "labels": threes}], loss=trainer.prepared.loss, draws=50))
