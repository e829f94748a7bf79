# problem: numbers
# loses: numbers-bandwidth
# reason: effective_bandwidth raises KeyError

from warplab import cards


def effective_bandwidth(n, itemsize, seconds):
    return {0.012: 1000.0, 1e-5: 600.0, 1e-6: 6.0}[seconds]


def is_possible(nbytes, seconds, card):
    return nbytes / seconds / 1e9 <= cards.card(card).bandwidth_gbs


def gpu_pays(nbytes, passes, link, device, host):
    on_gpu = 3 * nbytes / link + passes * 3 * nbytes / device
    on_cpu = passes * 3 * nbytes / host
    return on_gpu < on_cpu
