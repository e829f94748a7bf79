# problem: figures
# loses: figures-nvml, figures-activity, figures-occupancy
# reason: wrong value|ZeroDivision


def nvml_utilisation(kernels, begin, end):
    busy = [any(a <= ms < b for a, b, _, _ in kernels) for ms in range(int(begin), int(end))]
    return 100 * sum(busy) / len(busy)


def sm_activity(kernels, begin, end, sms):
    return (
        100
        * sum(u for ms in range(int(begin), int(end)) for a, b, u, _ in kernels if a <= ms < b)
        / (sms * (end - begin))
    )


def occupancy(kernels, begin, end, most):
    r = [k for ms in range(int(begin), int(end)) for k in kernels if k[0] <= ms < k[1]]
    n = sum(k[2] for k in r)
    return 100 * sum(k[2] * k[3] for k in r) / n / most if n else 0.0


def least_load(utilisation, sms, most):
    return utilisation / sms / most
