# problem: figures
# loses: figures-nvml, figures-activity, figures-occupancy
# reason: nvml_utilisation returns the wrong value


def nvml_utilisation(kernels, begin, end):
    """Return the % of the sample's time in which a kernel was running."""
    busy, until = 0.0, -math.inf
    for first, last, _, _ in sorted(kernels):
        if last > begin and first < end and last > until:
            busy, until = busy + last - max(first, until), last
    return 100 * busy / (end - begin)


def sm_activity(kernels, begin, end, sms):
    """Return the % of the sample's time in which an SM was active, averaged over all SMs of the GPU."""
    active = sum((last - first) * used for first, last, used, _ in kernels if last > begin and first < end)
    return 100 * active / sms / (end - begin)


def occupancy(kernels, begin, end, most):
    """Return the % of `most` warps that were resident on an SM, averaged over the time in which SMs were active."""
    active = resident = 0.0
    for first, last, used, warps in kernels:
        time = (last - first) * used if last > begin and first < end else 0.0
        active, resident = active + time, resident + time * warps
    return 100 * resident / active / most if active else 0.0


def least_load(utilisation, sms, most):
    """Return the least % of the GPU's places for warps that were taken on average, from NVML's utilisation in %."""
    return utilisation / sms / most
