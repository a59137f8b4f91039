"""What is proved about a trained network: measuring, charging, stating, checking."""
