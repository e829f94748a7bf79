# problem: overlaps
# loses: overlaps-word, overlaps-any, overlaps-counted
# reason: not a kernel|is no kernel|kernel


def overlaps(boxes, classes, masks, count, words, limit):
    for i in range(count):
        masks[i] = 0
