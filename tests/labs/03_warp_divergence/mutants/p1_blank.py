# problem: efficiency
# loses: efficiency-sides, efficiency-loops, efficiency-any
# reason: no number yet for '32 threads: if i < 4

prediction = {
    "32 threads: if i < 4: a(1000) else: b(1000)": None,
    "32 threads: if i % 4 == 0: a(3000)": None,
    "64 threads: if i < 32: a(500) else: b(1500)": None,
    "48 threads: if i < 40: a(500) else: b(1500)": None,
    "32 threads: a(3 * i * i)": None,
}


def efficiency(passes):
    """Return the warp efficiency of a block whose thread i makes passes[i] passes of one loop."""
