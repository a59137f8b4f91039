"""Groups of options: a command inherits from one dataclass per group, and its help shows each group in a box of its own."""

from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, ClassVar, Literal

import tyro

from pactrain.cli.option_types import Column, Columns, File, Folder, JsonFile, Name, Share


def grouped(kind: type) -> type:
    """A command as tyro takes it: each base class becomes a nested dataclass, and tyro draws a box per `heading`."""
    groups = [base for base in kind.__bases__ if hasattr(base, "heading")]
    if not groups:
        return kind
    titled: list[tuple[str, Any]] = [
        (f"group_{i}", Annotated[base, tyro.conf.arg(name=base.heading)]) for i, base in enumerate(groups)
    ]
    return make_dataclass(kind.__name__, titled, namespace={"__doc__": kind.__doc__})


def ungrouped(kind: type, nested: Any) -> Any:
    """The command itself, from what tyro has read into `grouped(kind)`."""
    if isinstance(nested, kind):
        return nested
    return kind(**{name: value for group in vars(nested).values() for name, value in vars(group).items()})


@dataclass(kw_only=True)
class TableOptions:
    """What is learned from."""

    heading: ClassVar = "data"
    data: str = "digits"
    """digits, breast_cancer, wine, iris, diabetes, mnist, fashion_mnist, cifar10, cifar100, uci:NAME, or a .csv, .parquet or .npz file."""
    target: Column = None
    """The column of the file to predict."""
    task: Literal["auto", "classification", "regression"] = "auto"
    """What kind of target it is; auto: texts and few integers are classes, other numbers are quantities."""
    drop: Columns = ()
    """Columns of the file to leave out."""
    test_fraction: Share = None
    """Part of the data held out for the test score (files: 0.2, small named sets: 0.5)."""
    data_root: Folder = None
    """Folder with data files; then $PACTRAIN_DATA and the user's cache are looked at."""


@dataclass(kw_only=True)
class RunOptions:
    """A run may be somebody else's: code and files that it names are used only if you name them here, or say --trust."""

    heading: ClassVar = "model"
    model: Name = None
    """FILE.py:FUNCTION of the run's network, if it is not one of pactrain's own."""
    trust: bool = False
    """Follow whatever the run folder names: code, data files, text encoders.  For runs of your own."""


@dataclass(kw_only=True)
class RunDataOptions:
    """The data of the run, from which its certificate is made again."""

    heading: ClassVar = "data"
    data: File = None
    """The file with the run's training data: it is read only if you repeat it here, or say --trust."""
    data_root: Folder = None
    """Folder with data files."""


@dataclass(kw_only=True)
class JsonOptions:
    """Where the result goes."""

    heading: ClassVar = "output"
    json_to: JsonFile = None
    """Write the result as JSON to this file, or to standard output for '-'."""
