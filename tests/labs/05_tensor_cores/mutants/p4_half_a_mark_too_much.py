# problem: sums
# loses: sums-lost
# reason: 0.5 times the right one

import math

prediction = {
    "1024 + 100 × 1/4, FP16": 1024,
    "2048 + 100 × 1, FP16": 2048,
    "2048 + 100 × 3, FP16": 2448,
    "2048 + 100 × 1, FP32": 2148,
    "2**24 + 100 × 3, FP32": 2**24,
    "2**24 + 100 × 9, FP32": 2**24 + 800,
}


def lost_from(step, bits):
    """Return the smallest power of two V with V + step == V in numbers of this many significant bits."""
    power = 2.0 ** math.floor(math.log2(step) + bits - 1)
    return power if power >= step * 2 ** (bits - 1) else 2 * power
