"""Certificates: measuring a trained network, computing what is proved about it, stating it, checking it."""
