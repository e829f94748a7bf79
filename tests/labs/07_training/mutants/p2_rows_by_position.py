# problem: average
# loses: average-rows
# reason: the gradient of weight \d is wrong in


def average(towers, samples):
    """Return the gradients of the mean loss over all samples: a list of float32 arrays, or None for no gradient."""
    total = sum(samples)
    result = []
    for gradients in zip(*towers, strict=True):
        found = None
        for gradient, count in zip(gradients, samples, strict=True):
            if gradient is None:
                continue
            if isinstance(gradient, dict):
                dense = np.zeros(gradient["shape"], np.float32)
                np.add.at(dense, np.arange(len(gradient["indices"])) % len(dense), gradient["values"])
                gradient = dense
            share = gradient * np.float32(count / total)
            found = share if found is None else found + share
        result.append(found)
    return result
