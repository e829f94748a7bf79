# problem: pack
# loses: pack-right, pack-once, pack-budget
# reason: runs on the host


def pack(x, out, counts):
    for first in range(0, len(x), 32):
        kept = x[first : first + 32]
        kept = kept[kept > 0]
        out[first : first + len(kept)] = kept
        counts[first // 32] = len(kept)
