# problem: efficiency
# loses: efficiency-sides, efficiency-loops, efficiency-any
# reason: no number yet for '32 threads: if i < 4

prediction = {
    "32 threads: if i < 4: a(4000) else: b(4000)": None,
    "32 threads: if i % 4 == 0: a(4000)": None,
    "64 threads: if i < 32: a(2000) else: b(6000)": None,
    "48 threads: if i < 40: a(2000) else: b(6000)": None,
    "32 threads: a(10 * i * i)": None,
}


def efficiency(passes):
    """Warp efficiency of a block whose thread i makes passes[i] passes of one loop."""
