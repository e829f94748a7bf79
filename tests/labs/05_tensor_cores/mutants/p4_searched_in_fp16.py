# problem: sums
# loses: sums-lost
# reason: expected  512|expected  16777216

import numpy as np

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
    power = np.float16(1)
    while power < 32768 and power + np.float16(step) != power:
        power *= np.float16(2)
    return float(power)
