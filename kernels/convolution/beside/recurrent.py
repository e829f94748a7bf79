"""A layer of LSTM cells by lstm.cu: a kernel for each operation, one kernel after each product, or all steps in one
launch. Gates in cuDNN's order (and PyTorch's): i, f, g, o; two biases, which are added.

Source of the formulas: cuDNN's documentation, cudnnRNNMode_t, CUDNN_LSTM.
"""

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from kernels.convolution.common.queued import TYPES, Queued, instance, vector
from kernels.convolution.common.sources import SOURCES
from warpcourse.bench.device_arguments import check_array
from warpcourse.bench.lab_kernels import launch
from warplab import cp

FILE = "beside/lstm.cu"
BLOCK = 256  # threads of lstm_cell
METHODS = ("separate", "fused", "persistent")
MOST_ROWS = 64  # sequences of a batch that the persistent kernel takes
MOST_BLOCKS = 132  # that an H100 has multiprocessors for; one on each
UNITS = (4, 8)  # hidden units of a block
MOST_CHUNKS = 32  # units times chunks of a block: vectors of R in a thread's registers
MOST_HIDDEN = 1024


class Shape(NamedTuple):
    """An instance of lstm_persistent: hidden units and warps of a block, depth of a warp / 32, rows / 8."""

    units: int
    warps: int
    chunks: int
    tiles: int

    @property
    def hidden(self) -> int:
        """Return hidden units of the layer."""
        return 32 * self.warps * self.chunks

    @property
    def blocks(self) -> int:
        """Return the blocks of the grid, all of which are resident."""
        return self.hidden // self.units

    @property
    def shared_bytes(self) -> int:
        """Return bytes of a block: the warps' sums."""
        return 4 * self.warps * 4 * self.units * 8 * (self.tiles | 1)


def lstm(x: Any, w: Any, r: Any, bias_w: Any, bias_r: Any, h: Any, c: Any, *, method: str = "fused") -> tuple[Any, Any]:
    """Run all steps of a layer; return (y, c of the last step) before the kernels have finished.

    `x`: device array, C-contiguous, float16 or float32, of shape (steps, n, inputs). `w`, `r`: likewise, of x's type,
    (4 · hidden, inputs) and (4 · hidden, hidden), rows in the order of the gates i, f, g, o. `bias_w`, `bias_r`:
    float32, (4 · hidden,). `h`: of x's type, (n, hidden), and `c`: float32, (n, hidden): the state before the first
    step. y: of x's type, (steps, n, hidden), h of every step; c: float32.
    `method`: "separate" runs each operation as a kernel of its own, "fused" one kernel after each product, "persistent"
    all steps in one launch (float16, no more rows and units than the GPU's registers hold: `persistent_refusal`).
    Products with W, of all steps together, and with R are cuBLAS's on a GPU; the persistent kernel computes the latter.
    Raise TypeError for arrays in host memory, ValueError for every other argument that does not fit.
    """
    steps, n, hidden = _check(x, w, r, bias_w, bias_r, h, c, method)
    of_x = (x.reshape(steps * n, -1) @ w.T).reshape(steps, n, 4 * hidden)
    bias = bias_w + bias_r
    y = cp.empty((steps, n, hidden), x.dtype)
    if method == "persistent":
        last = cp.empty_like(c)
        _launch_persistent(of_x, r, bias, h, c, y, last)
        return y, last
    c = c.copy()
    for step in range(steps):
        of_h = h @ r.T
        if method == "fused":
            cell(of_x[step], of_h, bias, c, y[step]).launch()
        else:
            y[step], c = _separate(of_x[step], of_h, bias, c)
        h = y[step]
    return y, c


def cell(of_x: Any, of_h: Any, bias: Any, c: Any, h: Any) -> Queued:
    """Return the launch of what follows a step's products: h, and c, which is replaced.

    `of_x`, `of_h`: x·Wᵀ and h·Rᵀ, (n, 4 · hidden); `bias`: float32, (4 · hidden,); `c`: float32, `h`: (n, hidden).
    """
    n, hidden = h.shape
    vec = vector(h.dtype, hidden, of_x, of_h, h)
    grid = math.ceil(n * hidden / vec / BLOCK)
    arguments = of_x, of_h, bias, c, h, np.int32(n), np.int32(hidden)
    return Queued(FILE, instance("lstm_cell", h.dtype, vec), grid, BLOCK, arguments)


def _separate(of_x: Any, of_h: Any, bias: Any, c: Any) -> tuple[Any, Any]:
    """Return h and c by CuPy's operations, each a kernel that reads and writes memory."""
    gates = of_x.astype(np.float32) + of_h.astype(np.float32) + bias
    i, f, g, o = (gates[:, k * c.shape[1] : (k + 1) * c.shape[1]] for k in range(4))
    i, f, o = (1 / (1 + cp.exp(-gate)) for gate in (i, f, o))
    c = f * c + i * cp.tanh(g)
    return (o * cp.tanh(c)).astype(of_x.dtype), c


# -- all steps in one launch -------------------------------------------------------------------------------------------


def persistent_refusal(n: int, hidden: int, dtype: Any) -> str:
    """Return why the persistent kernel cannot run such a layer, and what to take instead; "" if it can."""
    instead = 'take method="fused"'
    if np.dtype(dtype) != np.float16:
        return f"the persistent kernel takes float16, and not {np.dtype(dtype)}: {instead}"
    if n > MOST_ROWS:
        return f"the persistent kernel takes up to {MOST_ROWS} sequences, and not {n}: {instead}, or fewer at a time"
    if _shape(n, hidden) is None:
        fitting = (size for size in range(hidden, MOST_HIDDEN + 1) if _shape(n, size))
        near = next((f"; {size} is the next that it takes" for size in fitting), f"; {MOST_HIDDEN} is the most")
        return f"the persistent kernel has no instance for {hidden} hidden units{near}: {instead}"
    return ""


def persistent_shape(n: int, hidden: int) -> Shape:
    """Return the instance for a layer; ValueError where there is none."""
    if refusal := persistent_refusal(n, hidden, np.float16):
        raise ValueError(refusal)
    found = _shape(n, hidden)
    assert found is not None
    return found


def _shape(n: int, hidden: int) -> Shape | None:
    tiles = 2 ** max(0, math.ceil(math.log2(n / 8)))
    for warps in (8, 4, 2, 1):
        chunks, rest = divmod(hidden, 32 * warps)
        for units in UNITS:
            found = Shape(units, warps, chunks, tiles)
            if rest == 0 and 0 < units * chunks <= MOST_CHUNKS and found.blocks <= MOST_BLOCKS:
                return found
    return None


@functools.cache
def persistent_function(shape: Shape) -> Any:
    """Return the compiled kernel, whose launches are cooperative."""
    entry = f"lstm_persistent<{', '.join(map(str, shape))}>"
    module = cp.RawModule(
        code=SOURCES.text(FILE),
        options=SOURCES.options(FILE),
        name_expressions=(entry,),
        enable_cooperative_groups=True,
    )
    function = module.get_function(entry)
    function.max_dynamic_shared_size_bytes = shape.shared_bytes
    return function


def _launch_persistent(of_x: Any, r: Any, bias: Any, h: Any, c: Any, y: Any, last: Any) -> None:
    steps, n, hidden = y.shape
    shape = persistent_shape(n, hidden)
    arrived = cp.zeros(1, np.uint32)
    arguments = of_x, r, bias, h, c, y, last, arrived, np.int32(steps), np.int32(n)
    launch(persistent_function(shape), shape.blocks, 32 * shape.warps, arguments, shape.shared_bytes)


def _check(x: Any, w: Any, r: Any, bias_w: Any, bias_r: Any, h: Any, c: Any, method: str) -> tuple[int, int, int]:
    """Return steps, rows and hidden units; raise for arguments that do not fit."""
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}; choose one of {', '.join(METHODS)}")
    check_array("x", x, (None, None, None), dtype=tuple(TYPES))
    check_array("r", r, (None, None), dtype=x.dtype)
    (steps, n, inputs), (rows, hidden) = x.shape, r.shape
    if 0 in (steps, n, inputs, hidden):
        raise ValueError(f"x has shape {tuple(x.shape)} and r {tuple(r.shape)}; no axis may be of length 0")
    if rows != 4 * hidden:
        raise ValueError(f"r has shape {tuple(r.shape)}; with {hidden} hidden units it must be {(4 * hidden, hidden)}")
    for name, array, shape, dtype in (
        ("w", w, (rows, inputs), x.dtype),
        ("bias_w", bias_w, (rows,), np.float32),
        ("bias_r", bias_r, (rows,), np.float32),
        ("h", h, (n, hidden), x.dtype),
        ("c", c, (n, hidden), np.float32),
    ):
        check_array(name, array, shape, dtype=dtype)
    if method == "persistent":
        if refusal := persistent_refusal(n, hidden, x.dtype):
            raise ValueError(refusal)
        for name, array in (("r", r), ("h", h)):
            check_array(name, array, dtype=x.dtype, alignment=16)
    return steps, n, hidden


def reference(
    x: np.ndarray, w: np.ndarray, r: np.ndarray, bias_w: np.ndarray, bias_r: np.ndarray, h: np.ndarray, c: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return y and c of the last step in NumPy, float64; arguments as of `lstm`."""
    x, w, r, bias_w, bias_r, h, c = (np.asarray(a, np.float64) for a in (x, w, r, bias_w, bias_r, h, c))
    y = []
    for step in x:
        i, f, g, o = np.split(step @ w.T + bias_w + h @ r.T + bias_r, 4, axis=1)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        y.append(h)
    return np.stack(y), c
