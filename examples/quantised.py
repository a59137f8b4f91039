"""A trained network made small: weights of eight bits, by torch's own tool, because it is still a plain torch network."""

import io
import warnings

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pactrain

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
pactrain.fit(model, (X_train, y_train), budget="20 epochs")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch means to move this to a package of its own
    small = torch.ao.quantization.quantize_dynamic(model.eval(), {torch.nn.Linear}, dtype=torch.qint8)


def kilobytes(network):
    """Size of the saved weights."""
    torch.save(network.state_dict(), file := io.BytesIO())
    return len(file.getvalue()) / 1000


inputs, target = torch.tensor(X_test).float(), torch.tensor(y_test)
for name, network in (("32 bits", model), ("8 bits", small)):
    right = (network(inputs).argmax(1) == target).float().mean()
    print(f"{name}: {kilobytes(network):.0f} kB, test accuracy {right:.3f}")
