# problem: efficiency
# loses: efficiency-any
# reason: returns nothing(.|\n)*print shows a value

prediction = {
    "32 threads: if i < 4: a(1000) else: b(1000)": 1 / 2,
    "32 threads: if i % 4 == 0: a(3000)": 1 / 4,
    "64 threads: if i < 32: a(500) else: b(1500)": 1,
    "48 threads: if i < 40: a(500) else: b(1500)": 0.4,
    "32 threads: a(3 * i * i)": 0.3387,
}


def efficiency(passes):
    warps = [passes[first : first + 32] for first in range(0, len(passes), 32)]
    print(sum(passes) / (32 * sum(max(warp) for warp in warps)))
