"""The files of lab 02's kernels, the instances of their templates, and the sizes that its arrays can have."""

from typing import Any

from warpcourse.bench.lab_kernels import Sources

NUMBA = "numba_kernels.py"
BLOCK = 256  # threads per block, unless a kernel says otherwise
FLOAT4_BYTES = 16
RADII = (1, 2, 4, 8, 16, 32)  # for which the stencils of `stencil.cu` are compiled
FLIGHTS = [(width, items) for width in (4, 16) for items in (1, 2, 4, 8)]  # bytes per load, loads per thread
_TYPES = {4: "float", 16: "float4"}
SOURCES = Sources(
    __package__,
    templates={
        "access.cu": [f"copy_in_flight<{_TYPES[width]}, {items}>" for width, items in FLIGHTS],
        "stencil.cu": [f"{kind}<{radius}>" for kind in ("mean_l1", "mean_shared") for radius in RADII],
    },
)


def in_flight(width: int, items: int) -> str:
    """Return the name of the instance of `copy_in_flight` whose threads load `items` times `width` bytes."""
    if (width, items) not in FLIGHTS:
        raise ValueError(
            f"there is no copy of {items} loads of {width} bytes; (bytes, loads) can be {', '.join(map(str, FLIGHTS))}"
        )
    return f"copy_in_flight<{_TYPES[width]}, {items}>"


def dimensions(array: Any, name: str, count: int) -> tuple[int, ...]:
    """Return the shape of an array that must have `count` dimensions, each below 2^31; else ValueError."""
    shape = tuple(array.shape)
    if len(shape) != count:
        raise ValueError(f"{name} has {len(shape)} dimensions; it must have {count}")
    if max(shape) >= 2**31:
        raise ValueError(f"{name} has shape {shape}; the kernel counts rows and columns with 32 bits")
    return shape
