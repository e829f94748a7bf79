# problem: stuck
# loses: stuck-right
# reason: a list or tuple of


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
    return []
