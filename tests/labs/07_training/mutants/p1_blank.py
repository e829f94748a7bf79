# problem: cycle
# loses: cycle-rates, cycle-cards, cycle-hours
# reason: not written yet


def tflops(exaflop, hours):
    """Return the TFLOP/s that do `exaflop` in so many hours."""


def megabytes_per_second(terabytes, passes, hours):
    """Return the MB/s that read `terabytes` so many times in so many hours."""


def cards_needed(exaflop, hours, peak_tflops, share):
    """Return the number of whole cards that do `exaflop` in so many hours."""


def hours_needed(exaflop, terabytes, passes, cards, peak_tflops, share, mb_per_second):
    """Return the hours of a cycle whose data arrive while it computes."""
