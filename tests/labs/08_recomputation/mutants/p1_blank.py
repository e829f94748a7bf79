# problem: length
# loses: length-peak, length-work, length-best
# reason: peak is not written yet


def peak(layers, length, inside):
    """Return the activations at the peak, without the chain's input."""


def layers_run(layers, length):
    """Return how many layers run forward in one step."""


def best_length(layers, inside):
    """Return the length with the least peak, of several that with the fewest layers run, then the shortest."""
