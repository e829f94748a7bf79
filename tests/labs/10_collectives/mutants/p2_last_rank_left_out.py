# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: lacks the data|empty list


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    first = ring.index(root)
    order = ring[first:] + ring[:first]
    return [(part + hop, order[hop], order[hop + 1], part) for hop in range(len(order) - 2) for part in range(slices)]
