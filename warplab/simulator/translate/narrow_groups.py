"""Which of a few lanes run together, in the language of `machine_compiler`: groups part, wait and are taken up again,
as `run.scheduler` has them, and what is counted then.

The functions find the numbers of the present run at `S` (`machine_access.FIELDS`).
"""

FUNCTIONS = ("entered", "round", "put", "take", "split", "part", "enter", "all_taken")

SOURCE = """

def entered(S, own, head):
    # Lanes are about to enter a loop: their trips so far are those of an earlier time.
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    i = 0
    while i < n:
        trips = ld8(own + 8 * ld4(list + 4 * i))
        first = i
        while i < n and ld8(own + 8 * ld4(list + 4 * i)) == trips:
            i = i + 1
        if trips:
            at = ld8(S + ENDED) + 24 * ld8(S + ENDED_DONE)
            st8(at, head)
            st8(at + 8, trips)
            st8(at + 16, i - first)
            st8(S + ENDED_DONE, ld8(S + ENDED_DONE) + 1)
    for i in range(n):
        st8(own + 8 * ld4(list + 4 * i), 0)


def round(S, own):
    list = ld8(S + LIST)
    for i in range(ld8(S + COUNT)):
        at = own + 8 * ld4(list + 4 * i)
        st8(at, ld8(at) + 1)


def enter(S, node, length, sites, entries):
    # The group is about to run a block. Returns 1, with nothing changed, if a limit is in the way; or after an error.
    n = ld8(S + COUNT)
    executed = ld8(S + EXECUTED) + n * length
    path = ld8(S + PATH) + length
    if executed > ld8(S + BUDGET) or path > ld8(S + PATH_ENDS):
        return 1
    if ld8(S + READS_DONE) + n * sites > ld8(S + READS_MOST):
        return 1
    if ld8(S + ENDED_DONE) + n * entries > ld8(S + ENDED_MOST):
        return 1
    st8(S + EXECUTED, executed)
    st8(S + PATH, path)
    st8(S + STEPS, ld8(S + STEPS) + 1)
    at = ld8(S + BLOCKS) + 40 * node
    st8(at, ld8(at) + n)
    st8(at + 8, ld8(at + 8) + ld8(S + WARPS))
    if ld8(S + STEPS_SEEN):
        return call(ld8(S + CALLBACK), 3, node, path - length, 0, 0)
    return 0


def all_taken(S, node):
    # Returns 1 after an error, as `part` does.
    at = ld8(S + BLOCKS) + 40 * node
    st8(at + 16, ld8(at + 16) + ld8(S + COUNT))
    st8(at + 24, ld8(at + 24) + ld8(S + WARPS))
    if ld8(S + BRANCHES_SEEN):
        return call(ld8(S + CALLBACK), 5, node, 0, 0, 0)
    return 0


def warps(S, list, n):
    warp_of = ld8(S + WARP_OF)
    last = -1
    found = 0
    for i in range(n):
        warp = ld4(warp_of + 4 * ld4(list + 4 * i))
        if warp != last:
            found = found + 1
        last = warp
    return found


def put(S, node, list, n):
    at = ld8(S + PENDING) + 8 * node * ld8(S + WORDS)
    for i in range(n):
        lane = ld4(list + 4 * i)
        st8(at + 8 * (lane >> 6), ld8(at + 8 * (lane >> 6)) | (1 << (lane & 63)))
    st1(ld8(S + WAITING) + node, 1)
    if node < ld8(S + LOWEST):
        st8(S + LOWEST, node)


def take(S, node):
    # The lanes that wait at the lowest node.
    at = ld8(S + PENDING) + 8 * node * ld8(S + WORDS)
    list = ld8(S + LIST)
    n = 0
    for k in range(ld8(S + WORDS)):
        bits = ld8(at + 8 * k)
        st8(at + 8 * k, 0)
        while bits:
            st4(list + 4 * n, 64 * k + ctz(bits))
            n = n + 1
            bits = bits & (bits - 1)
    st8(S + COUNT, n)
    st8(S + WARPS, warps(S, list, n))
    waiting = ld8(S + WAITING)
    st1(waiting + node, 0)
    node = node + 1
    while node < ld8(S + NODES) and ld1(waiting + node) == 0:
        node = node + 1
    st8(S + LOWEST, node)


def split(S, predicate, negated):
    # Sort the group's lanes by a predicate. Returns how many it holds for.
    n = ld8(S + COUNT)
    list = ld8(S + LIST)
    taken = ld8(S + TAKEN)
    other = ld8(S + OTHER)
    a = 0
    b = 0
    for i in range(n):
        lane = ld4(list + 4 * i)
        if ld8(predicate + 8 * lane) != negated:
            st4(taken + 4 * a, lane)
            a = a + 1
        else:
            st4(other + 4 * b, lane)
            b = b + 1
    return a


def part(S, node, a, block):
    # The taken lanes wait at a node, the others go on.
    n = ld8(S + COUNT) - a
    list = ld8(S + LIST)
    other = ld8(S + OTHER)
    ours = warps(S, ld8(S + TAKEN), a)
    rest = warps(S, other, n)
    at = ld8(S + BLOCKS) + 40 * block
    st8(at + 16, ld8(at + 16) + a)
    st8(at + 24, ld8(at + 24) + ours)
    st8(at + 32, ld8(at + 32) + ours + rest - ld8(S + WARPS))
    if ld8(S + BRANCHES_SEEN):
        if call(ld8(S + CALLBACK), 5, block, a, 0, 0):
            return 1
    put(S, node, ld8(S + TAKEN), a)
    for i in range(n):
        st4(list + 4 * i, ld4(other + 4 * i))
    st8(S + COUNT, n)
    st8(S + WARPS, rest)
    return 0
"""
