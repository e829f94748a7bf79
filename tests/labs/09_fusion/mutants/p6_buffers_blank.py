# problem: buffers
# loses: buffers-life, buffers-apart, buffers-limit
# reason: lifetimes is not written yet


def lifetimes(graph, pixels):
    """Return (bytes, first launch, last launch) of each tensor that nodes write, by name."""


def place(tensors, limit):
    """Return the offset of each tensor, by name, a multiple of 256; `tensors`: what lifetimes returns."""
