"""The moment of the loss, estimated under the prior before training."""
