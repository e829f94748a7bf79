# problem: figures
# loses: figures-nvml, figures-activity, figures-occupancy, figures-least
# reason: name 'nvml_utilisation' is not defined


def nvml_utilisation(kernels, begin, end):
    """Return the % of the sample's time in which a kernel was running."""
    from kernels.serving.utilisation import Kernel, looked_at

    timeline = [Kernel(first, last - first, sms=sms, warps=sms * warps) for first, last, sms, warps in kernels]
    return 100 * looked_at(timeline, begin, end).utilisation


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
