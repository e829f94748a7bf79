# problem: holder
# loses: holder-c, holder-ab, holder-lane
# reason: place is not written yet


def place(operand, lane, i):
    """Return the number, row by row, of a lane's element i of A (16 × 16), B (16 × 8) or C (16 × 8)."""


def holder(operand, row, column):
    """Return the lane that holds the element of A, B or C in this row and column."""
