"""The scan before training, which estimates the exponential moment of the loss under the prior."""
