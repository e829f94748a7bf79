# problem: figures
# loses: figures-nvml, figures-activity, figures-occupancy, figures-least
# reason: nvml_utilisation is not written yet


def nvml_utilisation(kernels, begin, end):
    """Return the % of the sample's time in which a kernel was running."""


def sm_activity(kernels, begin, end, sms):
    """Return the % of the sample's time in which an SM was active, averaged over all SMs of the GPU."""


def occupancy(kernels, begin, end, most):
    """Return the % of `most` warps that were resident on an SM, averaged over the time in which SMs were active."""


def least_load(utilisation, sms, most):
    """Return the least % of the GPU's places for warps that were taken on average, from NVML's utilisation in %."""
