# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: name 'broadcast' is not defined

from kernels.collectives.ring import ring_broadcast


def broadcast(ring, slices, root):
    sends = ring_broadcast(len(ring), slices, root=root, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice) for send in sends]
