"""The bound of a test set (Clopper and Pearson): no divergence, any fixed predictor.

BetaInv(1 − δ; errors + 1, n − errors)
"""

from pactrain.errors import PactrainError


def clopper_pearson(errors: int, n: int, delta: float) -> float:
    """Upper bound of the error of a predictor that made `errors` mistakes on `n` examples it was not trained on.

    >>> round(clopper_pearson(3, 100, 0.05), 7)
    0.0757108
    """
    if not 0 <= errors <= n or n < 1:
        raise PactrainError(f"{errors} errors of {n} examples cannot be")
    if errors == n:
        return 1.0
    from scipy.special import betaincinv

    return float(betaincinv(errors + 1, n - errors, 1 - delta))
