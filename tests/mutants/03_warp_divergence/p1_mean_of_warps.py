# problem: efficiency
# loses: efficiency-loops
# reason: wrong for 1 of 2: '48 threads

prediction = {
    "32 threads: if i < 4: a(4000) else: b(4000)": 1 / 2,
    "32 threads: if i % 4 == 0: a(4000)": 1 / 4,
    "64 threads: if i < 32: a(2000) else: b(6000)": 1,
    "48 threads: if i < 40: a(2000) else: b(6000)": (1 + 64 / 256) / 2,
    "32 threads: a(10 * i * i)": 0.3387,
}


def efficiency(passes):
    warps = [passes[first : first + 32] for first in range(0, len(passes), 32)]
    return sum(passes) / (32 * sum(max(warp) for warp in warps))
