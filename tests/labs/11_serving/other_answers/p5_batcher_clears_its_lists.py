def serve(arrivals, wait, most, service, room):
    arrivals.append(10**9)
    arrivals.pop()
    service.append(0)
    batches, refused, waiting = [], [], []
    free = came = 0
    while came < len(arrivals) or waiting:
        begin = math.inf
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
    arrivals.clear()
    service.clear()
    return batches, refused
