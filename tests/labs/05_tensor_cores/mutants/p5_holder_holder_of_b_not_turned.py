# problem: holder
# loses: holder-lane
# reason: operand='B'


def place(operand, lane, i):
    """Return the number, row by row, of a lane's element i of A (16 × 16), B (16 × 8) or C (16 × 8)."""
    g, t = lane // 4, lane % 4
    if operand == "A":
        return 16 * (g + 8 * (i // 2 % 2)) + 2 * t + i % 2 + 8 * (i // 4)
    if operand == "B":
        return 8 * (2 * t + i % 2 + 8 * (i // 2)) + g
    return 8 * (g + 8 * (i // 2)) + 2 * t + i % 2


def holder(operand, row, column):
    """Return the lane that holds the element of A, B or C in this row and column."""
    return 4 * (row % 8) + column % 8 // 2
