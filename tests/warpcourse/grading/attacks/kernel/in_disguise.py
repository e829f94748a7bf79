# tries: computes on the host, in an object that claims to be a kernel of the course
# expects: graded 0 0 0 0


# %% scale
from warplab.launch.kernel_source import source_of


@cuda.jit
def kernel(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i]


class Scale:
    _warplab_source = source_of(kernel)

    def __getitem__(self, launch):
        return lambda x, y: y.__setitem__(slice(None), 3 * x)


scale = Scale()
