"""scikit-learn estimators: `PACBayesClassifier` and `PACBayesRegressor`."""

from pactrain.sklearn.estimators import PACBayesClassifier, PACBayesRegressor

__all__ = ["PACBayesClassifier", "PACBayesRegressor"]
