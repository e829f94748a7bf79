# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: a step before the first


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    first = ring.index(root)
    order = ring[first:] + ring[:first]
    return [
        (part + hop - 1, order[hop], order[hop + 1], part) for hop in range(len(order) - 1) for part in range(slices)
    ]
