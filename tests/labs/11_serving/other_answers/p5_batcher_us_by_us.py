from collections import deque


def serve(arrivals, wait, most, service, room):
    """Look at every µs in turn."""
    queue, batches, refused = deque(), [], []
    pending = deque(enumerate(arrivals))
    now = idle_from = 0
    while pending or queue:
        while pending and pending[0][1] == now:
            number, _ = pending.popleft()
            if len(queue) == room:
                refused.append(number)
            else:
                queue.append(number)
        while queue and now >= idle_from and (len(queue) >= most or now - arrivals[queue[0]] >= wait):
            batch = [queue.popleft() for _ in range(min(most, len(queue)))]
            batches.append((now, batch))
            idle_from = now + service[len(batch) - 1]
        now += 1
    return batches, refused
