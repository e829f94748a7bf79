# problem: stuck
# loses: stuck-right
# reason: stuck returns nothing


def stuck(waits):
    """Return the ranks that never go on, sorted. waits[r]: the rank for which rank r waits, or None."""
