# problem: numbers
# loses: numbers-pays
# reason: the same value for all

from warplab import cards


def effective_bandwidth(n, itemsize, seconds):
    return 3 * n * itemsize / seconds / 1e9


def is_possible(nbytes, seconds, card):
    return nbytes / seconds / 1e9 <= cards.card(card).bandwidth_gbs


def gpu_pays(nbytes, passes, link, device, host):
    return True
