"""`pactrain train`: from data to a trained network, a certificate and a run folder."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from pactrain.cli.output import Bars, console, number, table, write_result

if TYPE_CHECKING:
    from rich.console import Console

    from pactrain import Result
    from pactrain.data.task import Task


@dataclass
class Train:
    """Train a network on data by minimising a PAC-Bayes bound.  Nothing has to be tuned."""

    data: str = "digits"
    """digits, breast_cancer, wine, iris, diabetes, mnist, fashion_mnist, cifar10, cifar100, uci:NAME, graph:NAME, or a .csv, .parquet or .npz file (a graph in the layout of CitationFull, too)."""
    target: str | None = None
    """The column of the file to predict."""
    task: Literal["auto", "classification", "regression"] = "auto"
    """What kind of target it is; auto: texts and few integers are classes, other numbers are quantities."""
    drop: tuple[str, ...] = ()
    """Columns of the file to leave out."""
    text: tuple[str, ...] = ()
    """Columns of the file that hold free text."""
    encoder: str | None = None
    """What reads free text: a folder, or a name on the Hugging Face hub; by default a small encoder of sentences."""
    test_fraction: float | None = None
    """Part of the data held out for the test score (files: 0.2, small named sets: 0.5, graphs: the paper's split); 0 trains on everything."""
    split: int = 0
    """Which of the published splits of a uci set."""
    model: str | None = None
    """mlp, mlp:600-600-600 (widths), linear; gcn, gat, sage, appnp for graphs; cnn9, cnn13, cnn15, vgg13, vgg19, resnet18, resnet34,
    densenet121 for images, as in resnet18:width=.25,norm=group; or FILE.py:FUNCTION, a function of (inputs, outputs) that
    returns a torch module.  By default mlp; linear for free text, gcn for graphs."""
    augment: Literal["none", "flip_crop", "flip", "crop"] = "none"
    """Mirror images and move them by up to 4 pixels, anew in each training step; the certificate sees the originals."""
    augment_counts: int = 1
    """A heuristic of the paper, which took 128: the training objective counts every image so many times.  The certificate counts it once."""
    loss: str | None = None
    """cross_entropy, hinge, mse, l1, huber, log_cosh, quantile or quantile:LEVEL; by default from the target."""
    prior: Literal["layer", "tensor", "model"] = "layer"
    """How prior standard deviations are shared."""
    preset: Literal["auto", "paper", "authors"] = "auto"
    """Training rules: ours, the paper's text, or what its authors ran."""
    bound: str = "auto"
    """auto, cgf or paper for unbounded losses; kl, quad, lambda, classic, catoni, bbb for clipped ones; subgaussian, cgf_rodriguez."""
    prior_data: float = 0.0
    """Part of the data on which the prior's mean is trained first; the bound counts the rest only."""
    delta: float = 0.05
    """Probability with which the certificate may fail."""
    budget: str | None = None
    """The most that training may take: 60s, 5m, 1h, or "100 epochs"."""
    seed: int = 0
    """Decides the split, the initial weights and everything random."""
    device: str = "auto"
    """cpu, cuda, or auto."""
    out: Path | None = None
    """The run folder; by default a new one below runs/."""
    resume: bool = False
    """Go on with an unfinished run (that of --out, or the newest below runs/ for this data)."""
    tensorboard: bool = False
    """Also write the scalars of every epoch as TensorBoard event files, to tensorboard/ in the run folder."""
    data_root: Path | None = None
    """Folder with data files; then $PACTRAIN_DATA and the user's cache are looked at."""
    json_to: Annotated[str | None, tyro.conf.arg(name="json")] = None
    """Write the result as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out, as one of several processes if torchrun has started them."""
        from pactrain.runtime import distributed

        with distributed.joined():
            return self._run(quiet=distributed.rank() > 0)

    def _run(self, *, quiet: bool) -> int:
        screen = console(self.json_to, quiet=quiet)
        from pactrain import fit
        from pactrain.cli.workshop import (
            newest_unfinished,
            next_folder,
            training_data,
        )
        from pactrain.distributions.prior import Prior
        from pactrain.integrations.tensorboard import TensorBoard
        from pactrain.models.named import check_model, chosen_model, make_model, source_of
        from pactrain.problem.losses import named_loss
        from pactrain.runs.folder import check_free

        check_model(self.model)  # before the data, which may take long to read
        if self.out is not None and not self.resume and not quiet:
            check_free(self.out)
        task = self._load()
        network = chosen_model(self.model, task.encoder)
        folder = self.out or (newest_unfinished(self.data) if self.resume else next_folder(self.data))
        boards = [TensorBoard(folder / "tensorboard")] if self.tensorboard and not quiet else []
        screen.print(_opening(task, network, self.seed), markup=False)
        with Bars(screen) as bars, ExitStack() as stack:
            result = fit(
                make_model(network, task.inputs, task.outputs, self.seed),
                training_data(task, self.augment, self.augment_counts),
                loss=named_loss(self.loss, task.encoder.kind, unit=task.encoder.target_std),
                prior=Prior(per=self.prior, source=source_of(network, self.seed)),
                bound=self.bound,
                preset=self.preset,
                delta=self.delta,
                test=task.test,
                device=self.device,
                seed=self.seed,
                budget=self.budget,
                prior_data=self.prior_data,
                callbacks=[bars, *(stack.enter_context(board) for board in boards)],
                out=folder,
                resume=self.resume,
                caveats=task.caveats,
                extra_config=self.described(task, network),
            )
        show(screen, result)
        values = {
            "run": str(folder),
            "report": str(folder / "report.html"),
            "metrics": result.metrics,
            "certificate": result.certificate.to_dict(),
        }
        write_result(None if quiet else self.json_to, values | {"notes": result.notes})
        return 130 if result.interrupted else 0

    def _load(self) -> "Task":
        """The data that the command names."""
        from pactrain.cli.workshop import text_columns
        from pactrain.data.load import load

        return load(
            self.data,
            target=self.target,
            kind=None if self.task == "auto" else self.task,
            drop=self.drop,
            test_fraction=self.test_fraction,
            seed=self.seed,
            split=self.split,
            root=self.data_root,
            text=text_columns(self.text, self.encoder),
            prior_data=self.prior_data,
        )

    def described(self, task: "Task", network: str) -> dict[str, Any]:
        """What the run folder must know to load the same data and build the same network again."""
        from pactrain.cli.workshop import text_columns

        data = {
            "name": str(Path(self.data).resolve()) if Path(self.data).is_file() else self.data,
            "target": self.target,
            "task": self.task,
            "drop": list(self.drop),
            "text": text_columns(self.text, self.encoder),
            "test_fraction": self.test_fraction,
            "split": self.split,
        }
        return {
            "data": data,
            "model": network,
            "prior": self.prior,
            "preprocess": task.encoder.to_dict(),
        }


def _opening(task: "Task", network: str, seed: int) -> str:
    held_out = f", {len(task.x_test):,} held out for the test" if task.x_test is not None else ""
    goal = f"{task.outputs} classes" if task.encoder.kind == "classification" else "a number"
    ignored = f"; constant columns ignored: {', '.join(task.encoder.constant)}" if task.encoder.constant else ""
    return (
        f"{task.name}: {len(task.x_train):,} examples of {task.inputs} features to predict {goal}{held_out}; "
        f"model {network}, seed {seed}{ignored}"
    )


def show(screen: "Console", result: "Result") -> None:
    """The table of results, the certificate's sentence, and where everything is."""
    rows = []
    names = [k for k in ("loss", "accuracy", "rmse") if k in result.metrics["train"]]
    for part in ("train", "test"):
        if part in result.metrics:
            scores = result.metrics[part]
            rows.append([part, *(_shown(k, scores[k]) for k in names), f"{int(scores['n']):,}"])
    screen.print(table("The trained network (deterministic)", ["data", *names, "examples"], rows))
    m = result.metrics
    screen.print(
        f"{m['steps']:,} steps in {m['seconds']:.1f} s: {m['stage1_epochs']} epochs of stage 1, "
        f"{m['stage2_epochs']} of stage 2",
        markup=False,
    )
    for note in result.notes:
        screen.print(note, markup=False)
    screen.print(str(result.certificate), markup=False)
    screen.print(f"Run folder: {result.path}", markup=False)
    if result.path is not None and (result.path / "report.html").exists():
        screen.print(f"Report: {result.path / 'report.html'}", markup=False)


def _shown(name: str, value: float) -> str:
    return f"{100 * value:.2f} %" if name == "accuracy" else number(value) if value >= 1000 else f"{value:.4f}"
