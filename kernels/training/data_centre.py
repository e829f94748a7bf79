"""The sources' arithmetic: what a training cycle asks of a data centre, and how long a card takes for it.

Units: exaFLOP are 1e18 operations, TFLOP/s 1e12 per second, TB 1e12 bytes, MB/s 1e6 bytes per second. `share` is the
part of a card's peak that a program reaches.
"""

import math


def tflops(exaflop: float, hours: float) -> float:
    """Return TFLOP/s that do `exaflop` in so many hours."""
    return exaflop * 1e6 / (_positive("hours", hours) * 3600)


def megabytes_per_second(terabytes: float, hours: float) -> float:
    """Return MB/s that bring `terabytes` in so many hours."""
    return terabytes * 1e6 / (_positive("hours", hours) * 3600)


def gpu_days(exaflop: float, peak_tflops: float, share: float = 1.0) -> float:
    """Return days of one card with that peak for `exaflop`."""
    return exaflop * 1e6 / (_positive("peak_tflops", peak_tflops) * _share(share)) / 86_400


def cards_needed(exaflop: float, hours: float, peak_tflops: float, share: float = 1.0) -> int:
    """Return whole cards that do `exaflop` in so many hours."""
    return math.ceil(tflops(exaflop, hours) / (_positive("peak_tflops", peak_tflops) * _share(share)))


def _positive(name: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{name} is {value}; it must be above 0")
    return value


def _share(share: float) -> float:
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; it is a part of the peak, above 0 and at most 1")
    return share
