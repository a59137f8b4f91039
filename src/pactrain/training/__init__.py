"""Training: the trainer, its schedule, its steps, its state."""
