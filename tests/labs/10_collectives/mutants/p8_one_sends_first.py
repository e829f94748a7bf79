# problem: programs
# loses: programs-even, programs-odd
# reason: too many rounds


def programs(ring):
    """Return the program of each rank, by rank: a list of ("send", to, slice) and ("receive", from, slice)."""
    k = len(ring)
    found = [[] for _ in ring]
    for step in range(k - 1):
        for place, rank in enumerate(ring):
            send = ("send", ring[(place + 1) % k], ring[(place - step - 1) % k])
            receive = ("receive", ring[place - 1], ring[(place - step - 2) % k])
            found[rank] += [receive, send] if place else [send, receive]
    return found
