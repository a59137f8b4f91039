"""Norms by name."""

import pytest

from pactrain.models import resnet
from pactrain.runtime.errors import PactrainError


def test_a_norm_of_another_name_is_refused() -> None:
    with pytest.raises(PactrainError, match="use batch, or group"):
        resnet(18, norm="layer")  # type: ignore[arg-type]
