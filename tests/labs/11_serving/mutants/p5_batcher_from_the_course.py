# problem: batcher
# loses: batcher-idle, batcher-busy, batcher-full
# reason: name 'serve' is not defined


from kernels.serving.batcher import Batcher, Limits


def serve(arrivals, wait, most, service, room):
    """Return what becomes of the requests: the batches, as (begin, requests), and the requests that were refused."""
    batcher = Batcher(Limits(batch_limit=most, wait_limit=wait, capacity=room))
    came, free, batches, refused = 0, 0, [], []
    while came < len(arrivals) or len(batcher):
        due = batcher.due()
        begin = math.inf if due is None else max(free, due, arrivals[came - 1])
        if came < len(arrivals) and arrivals[came] <= begin:
            if not batcher.offer(came, arrivals[came]):
                refused.append(came)
            came += 1
            continue
        taken = batcher.take(begin)
        batches.append((begin, taken))
        free = begin + service[len(taken) - 1]
    return batches, refused
