"""`pactrain train`: from data to a trained network, a certificate and a run folder."""

import math
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pactrain.cli.check import check_options
from pactrain.cli.groups import JsonOptions, TableOptions
from pactrain.cli.option_types import Amount, Column, Columns, File, Folder, Name, Share
from pactrain.cli.output import console, say, write_result
from pactrain.runtime.progress import Bar

if TYPE_CHECKING:
    from rich.console import Console
    from torch import nn

    from pactrain import Result
    from pactrain.certification.before_training import Described
    from pactrain.data.task import Task


@dataclass(kw_only=True)
class DataOptions(TableOptions):
    """What is learned from: by default handwritten digits, as an example."""

    data: str = "digits"
    """digits, breast_cancer, wine, iris, diabetes, mnist, fashion_mnist, cifar10, cifar100, uci:NAME, graph:NAME, a .csv, .parquet or .npz file (images or a graph, too), or a folder of images in IDX files."""
    test_fraction: Share = None
    """Part of the data held out for the test score (files: 0.2, small named sets: 0.5, graphs: the paper's split); 0 trains on everything."""
    keep: Columns = ()
    """Columns of the file to use although they look like identifiers."""
    text: Columns = ()
    """Columns of the file that hold free text."""
    encoder: Name = None
    """What reads free text: a folder, or a name on the Hugging Face hub; by default a small encoder of sentences."""
    test: File = None
    """A file with the test rows; then all rows of --data are trained on."""
    group: Column = None
    """A column of the file whose rows of one value stay together, all in training or all in the test (patients, users)."""
    time: Column = None
    """A column of the file by which the latest rows are held out for the test."""
    split: int = 0
    """Which of the published splits of a uci set."""


@dataclass(kw_only=True)
class ModelOptions:
    """The network, and the loss that it is trained with."""

    heading: ClassVar = "model"
    model: Name = None
    """mlp, mlp:600-600-600 (widths), linear; gcn, gat, sage, appnp for graphs; cnn5, cnn9, cnn13, cnn15, vgg4, vgg13, vgg19, resnet18, resnet34, densenet121 for images, with options as in resnet18:width=0.25,norm=group; or FILE.py:FUNCTION, a function of (inputs, outputs) that returns a torch module.  By default mlp; linear for free text, gcn for graphs."""
    loss: Name = None
    """cross_entropy, hinge, mse, l1, huber, log_cosh, quantile or quantile:LEVEL; by default from the target."""
    augment: Literal["none", "flip_crop", "flip", "crop"] = "none"
    """Mirror images and move them by up to 4 pixels, anew in each training step; the certificate sees the originals."""
    augment_counts: int = 1
    """A heuristic of the paper, which took 128: the training objective counts every image so many times.  The certificate counts it once."""


@dataclass(kw_only=True)
class TrainingOptions:
    """Nothing has to be set.  The weights are trained with random noise added to them; how much each one bears is learned, too."""

    heading: ClassVar = "training"
    budget: Amount = None
    """The most time that the command may take: 60s, 5m, 1h; or the most passes over the data, "100 epochs"."""
    seed: int = 0
    """Decides the split, the initial weights and everything random."""
    device: str = "auto"
    """cpu, cuda, or auto."""
    resume: bool = False
    """Go on with an unfinished run (that of --out, or the newest below runs/ for this data)."""
    preset: Literal["auto", "paper", "authors"] = "auto"
    """Training rules: ours, the paper's text, or what its authors ran."""
    prior: Literal["layer", "tensor", "model"] = "layer"
    """The prior is the noise on the weights before training: one standard deviation per layer, per tensor, or for the whole model."""


@dataclass(kw_only=True)
class CertificateOptions:
    """What is proved at the end about the network's errors on new data.  A proof can be vacuous: true, but too weak to be of use."""

    heading: ClassVar = "certificate"
    certificate: Literal["standard", "progressive", "recursive"] = "standard"
    """progressive: the network is judged by each block of rows before it is trained on it; no test rows are needed (classification).  recursive: for a network that starts from nothing, what each part of the rows has taught is the prior for the next."""
    delta: float = 0.05
    """Probability with which the certificate may fail: 0.05 means 95 % confidence."""
    bound: str = "auto"
    """The formula that is minimised and then certified: auto, cgf or paper for unbounded losses; kl, quad, lambda, classic, catoni, bbb for clipped ones; subgaussian, cgf_rodriguez."""
    prior_data: float = 0.0
    """Part of the data on which the prior's mean (the weights that training starts from) is trained first; the bound counts the rest only."""


@dataclass(kw_only=True)
class OutputOptions:
    """Where results go."""

    heading: ClassVar = "output"
    out: Folder = None
    """The run folder; by default a new one below runs/."""
    tensorboard: bool = False
    """Also write the scalars of every epoch as TensorBoard event files, to tensorboard/ in the run folder."""


@dataclass
class Train(DataOptions, ModelOptions, TrainingOptions, CertificateOptions, OutputOptions, JsonOptions):
    """Train a network on data by minimising a PAC-Bayes bound, a limit on its errors that can be proved.  Nothing has to be tuned."""

    def run(self) -> int:
        """Carry it out, as one of several processes if torchrun has started them."""
        began, quiet = time.monotonic(), os.environ.get("RANK", "0") != "0"
        screen = console(self.json_to, quiet=quiet)
        check_options(
            data=self.data,
            model=self.model,
            seed=self.seed,
            budget=self.budget,
            delta=self.delta,
            prior_data=self.prior_data,
            test_fraction=self.test_fraction,
            bound=self.bound,
        )
        say(screen, f"Reading {self.data} …")
        task = self._load()  # a table, with all that can be wrong in it, is read before torch is loaded
        for line in (*self._on_columns(task), *task.notes):
            say(screen, line)
        from pactrain.runtime import distributed

        with distributed.joined():
            return self._run(task, screen, began, quiet=quiet)

    def _run(self, task: "Task", screen: "Console", began: float, *, quiet: bool) -> int:
        from pactrain import fit
        from pactrain.cli.run_folders import newest_unfinished, next_folder
        from pactrain.distributions.prior import Prior
        from pactrain.integrations.tensorboard import TensorBoard
        from pactrain.models.named import chosen_model, make_model, source_of
        from pactrain.problem.named_losses import named_loss
        from pactrain.runs.folder import check_free
        from pactrain.training.budget import parse_budget

        if self.out is not None and not self.resume and not quiet:
            check_free(self.out)
        network = chosen_model(self.model, task.encoder)
        folder = self.out or (newest_unfinished(self.data) if self.resume else next_folder(self.data))
        boards = [TensorBoard(folder / "tensorboard")] if self.tensorboard and not quiet else []
        model = make_model(network, task.inputs, task.outputs, self.seed)
        config = self.described(task, network)
        say(screen, _opening(task, config, model))
        with Bar(screen, whole_run=True) as bar, ExitStack() as stack:
            result = fit(
                model,
                self._data(task, config),
                loss=named_loss(self.loss, task.encoder.kind, unit=task.encoder.target_std),
                prior=Prior(per=self.prior, source=source_of(network, self.seed)),
                bound=self.bound,
                preset=self.preset,
                delta=self.delta,
                test=task.test,
                device=self.device,
                seed=self.seed,
                budget=parse_budget(self.budget, started=began),
                prior_data=self.prior_data,
                certificate=self.certificate,
                callbacks=[bar, *(stack.enter_context(board) for board in boards)],
                progress=False,
                out=folder,
                resume=self.resume,
            )
        show(screen, result)
        write_result(None if quiet else self.json_to, _values(folder, result))
        if not math.isfinite(result.metrics["train"]["loss"]):
            return 1
        return 130 if result.interrupted else 0

    def _load(self) -> "Task":
        """The data that the command names."""
        from pactrain.data.load import load_described
        from pactrain.problem.uncounted_part import uncounted_part

        first, named = uncounted_part(self.prior_data, self.certificate), self._described_data() | {"test": self.test}
        return load_described(named, self.data, seed=self.seed, root=self.data_root, prior_data=first)

    def _described_data(self) -> dict[str, Any]:
        """The data as a run folder keeps it, with files by their full names."""
        from pactrain.data.load import is_file_name

        return {
            "name": str(Path(self.data).resolve()) if is_file_name(self.data) else self.data,
            "target": self.target,
            "task": self.task,
            "drop": list(self.drop),
            "keep": list(self.keep),
            "group": self.group,
            "time": self.time,
            "test": None if self.test is None else str(self.test.resolve()),
            "text": self._texts(),
            "test_fraction": self.test_fraction,
            "split": self.split,
        }

    def _texts(self) -> dict[str, str]:
        """The columns of free text with their encoders."""
        if not self.text and self.encoder is None:
            return {}
        from pactrain.cli.build import text_columns

        return text_columns(self.text, self.encoder)

    def _data(self, task: "Task", config: dict[str, Any]) -> "Described":
        """The training data with what is known about it."""
        from pactrain.certification.before_training import Described
        from pactrain.cli.build import training_data

        return Described(
            training_data(task, self.augment, self.augment_counts),
            caveats=task.caveats,
            test_doubts=task.test_doubts,
            config=config,
            preprocess=None if task.encoder.node_features else task.encoder,
            labels=task.labels,
        )

    def _on_columns(self, task: "Task") -> list[str]:
        """What became of the columns of the user's own table."""
        from pactrain.data.column_report import columns_in_short

        table = self._is_table() and not task.encoder.node_features
        return [f"Columns: {columns_in_short(task.encoder)}"] if table else []

    def _is_table(self) -> bool:
        """True for a file with columns that have names; a graph's nodes have them, too."""
        from pactrain.data.image_files import has_images

        return Path(self.data).is_file() and not has_images(Path(self.data))

    def described(self, task: "Task", network: str) -> dict[str, Any]:
        """What the run folder must know to load the same data and build the same network again."""
        from pactrain.data.column_report import column_records

        return {
            "data": self._described_data(),
            "model": network,
            "prior": self.prior,
            "preprocess": task.encoder.to_dict(),
            "columns": column_records(task.encoder) if self._is_table() else [],
        }


def _opening(task: "Task", config: dict[str, Any], model: "nn.Module") -> str:
    """The data and the network in one line, as far as they are known before training."""
    from pactrain.runs.sentences import about

    weights = sum(p.numel() for p in model.parameters() if p.requires_grad)
    kind = {"kind": task.encoder.kind, "features": task.inputs, "classes": len(task.encoder.classes) or None}
    rows: dict[str, Any] = {"train": {"n": len(task.x_train)}, "task": kind}
    if task.x_test is not None:
        rows["test"] = {"n": len(task.x_test)}
    return about(config | {"groups": {"all": weights}}, rows)


def _values(folder: Path, result: "Result") -> dict[str, Any]:
    """The result as data."""
    return {
        "run": str(folder),
        "report": str(folder / "report.html"),
        "metrics": result.metrics,
        "certificate": result.certificate.to_dict(),
        "notes": result.notes,
    }


def show(screen: "Console", result: "Result") -> None:
    """What people look for after training, and what to do next."""
    from pactrain.runs.sentences import summary

    for line in summary(result.config, result.metrics, result.certificate)[1:]:
        say(screen, line, indent=2)
    for note in result.notes:
        say(screen, f"Note: {note}", indent=2)
    if result.path is not None:
        for line in next_steps(result, result.path):
            screen.print(line, markup=False, highlight=False, soft_wrap=True)


def next_steps(result: "Result", run: Path) -> list[str]:
    """Commands that go on from a run, each with what it is for."""
    graph = result.config.get("preprocess", {}).get("node_features")
    steps = [(f"pactrain predict {run} {'graph.npz' if graph else 'new.csv'}", "answers for new data")]
    if result.metrics["task"]["kind"] == "regression" and result.calibration is not None:
        steps.append((f"{steps[0][0]} --coverage 0.9", "with intervals that hold nine in ten"))
    if not result.certificate.from_training_rows() and result.metrics["task"]["classes"] and not graph:
        steps.append((f"pactrain certify --explain {run}", "what else could be proved"))
    if (run / "report.html").exists():
        steps.append((f"{run / 'report.html'}", "the report: open it in a browser"))
    width = max(len(step) for step, _ in steps)
    heads = ["Next:", *[" " * len("Next:")] * len(steps)]
    return [f"{head} {step:<{width}}  {why}" for head, (step, why) in zip(heads, steps, strict=False)]
