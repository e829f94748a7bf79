# problem: stuck
# loses: stuck-right
# reason: a list or tuple of|is wrong


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    return [rank for rank, other in enumerate(waits) if other is not None]
