# problem: peaks
# loses: peaks-tflops, peaks-clock, peaks-roof
# reason: returns nothing


def peak(sms, cores, fmas, mhz):
    """Return the TFLOPS of sms SMs of cores tensor cores, each making fmas multiply-adds per clock, at mhz MHz."""
    print(2 * sms * cores * fmas * mhz / 1e6)


def clock(tflops, sms, cores, fmas):
    """Return the MHz at which such a card has a peak of tflops TFLOPS."""
    print(tflops * 1e6 / (2 * sms * cores * fmas))


def attainable(m, n, k, tflops, gbs):
    """Return the TFLOPS that an m × k by k × n product can reach: FP16 in, FP32 out, each matrix moved once."""
    intensity = 2 * m * n * k / (2 * m * k + 2 * k * n + 4 * m * n)
    print(min(tflops, intensity * gbs / 1000))
