# problem: figures
# loses: figures-nvml
# reason: nvml_utilisation returns the wrong value


def nvml_utilisation(kernels, begin, end):
    """Return the % of the sample's time in which a kernel was running."""
    busy, until = 0.0, begin
    for first, last, _, _ in kernels:
        first, last = max(first, until), min(last, end)
        if last > first:
            busy, until = busy + last - first, last
    return 100 * busy / (end - begin)


def sm_activity(kernels, begin, end, sms):
    """Return the % of the sample's time in which an SM was active, averaged over all SMs of the GPU."""
    active = sum(max(0.0, min(last, end) - max(first, begin)) * used for first, last, used, _ in kernels)
    return 100 * active / sms / (end - begin)


def occupancy(kernels, begin, end, most):
    """Return the % of `most` warps that were resident on an SM, averaged over the time in which SMs were active."""
    active = resident = 0.0
    for first, last, used, warps in kernels:
        time = max(0.0, min(last, end) - max(first, begin)) * used
        active, resident = active + time, resident + time * warps
    return 100 * resident / active / most if active else 0.0


def least_load(utilisation, sms, most):
    """Return the least % of the GPU's places for warps that were taken on average, from NVML's utilisation in %."""
    return utilisation / sms / most
