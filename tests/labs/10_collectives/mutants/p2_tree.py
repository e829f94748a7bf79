# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: no link


def broadcast(ring, slices, root):
    """Return the messages of a broadcast on a one-way ring: a list of (step, source, destination, slice)."""
    first, k = ring.index(root), len(ring)
    order = ring[first:] + ring[:first]
    found, step = [], 0
    for part in range(slices):
        reach = 1
        while reach < k:
            for place in range(min(reach, k - reach)):
                found.append((step, order[place], order[place + reach], part))
            reach, step = 2 * reach, step + 1
    return found
