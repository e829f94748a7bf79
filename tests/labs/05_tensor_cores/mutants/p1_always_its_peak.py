# problem: peaks
# loses: peaks-roof
# reason: expected  250


def peak(sms, cores, fmas, mhz):
    """TFLOPS of sms SMs with cores tensor cores each, each making fmas multiply-adds a clock of mhz MHz."""
    return 2 * sms * cores * fmas * mhz / 1e6


def clock(tflops, sms, cores, fmas):
    """MHz at which such a card has a peak of tflops TFLOPS."""
    return tflops * 1e6 / (2 * sms * cores * fmas)


def attainable(m, n, k, tflops, gbs):
    """TFLOPS that an m × k by k × n product can reach: FP16 in, FP32 out, each matrix moved once."""
    return tflops
