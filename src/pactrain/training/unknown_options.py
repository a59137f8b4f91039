"""Error messages for arguments that other libraries have and `fit` does not: each names the replacement."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pactrain.runtime.errors import PactrainError

_RATE = "the rules choose the learning rate; for your own, optimizer=lambda groups: torch.optim.Adam(groups, lr=1e-3)"
_LENGTH = "the rules choose how long to train; budget='20 epochs' or budget='5m' sets the most"
_BATCH = "the rules choose the batch size; preset=pactrain.rules.presets.AUTO.replace(batch_size=64) sets it, and a DataLoader brings its own"
_TEST = "nothing is held out for choosing; test=(X, y) is looked at for the history and the report only"
_STOP = "no validation set ends training; a callback can, with event.stop()"
_DECAY = "the bound itself decides how far weights may go, and that replaces weight decay"
_WORDS = "progress=True draws a bar and progress=False none; callbacks=[f] calls f with an Event for every epoch"

ROWS = "data: fit(model, (X, y)), the rows as one pair"

REPLACED: Mapping[str, str] = {
    **dict.fromkeys(("lr", "learning_rate", "momentum", "scheduler", "lr_scheduler", "warmup", "warmup_steps"), _RATE),
    **dict.fromkeys(
        ("epochs", "n_epochs", "num_epochs", "max_epochs", "num_train_epochs", "steps", "max_steps", "max_iter"),
        _LENGTH,
    ),
    **dict.fromkeys(("batch_size", "batchsize", "shuffle", "num_workers"), _BATCH),
    **dict.fromkeys(
        ("validation_data", "validation_split", "val", "val_data", "valid", "val_loader", "X_val", "eval_set"), _TEST
    ),
    **dict.fromkeys(("patience", "early_stopping", "early_stopping_rounds"), _STOP),
    **dict.fromkeys(("weight_decay", "l2", "l1", "alpha", "dropout", "regularization"), _DECAY),
    **dict.fromkeys(("verbose", "verbosity", "log_every"), _WORDS),
    "criterion": "loss=nn.CrossEntropyLoss(), or another loss",
    "class_weights": "class_weight=[1.0, 3.0]",
    "sample_weights": "sample_weight=weights",
    "random_state": "seed=0",
    "gradient_accumulation_steps": "accumulate=4: each batch goes through the network in four pieces",
    **dict.fromkeys(("max_grad_norm", "gradient_clip_val", "grad_clip"), "clip_norm=1.0"),
    **dict.fromkeys(("gpus", "accelerator"), "device='cuda'; by default a GPU is used where there is one"),
    "amp": "precision='bf16'",
    "fp16": "precision='bf16'; float16's range is too small for the stds",
    "bf16": "precision='bf16'",
    **dict.fromkeys(("X", "y"), ROWS),
    **dict.fromkeys(("train_loader", "train_data", "dataset"), "data: fit(model, loader)"),
}


class UnknownOption(PactrainError, TypeError):
    """A keyword that a function does not have."""


def refuse(more: Sequence[Any], given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Say what replaces further positional arguments, and each unknown keyword.

    Args:
        more: Positional arguments after the first two.
        given: Unknown keywords with their values.
        known: Keywords that there are.

    Raises:
        UnknownOption: If there are any.
    """
    lines = [f"fit takes two positional arguments, and got {2 + len(more)}: {ROWS}"] if more else []
    for name in given:
        near = difflib.get_close_matches(name, list(known), n=1)
        hint = REPLACED.get(name) or (f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}")
        lines.append(f"fit has no argument {name}=: {hint}")
    if lines:
        raise UnknownOption("\n".join(lines))
