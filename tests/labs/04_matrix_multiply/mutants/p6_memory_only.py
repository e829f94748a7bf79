# problem: roof
# loses: roof-time
# reason: the error differs

import math


def peak(multiprocessors, cores, megahertz):
    """TFLOP/s of a card, with one multiply-add a clock and core."""
    return 2 * multiprocessors * cores * megahertz * 1e6 / 1e12


def intensity(m, n, k, itemsize):
    """Operations a byte of C = A · B, each matrix moved once."""
    return 2 * m * n * k / (itemsize * (m * k + k * n + m * n))


def least_ms(m, n, k, itemsize, tflops, gbs):
    """Milliseconds that C = A · B takes at least."""
    memory = itemsize * (m * k + k * n + m * n) / (gbs * 1e9)
    return 1000 * memory


def smallest_tile(itemsize, tflops, gbs):
    """Rows and columns of the smallest square tile whose loads take no longer than its arithmetic."""
    return math.ceil(itemsize * tflops * 1e12 / (gbs * 1e9))
