# problem: programs
# loses: programs-odd
# reason: too many rounds


def programs(ring):
    """Return the program of each rank, by rank: a list of ("send", to, slice) and ("receive", from, slice)."""
    k = len(ring)
    found = [[] for _ in ring]
    for step in range(k - 1):
        for place, rank in enumerate(ring):
            send = ("send", ring[(place + 1) % k], ring[(place - step - 1) % k])
            receive = ("receive", ring[place - 1], ring[(place - step - 2) % k])
            odd = place == k - 1 and k % 2 == 1
            found[rank] += [receive, send] if place % 2 or odd else [send, receive]
            if k % 2 and k > 3 and place == 1 and step:
                found[rank][-2:] = [send, receive]
    return found
