# problem: sums
# loses: sums-half, sums-float
# reason: is not a dict

import math

prediction = [1024, 2048, 2448, 2148, 2**24, 2**24 + 800]


def lost_from(step, bits):
    """Return the smallest power of two V with V + step == V in numbers of this many significant bits."""
    power = 2.0 ** math.floor(math.log2(step) + bits)
    return power if power >= step * 2**bits else 2 * power
