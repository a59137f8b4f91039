#!/usr/bin/env bash
# A CSV file from the shell: train, predict, look at the certificate, prove it.
set -euo pipefail
cd "$(mktemp -d)"
python - <<'PYTHON'
import numpy as np, pandas as pd
chance = np.random.default_rng(0)
size, colour = chance.normal(30, 10, 400), chance.choice(["red", "blue"], 400)
price = 100 + 3 * size + 40 * (colour == "red") + chance.normal(0, 5, 400)
pd.DataFrame({"size": size, "colour": colour, "price": price}).to_csv("houses.csv", index=False)
PYTHON

pactrain train --data houses.csv --target price --model mlp:64 --budget "100 epochs" --out run
pactrain predict run houses.csv --out predictions.csv
pactrain verify run --trust  # follow the data file that the run names: it is our own
head -3 predictions.csv
