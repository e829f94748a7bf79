# problem: efficiency
# loses: efficiency-any
# reason: expected +0.03125\n +got +32.0

prediction = {
    "32 threads: if i < 4: a(4000) else: b(4000)": 1 / 2,
    "32 threads: if i % 4 == 0: a(4000)": 1 / 4,
    "64 threads: if i < 32: a(2000) else: b(6000)": 1,
    "48 threads: if i < 40: a(2000) else: b(6000)": 0.4,
    "32 threads: a(10 * i * i)": 0.3387,
}


def efficiency(passes):
    warps = [passes[first : first + 32] for first in range(0, len(passes), 32)]
    return 32 * sum(max(warp) for warp in warps) / sum(passes)
