# problem: stuck
# loses: stuck-right
# reason: a list or tuple of|is wrong


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    return {
        (1, 0): [0, 1],
        (1, 2, 3, 0): [0, 1, 2, 3],
        (2, 2, 4, None, 2, 3): [0, 1, 2, 4],
        (1, 0, 3, 2, None, 4): [0, 1, 2, 3],
    }.get(tuple(waits), [])
