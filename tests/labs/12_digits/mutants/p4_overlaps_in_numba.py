# problem: overlaps
# loses: overlaps-word, overlaps-any, overlaps-counted
# reason: wrong language


@cuda.jit
def overlaps(boxes, classes, masks, count, words, limit):
    i, j = cuda.blockIdx.y * 4 + cuda.threadIdx.y, cuda.blockIdx.x * 32 + cuda.threadIdx.x
    if i >= count:
        return
    hit = False
    if i < j < count and classes[i] == classes[j]:
        width = min(boxes[i, 0] + boxes[i, 2], boxes[j, 0] + boxes[j, 2]) - max(boxes[i, 0], boxes[j, 0])
        height = min(boxes[i, 1] + boxes[i, 3], boxes[j, 1] + boxes[j, 3]) - max(boxes[i, 1], boxes[j, 1])
        common = max(width, float32(0)) * max(height, float32(0))
        hit = common > limit * (boxes[i, 2] * boxes[i, 3] + boxes[j, 2] * boxes[j, 3] - common)
    word = cuda.ballot_sync(0xFFFFFFFF, hit)
    if cuda.threadIdx.x == 0:
        masks[i, cuda.blockIdx.x] = word
