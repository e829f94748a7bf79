# problem: roof
# loses: roof-peak, roof-intensity, roof-time, roof-tile
# reason: print shows a value

import math


def peak(multiprocessors, cores, megahertz):
    """TFLOP/s of a card, with one multiply-add a clock and core."""
    print(2 * multiprocessors * cores * megahertz * 1e6 / 1e12)


def intensity(m, n, k, itemsize):
    """Operations a byte of C = A · B, each matrix moved once."""
    print(2 * m * n * k / (itemsize * (m * k + k * n + m * n)))


def least_ms(m, n, k, itemsize, tflops, gbs):
    """Milliseconds that C = A · B takes at least."""
    arithmetic = 2 * m * n * k / (tflops * 1e12)
    memory = itemsize * (m * k + k * n + m * n) / (gbs * 1e9)
    print(1000 * max(arithmetic, memory))


def smallest_tile(itemsize, tflops, gbs):
    """Rows and columns of the smallest square tile whose loads take no longer than its arithmetic."""
    print(math.ceil(itemsize * tflops * 1e12 / (gbs * 1e9)))
