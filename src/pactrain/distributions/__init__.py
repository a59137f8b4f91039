"""The Gaussian prior and posterior over the weights of a network, and drawing from them."""
