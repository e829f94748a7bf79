# problem: run
# loses: run-copies, run-adds
# reason: is wrong in


def run(messages, arrays, slices):
    """Return what each rank holds after all messages (step, source, destination, slice, add): a list of arrays."""
    return [sum(arrays)] * len(arrays)
