# problem: sectors
# loses: sectors-near, sectors-far, sectors-any
# reason: no number yet for 'a\[i \+ 8\]', 'a\[i \+ 2\]', 'a\[i // 4\]'

prediction = {
    "a[i + 8]": None,
    "a[i + 2]": None,
    "a[i // 4]": None,
    "a[3 * i]": None,
    "a[32 * i]": None,
    "a[(5 * i) % 32]": None,
}


def sectors(indices, itemsize, start):
    """Nothing yet."""
