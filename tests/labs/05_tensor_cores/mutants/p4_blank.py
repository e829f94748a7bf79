# problem: sums
# loses: sums-half, sums-float, sums-lost
# reason: no number yet for '1024 \+ 100 × 1/4, FP16'

prediction = {
    "1024 + 100 × 1/4, FP16": None,
    "2048 + 100 × 1, FP16": None,
    "2048 + 100 × 3, FP16": None,
    "2048 + 100 × 1, FP32": None,
    "2**24 + 100 × 3, FP32": None,
    "2**24 + 100 × 9, FP32": None,
}


def lost_from(step, bits):
    """Return the smallest power of two V with V + step == V in numbers of this many significant bits."""
