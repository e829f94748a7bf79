# problem: numbers
# loses: numbers-pays
# reason: what is compared

from warplab import cards


def effective_bandwidth(n, itemsize, seconds):
    return 3 * n * itemsize / seconds / 1e9


def is_possible(nbytes, seconds, card):
    return nbytes / seconds / 1e9 <= cards.card(card).bandwidth_gbs


def gpu_pays(nbytes, passes, link, device, host):
    return 2 * nbytes / link + passes * 3 * nbytes / device < passes * 3 * nbytes / host
