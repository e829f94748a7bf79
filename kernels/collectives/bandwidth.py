"""Algorithm and bus bandwidth as NVIDIA's nccl-tests define them.

Algorithm bandwidth is N/t. What a link carries depends on the collective and on the number of ranks, so algorithm
bandwidths of different k cannot be compared with the hardware; bus bandwidth can: it is N/t times the bytes that the
busiest rank must at least send or receive, as a share of N. The factor is the same for all algorithms, so bus bandwidth
is what a link carries where the algorithm sends no more than it must, as rings do.

These factors are for messages between ranks. Where the network itself adds (in-network reduction: NVLS in an NVSwitch,
SHARP in InfiniBand) a rank sends its buffer once and gets the sum once; the source's summary has the factor
(k − 1)/(k + 1) for such an all-reduce, which is not in FACTORS: NVLS is off in all that this lab measures.

Source: https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md, read at commit a0b82b2 (2026-07).
"""

FACTORS = {
    "all-reduce": lambda k: 2 * (k - 1) / k,
    "reduce-scatter": lambda k: (k - 1) / k,
    "all-gather": lambda k: (k - 1) / k,
    "broadcast": lambda k: 1.0,
    "reduce": lambda k: 1.0,
}


def bus_factor(collective: str, ranks: int) -> float:
    """Return bus bandwidth divided by algorithm bandwidth. ValueError for an unknown collective or no rank."""
    if collective not in FACTORS:
        raise ValueError(f"there is no collective {collective!r}; choose one of {', '.join(FACTORS)}")
    if ranks < 1:
        raise ValueError(f"a collective has at least one rank, not {ranks}")
    return FACTORS[collective](ranks)


def algorithm_bandwidth(n: float, seconds: float) -> float:
    """Return N/t in bytes per second. `n`: bytes of a rank's whole buffer, for all-gather and reduce-scatter all k
    parts."""
    if seconds <= 0:
        raise ValueError(f"a collective takes more than no time, not {seconds} s")
    return n / seconds


def bus_bandwidth(collective: str, n: float, seconds: float, ranks: int) -> float:
    """Return N/t times the collective's factor, in bytes per second."""
    return algorithm_bandwidth(n, seconds) * bus_factor(collective, ranks)
