"""Names of networks."""

from pathlib import Path

import pytest

from pactrain.runtime.errors import PactrainError
from pactrain.runtime.network_names import IMAGE_MODELS, check_model, is_image_model


def test_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "nets.py").touch()
    for name in (
        None,
        "mlp",
        "mlp:30-20",
        "linear",
        "gat",
        "vgg13:width=0.25",
        f"{tmp_path / 'nets.py'}:make",
        *IMAGE_MODELS,
    ):
        check_model(name)
    assert is_image_model("resnet18:width=0.5,norm=group")
    assert not is_image_model("mlp")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mpl", "did you mean 'mlp'"),
        ("mlp:0", "not known"),
        ("nets.py:make", "no file nets.py"),
        ("resnet", "did you mean 'resnet"),
    ],
)
def test_what_is_not(name: str, message: str) -> None:
    with pytest.raises(PactrainError, match=message):
        check_model(name)
