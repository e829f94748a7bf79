# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: no link


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    first, k = ring.index(root), len(ring)
    order = ring[first:] + ring[:first]
    found = []
    for part in range(slices):
        if part % 2:
            found += [(part // 2 + hop, order[-hop % k], order[-hop - 1], part) for hop in range(k - 1)]
        else:
            found += [(part // 2 + hop, order[hop], order[hop + 1], part) for hop in range(k - 1)]
    return found
