# problem: efficiency
# loses: efficiency-sides, efficiency-loops
# reason: prediction is not a dict

prediction = [1 / 2, 1 / 4, 1, 0.4, 0.3387]


def efficiency(passes):
    warps = [passes[first : first + 32] for first in range(0, len(passes), 32)]
    return sum(passes) / (32 * sum(max(warp) for warp in warps))
