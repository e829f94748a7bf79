# problem: sectors
# loses: sectors-near, sectors-far
# reason: wrong for 3 of 3

prediction = {
    "a[i + 8]": 32,
    "a[i + 2]": 32,
    "a[i // 4]": 32,
    "a[3 * i]": 32,
    "a[32 * i]": 32,
    "a[(5 * i) % 32]": 32,
}


def sectors(indices, itemsize, start):
    return len({(start + itemsize * index) // 32 for index in indices})
