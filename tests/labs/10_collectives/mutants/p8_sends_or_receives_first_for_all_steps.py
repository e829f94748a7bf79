# problem: programs
# loses: programs-even, programs-odd
# reason: stop for ever|lacks


def programs(ring):
    """Return the program of each rank, by rank: a list of ("send", to, slice) and ("receive", from, slice)."""
    k = len(ring)
    sends, found = [[] for _ in ring], [[] for _ in ring]
    for step in range(k - 1):
        for place, rank in enumerate(ring):
            send = ("send", ring[(place + 1) % k], ring[(place - step - 1) % k])
            receive = ("receive", ring[place - 1], ring[(place - step - 2) % k])
            sends[rank] += [send]
            found[rank] += [receive]
    return [found[r] + sends[r] if ring.index(r) % 2 else sends[r] + found[r] for r in range(k)]
