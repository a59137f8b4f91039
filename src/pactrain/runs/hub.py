"""Putting a run where others find it: the Hugging Face Hub, or a local folder with the same files."""

import shutil
from pathlib import Path

from pactrain.runs.card import CARD, card_of
from pactrain.runs.conformal import FILE
from pactrain.runs.weight_files import MODEL, POSTERIOR
from pactrain.runtime.errors import PactrainError, RunError
from pactrain.runtime.files import write_atomic

PUSHED = (
    CARD,
    "config.json",
    "history.jsonl",
    "metrics.json",
    "moment.json",
    "certificate.json",
    MODEL,
    POSTERIOR,
    FILE,
)
"""What is pushed of a run folder; the report and its analysis, which show rows of the data, are not."""


def push(folder: Path, repo: str | Path, *, private: bool = False) -> str:
    """Write the model card of a run and push it with the run's files.

    Args:
        folder: The run folder.
        repo: "owner/name" on the Hub, or a `Path` to a local folder.
        private: A repository that is made for it is private.

    Returns:
        Where the files are.

    Raises:
        PactrainError: The run is not complete, `repo` is not a name, or the Hub refuses.
    """
    write_atomic(folder / CARD, card_of(folder))
    if isinstance(repo, Path):
        return _copied(folder, repo)
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise PactrainError("the Hub needs huggingface_hub: pip install 'pactrain[hub]'") from error
    try:
        api = HfApi(library_name="pactrain")
        address = str(api.create_repo(repo, private=private, exist_ok=True))
        api.upload_folder(
            repo_id=repo, folder_path=folder, allow_patterns=list(PUSHED), commit_message="A run of pactrain"
        )
    except HFValidationError as error:
        raise PactrainError(
            f"{repo!r} is no name on the Hub ({error}); use 'owner/name', or a Path for a local folder"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise PactrainError(
            f"the run could not be pushed to {repo!r} ({error}); `hf auth login` gives access"
        ) from error
    return address


def _copied(folder: Path, to: Path) -> str:
    if to.resolve() == folder.resolve():
        raise RunError(f"{to} is the run folder itself; name another folder")
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name in PUSHED:
            if (folder / name).exists():
                shutil.copyfile(folder / name, to / name)
    except OSError as error:
        raise RunError(f"the run could not be copied to {to}: {error}") from error
    return str(to)
