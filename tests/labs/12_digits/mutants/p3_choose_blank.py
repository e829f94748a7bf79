# problem: choose
# loses: choose-parameters, choose-latency, choose-network
# reason: parameters is not written yet


def parameters(layers, image):
    """Return the number of weights and biases."""


def latency(layers, image, batch, card):
    """Return the estimated µs for a batch: launches, and for each layer its arithmetic or its memory."""


def choose(candidates, image, card, microseconds, floor):
    """Return the name of the best network that keeps both limits; None if none does."""
