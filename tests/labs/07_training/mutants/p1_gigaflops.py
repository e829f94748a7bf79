# problem: cycle
# loses: cycle-rates, cycle-cards
# reason: a power of 1000


def tflops(exaflop, hours):
    """Return the TFLOP/s that do `exaflop` in so many hours."""
    return exaflop * 1e9 / (hours * 3600)


def megabytes_per_second(terabytes, passes, hours):
    """Return the MB/s that read `terabytes` so many times in so many hours."""
    return terabytes * passes * 1e6 / (hours * 3600)


def cards_needed(exaflop, hours, peak_tflops, share):
    """Return the number of whole cards that do `exaflop` in so many hours."""
    return math.ceil(tflops(exaflop, hours) / (peak_tflops * share))


def hours_needed(exaflop, terabytes, passes, cards, peak_tflops, share, mb_per_second):
    """Return the hours of a cycle whose data arrive while it computes."""
    computing = exaflop * 1e6 / (cards * peak_tflops * share)
    reading = terabytes * passes * 1e6 / mb_per_second
    return max(computing, reading) / 3600
