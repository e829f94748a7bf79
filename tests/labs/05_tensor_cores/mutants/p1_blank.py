# problem: peaks
# loses: peaks-tflops, peaks-clock, peaks-roof
# reason: peak is not written yet


def peak(sms, cores, fmas, mhz):
    """TFLOPS of sms SMs with cores tensor cores each, each making fmas multiply-adds a clock of mhz MHz."""


def clock(tflops, sms, cores, fmas):
    """MHz at which such a card has a peak of tflops TFLOPS."""


def attainable(m, n, k, tflops, gbs):
    """TFLOPS that an m × k by k × n product can reach: FP16 in, FP32 out, each matrix moved once."""
