# problem: batcher
# loses: batcher-idle, batcher-busy, batcher-full
# reason: too early|could take


def serve(arrivals, wait, most, service, room):
    batches, refused, waiting = [], [], []
    free = came = 0
    while came < len(arrivals) or waiting:
        begin = math.inf
        most = min(most, 8)
        if len(waiting) >= most:
            begin = max(free, arrivals[waiting[most - 1]])
        if waiting:
            begin = min(begin, max(free, arrivals[waiting[0]] + wait))
        if came < len(arrivals) and arrivals[came] <= begin:
            (waiting if len(waiting) < room else refused).append(came)
            came += 1
            continue
        taken, waiting = waiting[:most], waiting[most:]
        batches.append((begin, taken))
        free = begin + service[len(taken) - 1]
    return batches, refused
