"""Plain training and grid search, to compare with."""
