# problem: run
# loses: run-copies, run-adds
# reason: run returns nothing


def run(messages, arrays, slices):
    """Return what each rank holds after all messages (step, source, destination, slice, add): a list of arrays."""
