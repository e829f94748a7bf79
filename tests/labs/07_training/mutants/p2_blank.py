# problem: average
# loses: average-dense, average-none, average-rows
# reason: average returns nothing


def average(towers, samples):
    """Return the gradients of the mean loss over all samples: a list of float32 arrays, or None for no gradient."""
