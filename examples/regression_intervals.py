"""Numbers with intervals: residuals left out in cross-validation tell how wide an interval has to be."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.model_selection import cross_val_predict, train_test_split

from pactrain.sklearn import PACBayesRegressor


def network(inputs: int, outputs: int) -> torch.nn.Module:
    """A small network for a small table."""
    return torch.nn.Sequential(torch.nn.Linear(inputs, 32), torch.nn.ReLU(), torch.nn.Linear(32, outputs))


X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = PACBayesRegressor(network, budget="60 epochs")

left_out = np.abs(y_train - cross_val_predict(model, X_train, y_train, cv=4))
radius = np.quantile(left_out, 0.9)
mean, std = model.fit(X_train, y_train).predict(X_test, return_std=True)
inside = (np.abs(y_test - mean) <= radius).mean()
print(
    f"± {radius:.0f} holds {100 * inside:.0f} % of the unseen targets (90 % wanted); R² {model.score(X_test, y_test):.2f}"
)
print(
    f"first patient: {mean[0]:.0f} ± {radius:.0f}, of which ± {std[0]:.0f} is the network's own; truth {y_test[0]:.0f}"
)
