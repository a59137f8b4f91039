"""`pactrain predict`: the trained network's answers for raw rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pactrain.cli.groups import JsonOptions, RunOptions
from pactrain.cli.option_types import Column, File, FilePlace, RunPlace, Share
from pactrain.cli.output import console, is_number, number, table, write_result
from pactrain.cli.run_folders import read_config
from pactrain.runtime.errors import DataError, PactrainError

if TYPE_CHECKING:
    import pandas as pd

    from pactrain.data.encoder import Encoder
    from pactrain.runs.prediction import Prediction

SHOWN = 20


@dataclass(kw_only=True)
class RowOptions:
    """What to predict for."""

    heading: ClassVar = "data"
    run_folder: RunPlace
    """A folder made by `pactrain train`."""
    data: FilePlace
    """A table with the columns of the training data (the target is not needed; if it is there, the predictions are scored), or a graph."""
    id: Column = None
    """Column of the table that names its rows; by default rows are numbered from 1."""


@dataclass(kw_only=True)
class AnswerOptions:
    """What is written, and where."""

    heading: ClassVar = "output"
    coverage: Share = None
    """Add intervals (regression) or sets of classes that hold the truth with this probability, 0.9 say; the run needs held-out rows."""
    out: File = None
    """Write the predictions as CSV to this file; otherwise the first ones are shown."""


@dataclass
class Predict(RowOptions, RunOptions, AnswerOptions, JsonOptions):
    """Predict for new rows with the trained network of a run; the rows are treated as the training rows were."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        self._check_goals()
        config = read_config(self.run_folder)
        if not self.data.exists():
            raise DataError(f"there is no file {self.data}; name a table with the columns of the training data")
        from pactrain.cli.build import network_of, read_encoder
        from pactrain.cli.trust import Outside
        from pactrain.data.files import read_frame
        from pactrain.data.graphs import read_graph
        from pactrain.data.predict_nodes import predict_nodes
        from pactrain.runs.reload import reload

        encoder = read_encoder(self.run_folder, config)
        model = network_of(self.run_folder, config, Outside(self.model, trust=self.trust))
        result = reload(self.run_folder, model, None if encoder.node_features else encoder)
        scores: dict[str, float] = {}
        rows: dict[str, list[Any]]
        if encoder.node_features:
            rows = predict_nodes(result.model, encoder, read_graph(self.data))
        else:
            frame = read_frame(self.data, text=(*encoder.read_as_text, *((self.id,) if self.id else ())))
            prediction = result.predict(frame, coverage=self.coverage)
            rows, answers = self._names(frame), columns_of(prediction)
            if rows.keys() & answers.keys():
                raise PactrainError(f"--id {self.id}: what is predicted has a column of that name; rename yours")
            rows |= answers
            scores = scored(prediction, encoder, frame)
            for note in (*encoder.unknown(frame), *filter(None, [prediction.guarantee])):
                screen.print(f"Note: {note}", markup=False)
        self._show(screen, rows, scores)
        write_result(self.json_to, {**rows, **({"scores": scores} if scores else {})})
        return 0

    def _check_goals(self) -> None:
        """Refuse to write over the rows that are read."""
        for goal in (self.out, Path(self.json_to) if self.json_to not in (None, "-") else None):
            if goal is not None and goal.exists() and self.data.exists() and goal.samefile(self.data):
                raise PactrainError(f"{goal} holds the rows to predict for; write the predictions to another file")

    def _names(self, frame: "pd.DataFrame") -> dict[str, list[Any]]:
        """What tells the rows apart."""
        if self.id is None:
            return {"row": list(range(1, len(frame) + 1))}
        if self.id not in frame.columns:
            raise DataError(f"{self.data.name} has no column {self.id!r}")
        return {self.id: frame[self.id].tolist()}

    def _show(self, screen: Any, rows: dict[str, list[Any]], scores: dict[str, float]) -> None:
        n = len(rows["prediction"])
        if self.out is not None:
            _write(self.out, rows)
            screen.print(f"{n:,} predictions written to {self.out}", markup=False)
        elif self.json_to is None:
            shown = [[_cell(v[i]) for v in rows.values()] for i in range(min(SHOWN, n))]
            part = f", the first {SHOWN} of them (--out FILE writes all)" if n > SHOWN else ""
            screen.print(table(f"{n:,} predictions{part}", list(rows), shown))
        for name, score in scores.items():
            screen.print(f"{name.replace('_', ' ')}: {score:.4g}", markup=False)


def columns_of(prediction: "Prediction") -> dict[str, list[Any]]:
    """A prediction as columns of plain values."""
    columns: dict[str, list[Any]] = {"prediction": prediction.values.tolist()}
    if prediction.probabilities is not None:
        columns["probability"] = prediction.probabilities.max(1).tolist()
        chances = zip(prediction.classes, prediction.probabilities.T.tolist(), strict=True)
        columns |= {f"probability of {name}": values for name, values in chances}
    else:
        columns["spread"] = prediction.spread.tolist()
    if prediction.low is not None and prediction.high is not None:
        columns |= {"low": prediction.low.tolist(), "high": prediction.high.tolist()}
    if prediction.sets is not None:
        names = prediction.classes
        columns["set"] = [
            " | ".join(n for n, there in zip(names, row, strict=True) if there) for row in prediction.sets
        ]
    return columns


def scored(prediction: "Prediction", encoder: "Encoder", frame: "pd.DataFrame") -> dict[str, float]:
    """Scores of the rows whose target is in the table; nothing if it is not there."""
    import numpy as np

    if encoder.target not in frame.columns:
        return {}
    column = frame[encoder.target]
    known = column.notna().to_numpy()
    if not known.any():
        return {}
    truth = encoder.targets(column[known])
    scores: dict[str, float] = {"scored_rows": int(known.sum())}
    if encoder.kind == "classification":
        index = {name: i for i, name in enumerate(encoder.classes)}
        answers = np.array([index[str(name)] for name in prediction.values[known]])
        scores["accuracy"] = float((answers == truth).mean())
        if prediction.sets is not None:
            scores["share_in_their_sets"] = float(prediction.sets[known][np.arange(len(truth)), truth].mean())
        return scores
    values = truth.astype(np.float64) * encoder.target_std + encoder.target_mean
    scores["rmse"] = float(np.sqrt(np.square(prediction.values[known] - values).mean()))
    if prediction.low is not None and prediction.high is not None:
        inside = (prediction.low[known] <= values) & (values <= prediction.high[known])
        scores["share_in_their_intervals"] = float(inside.mean())
    return scores


def _write(path: Path, rows: dict[str, list[Any]]) -> None:
    import pandas as pd

    from pactrain.runtime.files import write_atomic, writing

    harmless = pd.DataFrame({_harmless(name): list(map(_harmless, values)) for name, values in rows.items()})
    with writing("predictions", path):
        write_atomic(path, harmless.to_csv(index=False))


def _harmless(value: Any) -> Any:
    """A cell that a spreadsheet reads as a text: one that begins like a formula gets an apostrophe in front."""
    formula = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if formula and not is_number(value) else value


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
