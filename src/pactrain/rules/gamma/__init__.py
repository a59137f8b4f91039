"""How strongly the data may move the weights: γ by leave-one-out."""
