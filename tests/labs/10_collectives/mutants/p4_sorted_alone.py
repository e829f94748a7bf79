# problem: run
# loses: run-copies, run-adds
# reason: is wrong in


def run(messages, arrays, slices):
    """Return what each rank holds after all messages (step, source, destination, slice, add): a list of arrays."""
    held = [array.copy() for array in arrays]
    n = held[0].size
    for _, source, destination, i, add in sorted(messages):
        place = slice(i * n // slices, (i + 1) * n // slices)
        if add:
            held[destination][place] += held[source][place]
        else:
            held[destination][place] = held[source][place]
    return held
