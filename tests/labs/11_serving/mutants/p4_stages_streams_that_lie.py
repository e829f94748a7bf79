# problem: stages
# loses: stages-whole, stages-few
# reason: in the wrong stream|other streams


class T(tuple):
    def __getitem__(self, i):
        return 0 if i == 1 else tuple.__getitem__(self, i)


def by_stage(chunks, buffers):
    ops = [("weights", 0), ("record", 0, "w")] + [("wait", s, "w") for s in range(1, buffers)]
    for c in range(chunks):
        b = c % buffers
        ops += [("in", b, c, b), ("kernel", b, c, b), ("out", b, c, b)]
    return [T(o) for o in ops]
