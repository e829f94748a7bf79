# problem: efficiency
# loses: efficiency-sides, efficiency-loops
# reason: wrong for 3 of 3

prediction = {
    "32 threads: if i < 4: a(1000) else: b(1000)": 50,
    "32 threads: if i % 4 == 0: a(3000)": 25,
    "64 threads: if i < 32: a(500) else: b(1500)": 100,
    "48 threads: if i < 40: a(500) else: b(1500)": 40,
    "32 threads: a(3 * i * i)": 33.87,
}


def efficiency(passes):
    warps = [passes[first : first + 32] for first in range(0, len(passes), 32)]
    return sum(passes) / (32 * sum(max(warp) for warp in warps))
