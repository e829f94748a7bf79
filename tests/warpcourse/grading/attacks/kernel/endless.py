# tries: an endless kernel
# expects: graded 0 0 0 0


# %% scale
@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    while y.size:
        y[0] = i
