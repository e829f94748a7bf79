# problem: numbers
# loses: numbers-pays
# reason: every answer is the opposite

from warplab import cards


def effective_bandwidth(n, itemsize, seconds):
    return 3 * n * itemsize / seconds / 1e9


def is_possible(nbytes, seconds, card):
    return nbytes / seconds / 1e9 <= cards.card(card).bandwidth_gbs


def gpu_pays(nbytes, passes, link, device, host):
    return 1 / link + passes / device > passes / host
