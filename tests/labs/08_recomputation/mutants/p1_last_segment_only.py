# problem: length
# loses: length-peak, length-best
# reason: peak returns the wrong value


def peak(layers, length, inside):
    """Return the activations at the peak, without the chain's input."""
    count = math.ceil(layers / length)
    last = layers - (count - 1) * length
    return count - 1 + inside * last


def layers_run(layers, length):
    """Return how many layers run forward in one step."""
    return layers + (math.ceil(layers / length) - 1) * length


def best_length(layers, inside):
    """Return the length with the least peak, of several that with the fewest layers run, then the shortest."""
    return min(range(1, layers + 1), key=lambda length: (peak(layers, length, inside), layers_run(layers, length)))
