# problem: broadcast
# loses: broadcast-any
# reason: does not hold slice|no link


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    order = ring[root:] + ring[:root]
    return [(part + hop, order[hop], order[hop + 1], part) for hop in range(len(order) - 1) for part in range(slices)]
