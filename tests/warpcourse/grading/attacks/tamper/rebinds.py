# tries: defines the kernel again between its two tests, so that each judges another one
# expects: graded 0 0 0 1 0
# word: defined again
# edit: rebind_between_tests
# %% scale
@cuda.jit
def scale(x, y):
    i = cuda.grid(1)
    if i < y.size and y.size < 66:
        y[i] = 3 * x[i]
