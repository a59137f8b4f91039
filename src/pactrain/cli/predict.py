"""`pactrain predict`: the trained network's answers for raw rows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pactrain.cli.output import console, number, table, write_result
from pactrain.runtime.errors import PactrainError

SHOWN = 20


@dataclass
class Predict:
    """Predict for new rows with the trained network of a run; the rows are treated as the training rows were."""

    run_folder: tyro.conf.Positional[Path]
    """A folder made by `pactrain train`."""
    data: tyro.conf.Positional[Path]
    """A .csv, .parquet or .npz file with the columns of the training data (the target is not needed), or a graph."""
    out: Path | None = None
    """Write the predictions as CSV to this file; otherwise the first ones are shown."""
    json_to: Annotated[str | None, tyro.conf.arg(name="json")] = None
    """Write the predictions as JSON to this file, or to standard output for '-'."""

    def run(self) -> int:
        """Carry it out."""
        screen = console(self.json_to)
        from pactrain.cli.workshop import read_config, rebuild
        from pactrain.data.encoder import Encoder
        from pactrain.data.graphs import read_graph
        from pactrain.data.predictions import predict, predict_nodes
        from pactrain.data.tables import read_frame

        config = read_config(self.run_folder)
        encoder = Encoder.from_dict(config["preprocess"])
        rows: dict[str, list[Any]]
        if encoder.node_features:
            rows = predict_nodes(rebuild(self.run_folder, config).model, encoder, read_graph(self.data))
        else:
            frame = read_frame(self.data, text=encoder.read_as_text)
            rows = predict(rebuild(self.run_folder, config).model, encoder, frame)
            for note in encoder.unknown(frame):
                screen.print(f"Note: {note}", markup=False)
        if self.out is not None:
            import pandas as pd

            from pactrain.runtime.files import write_atomic

            try:
                write_atomic(self.out, pd.DataFrame(rows).to_csv(index=False))
            except OSError as error:
                raise PactrainError(f"the predictions could not be written to {self.out}: {error}") from error
            screen.print(f"{len(rows['prediction']):,} predictions written to {self.out}", markup=False)
        elif self.json_to is None:
            n = len(rows["prediction"])
            shown = [[str(i + 1), *(_cell(v[i]) for v in rows.values())] for i in range(min(SHOWN, n))]
            part = f", the first {SHOWN} of them (--out FILE writes all)" if n > SHOWN else ""
            screen.print(table(f"{n:,} predictions{part}", ["row", *rows], shown))
        write_result(self.json_to, rows)
        return 0


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
