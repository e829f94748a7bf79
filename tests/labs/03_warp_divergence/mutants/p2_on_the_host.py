# problem: mixed
# loses: mixed-right, mixed-uniform, mixed-budget
# reason: is a Python function, which runs on the host


def mixed(x, out):
    for i in range(len(out)):
        out[i] = stir(x[i]) if i % 2 == 0 else fold(x[i])
