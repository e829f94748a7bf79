# problem: sectors
# loses: sectors-any
# reason: sectors returns the wrong value

prediction = {
    "a[i + 8]": 4,
    "a[i + 2]": 5,
    "a[i // 4]": 1,
    "a[3 * i]": 12,
    "a[32 * i]": 32,
    "a[(5 * i) % 32]": 4,
}


def sectors(indices, itemsize, start):
    return len([(start + itemsize * index) // 32 for index in indices])
