# tries: searches the device's memory around its arrays for the expected result
# expects: graded 0 0 0 0


# %% scale
@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < y.size:
        for k in range(-4 * y.size, 8 * y.size):
            if x[k] == 3 * x[i]:
                y[i] = x[k]
