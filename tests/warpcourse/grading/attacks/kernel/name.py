# tries: gives its kernel, its functions and its exceptions names that are HTML, escapes and megabytes
# expects: graded 0 0 0 0
evil = "<img src=none onerror=alert(1)>\x1b[2J\u202e" + "\u0301" * 100_000


def double(x):
    raise type(evil, (Exception,), {})(evil)


double.__name__ = double.__qualname__ = double.__module__ = evil

# %% scale
from warplab.launch.kernel_source import source_of


@cuda.jit
def scale(x, y):
    y[0] = x[0]


source_of(scale).__class__.name = evil

# %% answer
answer = type(evil, (), {"__repr__": lambda self: evil, "__module__": evil})()
