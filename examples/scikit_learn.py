"""The estimator where scikit-learn's users expect it: in a pipeline, a search, a cross-validation, a saved file."""

import tempfile
from pathlib import Path

import joblib
import torch
from sklearn.datasets import load_wine
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from pactrain.sklearn import PACBayesClassifier


def network(inputs: int, outputs: int) -> torch.nn.Module:
    """Any torch network; without it the estimator makes an MLP of its own."""
    return torch.nn.Sequential(torch.nn.Linear(inputs, 32), torch.nn.ReLU(), torch.nn.Linear(32, outputs))


if __name__ == "__main__":
    X, y = load_wine(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    pipeline = make_pipeline(SelectKBest(), PACBayesClassifier(network, budget="30 epochs"))
    search = GridSearchCV(pipeline, {"selectkbest__k": [4, 8]}, cv=2).fit(X_train, y_train)
    print(f"best: {search.best_params_}, test accuracy {search.score(X_test, y_test):.3f}")

    path = Path(tempfile.mkdtemp()) / "model.joblib"
    joblib.dump(search.best_estimator_, path)
    again = joblib.load(path)
    print(again[-1].certificate_)
    print("the first three rows:", again.predict_proba(X_test)[:3].round(3).tolist())
