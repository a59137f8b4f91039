"""What is to be learned: data as batches, losses, scores, and how a network is called on them."""
