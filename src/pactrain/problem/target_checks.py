"""Checks of targets and outputs, whose errors say what to do where a loss cannot take them."""

from torch import Tensor

from pactrain.runtime.errors import DataError, PactrainError


def check_classes(output: Tensor, target: Tensor, name: str, ignore: int) -> None:
    """Refuse outputs and targets that do not belong to classes.

    Raises:
        DataError: With what does not fit, and what to do.
    """
    if output.ndim < 2 or output.shape[1] < 2:
        raise DataError(
            f"{name} needs one score for each class, two at least; the network's output has shape {tuple(output.shape)} "
            "(whole numbers as targets are taken for classes; where they are amounts, pass loss='mse'; for one logit and "
            "targets of 0 and 1, loss='binary_cross_entropy')"
        )
    if target.is_floating_point() and target.shape == output.shape:  # probabilities of the classes
        return
    if target.shape != output.shape[:1] + output.shape[2:]:
        raise DataError(
            f"the target has shape {tuple(target.shape)} and the output {tuple(output.shape)}, its classes in dimension 1; "
            "the target must hold one class number per example (or pixel, or token)"
            + ("; pass y.squeeze(1)" if target.ndim == output.ndim and target.shape[1] == 1 else "")
        )
    labelled = target != ignore
    if not bool(labelled.reshape(len(target), -1).any(1).all()):
        row = int((~labelled.reshape(len(target), -1).any(1)).nonzero()[0])
        raise DataError(f"row {row} of a batch has no label but {ignore}, which stands for none; drop such rows")
    low, high = int(target[labelled].min()), int(target[labelled].max())
    if low < 0 or high >= output.shape[1]:
        odd = low if low < 0 else high
        hint = f"; if {odd} stands for no label, pass loss=nn.CrossEntropyLoss(ignore_index={odd})"
        raise DataError(
            f"the classes are {low} to {high}; a network with {output.shape[1]} scores knows 0 to {output.shape[1] - 1}"
            + (hint if target.ndim > 1 else "")
        )


def check_labels(target: Tensor) -> None:
    """Refuse labels outside [0, 1].

    Raises:
        DataError: With the range that was found.
    """
    low, high = float(target.min()), float(target.max())
    if low < 0 or high > 1:
        raise DataError(
            f"the targets go from {low:g} to {high:g}; labels are 0 (not there) or 1 (there). "
            "Where they are amounts, pass loss='mse'"
        )


def check_output(output: Tensor, loss: str) -> None:
    """Refuse outputs that have no gradient: whole and complex numbers.

    Raises:
        PactrainError: With the type that was found.
    """
    if not output.is_floating_point():
        raise PactrainError(
            f"the network's output has the type {output.dtype}; {loss} needs real floating-point numbers"
        )
