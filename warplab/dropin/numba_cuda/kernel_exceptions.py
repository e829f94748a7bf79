"""Python exceptions of kernels made with `cuda.jit(debug=True)`: `raise`, `assert`, a division by zero.

Such a kernel keeps the number of the first exception and the thread that raised it in variables of its module. Without
`debug` a thread that raises ends silently, here as on a GPU.
"""

import contextlib
from collections.abc import Iterator

import numpy as np

from warplab import simulator
from warplab.compile.source_files import display_name
from warplab.launch.kernel_source import BoundKernel


@contextlib.contextmanager
def reraised(kernel: BoundKernel) -> Iterator[None]:
    """Raise on the host, after the launch inside, what a kernel made with `debug=True` raised."""
    if kernel.raised is None:
        yield
        return
    entry = kernel.entry
    _variable(entry, "errcode")[0] = 0
    yield
    code = int(_variable(entry, "errcode")[0])
    if not code:
        return
    kind, arguments, place = kernel.raised(code)
    thread, block = ([int(_variable(entry, f"{index}{axis}")[0]) for axis in "zyx"] for index in ("tid", "ctaid"))
    where = f"tid={thread} ctaid={block}"  # z, y, x as in numba.cuda
    if place is not None:
        function, file, line = place
        where = f"In function {function!r}, file {display_name(file)}, line {line}, {where}"
    first, *rest = arguments or ("",)
    raise kind(f"{where}: {first}" if first else where, *rest)


def _variable(entry: simulator.Entry, name: str) -> np.ndarray:
    device = simulator.default_device()
    address = device.variable_address(entry.program, f"{entry.name}__{name}__")
    return device.memory.view(address, 4).view(np.int32)
