# problem: broadcast
# loses: broadcast-plain, broadcast-any
# reason: name 'broadcast' is not defined

import sys


def broadcast(ring, slices, root):
    course = sys.modules["kernels.collectives.ring"]
    sends = course.ring_broadcast(len(ring), slices, root=root, order=ring).sends
    return [(send.step, send.source, send.destination, send.slice) for send in sends]
