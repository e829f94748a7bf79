# problem: roof
# loses: roof-tile
# reason: off by one: every wrong answer, \d of \d, is too large by 1|returns the wrong value[\s\S]*expected +96
def peak(multiprocessors, cores, megahertz):
    """Return the TFLOP/s of a card whose cores finish one multiply-add per clock cycle each."""
    return 2 * multiprocessors * cores * megahertz * 1e6 / 1e12


def intensity(m, n, k, itemsize):
    """Return the operations per byte of C = A · B, with each matrix moved once."""
    return 2 * m * n * k / (itemsize * (m * k + k * n + m * n))


def least_ms(m, n, k, itemsize, tflops, gbs):
    """Return the least time that C = A · B takes, in milliseconds."""
    arithmetic = 2 * m * n * k / (tflops * 1e12)
    memory = itemsize * (m * k + k * n + m * n) / (gbs * 1e9)
    return 1000 * max(arithmetic, memory)


def smallest_tile(itemsize, tflops, gbs):
    """Return the side of the smallest square tile whose loads take no longer than its arithmetic."""
    return int(itemsize * tflops * 1e12 / (gbs * 1e9)) + 1
    ### END SOLUTION
