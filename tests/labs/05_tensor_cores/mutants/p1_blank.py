# problem: peaks
# loses: peaks-tflops, peaks-clock, peaks-roof
# reason: peak is not written yet


def peak(sms, cores, fmas, mhz):
    """Return the TFLOPS of sms SMs of cores tensor cores, each making fmas multiply-adds per clock, at mhz MHz."""


def clock(tflops, sms, cores, fmas):
    """Return the MHz at which such a card has a peak of tflops TFLOPS."""


def attainable(m, n, k, tflops, gbs):
    """Return the TFLOPS that an m × k by k × n product can reach: FP16 in, FP32 out, each matrix moved once."""
