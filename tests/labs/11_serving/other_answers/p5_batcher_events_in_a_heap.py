import heapq


def serve(arrivals, wait, most, service, room):
    events = [(t, 0, i) for i, t in enumerate(arrivals)]
    heapq.heapify(events)
    queue, refused, batches, idle_at = [], [], [], 0
    while events:
        t, kind, i = heapq.heappop(events)
        if kind == 0:
            if len(queue) >= room:
                refused.append(i)
            else:
                queue.append(i)
                heapq.heappush(events, (t + wait, 1, i))
                heapq.heappush(events, (t, 1, i))
        if kind == 1 and t >= idle_at and queue and (len(queue) >= most or arrivals[queue[0]] + wait <= t):
            now, queue = queue[:most], queue[most:]
            batches.append((t, now))
            idle_at = t + service[len(now) - 1]
            heapq.heappush(events, (idle_at, 1, -1))
            heapq.heappush(events, (t, 1, -1))
    return batches, refused
