# problem: numbers
# loses: numbers-bandwidth
# reason: returned the same value for all

from warplab import cards


def effective_bandwidth(n, itemsize, seconds):
    return 1000.0


def is_possible(nbytes, seconds, card):
    return nbytes / seconds / 1e9 <= cards.card(card).bandwidth_gbs


def gpu_pays(nbytes, passes, link, device, host):
    on_gpu = 3 * nbytes / link + passes * 3 * nbytes / device
    on_cpu = passes * 3 * nbytes / host
    return on_gpu < on_cpu
