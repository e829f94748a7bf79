# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: name 'broadcast' is not defined


def broadcast(ring, slices, root):
    from kernels.collectives import ring as course

    sends = course.ring_broadcast(len(ring), slices, root=root, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice) for send in sends]
