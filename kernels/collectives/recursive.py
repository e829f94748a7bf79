"""Recursive doubling and halving: in each of log2 k rounds, ranks pair up with partners twice as far, or half as far.

k is a power of two. N: bytes of a buffer. Sources: Thakur, Rabenseifner and Gropp, "Optimization of collective
communication operations in MPICH" (2005).
"""

from kernels.collectives.ring import later
from kernels.collectives.schedule import Schedule, Send
from kernels.collectives.sizes import check_multiple, check_power_of_two, check_sizes


def recursive_doubling_all_reduce(ranks: int, slices: int = 1) -> Schedule:
    """Let partners exchange all they have and add it.

    log2 k steps, the fewest possible; one message of N bytes each, so N·log2 k bytes leave each rank. Best for small N.
    Both partners read before either writes.
    """
    check_sizes(ranks, slices)
    check_power_of_two("recursive_doubling_all_reduce", ranks)
    sends = [
        Send(step, rank, rank ^ (1 << step), 0, True, slices)
        for step in range(ranks.bit_length() - 1)
        for rank in range(ranks)
    ]
    return Schedule("all-reduce", ranks, slices, sends)


def recursive_halving_reduce_scatter(ranks: int, slices: int) -> Schedule:
    """Let partners split what they still work on: each sends the half that the other one keeps.

    S a multiple of k; log2 k steps with messages of N/2, N/4, ..., N/k bytes: (k − 1)·N/k bytes leave each rank, as in
    the ring, in fewer messages. But partners are far apart, so links of a topology are shared.
    """
    check_sizes(ranks, slices)
    check_power_of_two("recursive_halving_reduce_scatter", ranks)
    check_multiple("recursive_halving_reduce_scatter", slices, ranks)
    part = slices // ranks
    sends = []
    for step in range(ranks.bit_length() - 1):
        away = ranks >> (step + 1)
        for rank in range(ranks):
            theirs = (rank ^ away) // away * away  # the partner's half begins at this rank's part
            sends.append(Send(step, rank, rank ^ away, theirs * part, True, away * part))
    return Schedule("reduce-scatter", ranks, slices, sends)


def recursive_doubling_all_gather(ranks: int, slices: int) -> Schedule:
    """Let partners exchange all that they have gathered, twice as much in each step.

    S a multiple of k; log2 k steps with messages of N/k, ..., N/4, N/2 bytes: (k − 1)·N/k bytes leave each rank.
    """
    check_sizes(ranks, slices)
    check_power_of_two("recursive_doubling_all_gather", ranks)
    check_multiple("recursive_doubling_all_gather", slices, ranks)
    part = slices // ranks
    sends = []
    for step in range(ranks.bit_length() - 1):
        away = 1 << step
        sends += [Send(step, r, r ^ away, r // away * away * part, False, away * part) for r in range(ranks)]
    return Schedule("all-gather", ranks, slices, sends)


def halving_doubling_all_reduce(ranks: int, slices: int) -> Schedule:
    """Return recursive halving, then recursive doubling: Rabenseifner's all-reduce.

    S a multiple of k; 2·log2 k steps; 2(k − 1)·N/k bytes leave each rank, as in the ring.
    """
    first = recursive_halving_reduce_scatter(ranks, slices)
    second = recursive_doubling_all_gather(ranks, slices)
    return Schedule("all-reduce", ranks, slices, [*first.sends, *later(second.sends, first.steps)])
