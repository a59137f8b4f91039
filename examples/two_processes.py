"""Several seeds at once, each run in a process of its own; the same seed gives the same network on any of them."""

import statistics

import torch
from joblib import Parallel, delayed
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from pactrain.sklearn import PACBayesClassifier


def accuracy(seed: int) -> float:
    """Test accuracy of one run."""
    torch.set_num_threads(1)  # two processes that use all cores would wait for each other
    X, y = load_wine(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y)
    model = PACBayesClassifier(budget="20 epochs", random_state=seed).fit(X_train, y_train)
    return float(model.score(X_test, y_test))


if __name__ == "__main__":
    found = Parallel(n_jobs=2)(delayed(accuracy)(seed) for seed in range(2))
    print(f"accuracy {statistics.mean(found):.3f} ± {statistics.stdev(found):.3f} over seeds: {found}")
