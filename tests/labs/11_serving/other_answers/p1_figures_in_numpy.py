def nvml_utilisation(kernels, begin, end):
    times = np.array(sorted({begin, end, *[min(max(t, begin), end) for k in kernels for t in k[:2]]}))
    mid = (times[1:] + times[:-1]) / 2
    on = np.array([any(k[0] < m < k[1] for k in kernels) for m in mid], bool)
    return np.float64(100) * np.sum(np.diff(times)[on]) / (end - begin)


def sm_activity(kernels, begin, end, sms):
    if not kernels:
        return 0
    k = np.array(kernels, float)
    t = np.clip(np.minimum(k[:, 1], end) - np.maximum(k[:, 0], begin), 0, None)
    return (t * k[:, 2]).sum() / (end - begin) / sms * 100


def occupancy(kernels, begin, end, most):
    if not kernels:
        return 0.0
    k = np.array(kernels, float)
    t = np.clip(np.minimum(k[:, 1], end) - np.maximum(k[:, 0], begin), 0, None) * k[:, 2]
    return float(np.average(k[:, 3], weights=t)) / most * 100 if t.any() else 0.0


def least_load(utilisation, sms, most):
    return utilisation / sms / most
