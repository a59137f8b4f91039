"""Baselines for comparison: plain training and grid search."""
