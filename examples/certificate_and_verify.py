"""A certificate worth reading: a prior learned on half of the rows, a bound on the other half, proved again from JSON."""

import json
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits

import pactrain

X, y = load_digits(return_X_y=True)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
result = pactrain.fit(model, (X / 16, y), bound="kl", prior_data=0.5, budget="30 epochs")
print(result.certificate)

path = Path(tempfile.mkdtemp()) / "certificate.json"
path.write_text(json.dumps(result.certificate.to_dict()))
certificate = pactrain.Certificate.read(path)
print("recomputed from the file:", certificate.recheck())

edited = json.loads(path.read_text())
edited["statements"][0]["value"] /= 2
print("after editing a number:", pactrain.Certificate.from_dict(edited).recheck())
