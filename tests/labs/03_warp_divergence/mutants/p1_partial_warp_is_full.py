# problem: efficiency
# loses: efficiency-loops
# reason: wrong for 1 of 2: '48 threads

prediction = {
    "32 threads: if i < 4: a(1000) else: b(1000)": 1 / 2,
    "32 threads: if i % 4 == 0: a(3000)": 1 / 4,
    "64 threads: if i < 32: a(500) else: b(1500)": 1,
    "48 threads: if i < 40: a(500) else: b(1500)": 64 / (32 * 2 + 16 * 8),
    "32 threads: a(3 * i * i)": 0.3387,
}


def efficiency(passes):
    warps = [passes[first : first + 32] for first in range(0, len(passes), 32)]
    return sum(passes) / (32 * sum(max(warp) for warp in warps))
