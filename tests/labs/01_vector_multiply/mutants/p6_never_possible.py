# problem: numbers
# loses: numbers-possible
# reason: returned the same value for all


def effective_bandwidth(n, itemsize, seconds):
    return 3 * n * itemsize / seconds / 1e9


def is_possible(nbytes, seconds, card):
    return False


def gpu_pays(nbytes, passes, link, device, host):
    on_gpu = 3 * nbytes / link + passes * 3 * nbytes / device
    on_cpu = passes * 3 * nbytes / host
    return on_gpu < on_cpu
