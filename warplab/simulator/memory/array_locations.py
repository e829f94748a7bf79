"""Which element of which array an address belongs to, in words for messages."""

import re

from warplab.simulator.memory.device_memory import Allocation


def element(allocation: Allocation, address: int, item: int) -> int:
    """Return the number of the element at `address` in the array that the kernel was given; negative before its start.

    `item`: bytes per element if the allocation does not know: those of the access, or of one component of a vector.
    """
    return (address - allocation.address - allocation.origin) // (allocation.item or item)


def shared_array_element(chunk, offset: int, item: int) -> tuple[str | None, int | None]:
    """Return the name of the shared array that holds byte `offset` of a block's shared memory, or the last one before
    it, and the number of the element. None for a nameless array. Before all arrays: a negative element of the first.
    """
    entry, starts = chunk.entry, dict(chunk.translation.shared_offsets)
    starts.update((variable.name, chunk.static_shared_bytes) for variable in entry.shared_variables(dynamic=True))
    if not starts:
        return None, None
    places = sorted((start, symbol) for symbol, start in starts.items())
    start, symbol = max((place for place in places if place[0] <= offset), default=places[0])
    name = entry.source_names.get(symbol) or source_name(symbol)
    return name, None if name is None else (offset - start) // item


def source_name(symbol: str) -> str | None:
    """Return the C++ name of a variable, `s` for `_ZZ6kernelE1s`; None for a symbol without a name in the source."""
    symbol = symbol.partition("@")[0]  # of an inlined function
    if not symbol.startswith("_Z"):
        return None if symbol.startswith("_cudapy") else symbol
    for found in reversed(list(re.finditer(r"E(\d+)", symbol))):
        length, rest = int(found[1]), symbol[found.end() :]
        if len(rest) >= length and re.fullmatch(r"(_\d+)?", rest[length:]):
            return rest[:length]
    return None


def describe_shared(chunk, offset: int, item: int) -> tuple[str, str | None, int | None]:
    """Return the byte `offset` of shared memory in words, and its array and element."""
    name, index = shared_array_element(chunk, offset, item)
    what = f"byte {offset} of shared memory"
    return what + (f" (element {index} of `{name}`)" if name is not None else ""), name, index


def describe_element(allocation: Allocation, address: int, item: int) -> tuple[str, int]:
    """Return a byte of an allocation in words, and its element."""
    index = element(allocation, address, item)
    return f"byte {address - allocation.address} of {describe_array(allocation)}, element {index},", index


def describe_array(allocation: Allocation) -> str:
    name = f"array `{allocation.name}`" if allocation.name else "an array"
    return f"{name} ({allocation.nbytes:,} bytes)"
