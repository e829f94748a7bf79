"""A launch of a kernel that Triton has compiled: its grid, and its arguments as the bytes of the PTX's parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import triton
from triton.backends.driver import decompose_descriptor, expand_signature
from triton.backends.nvidia.compiler import sm_arch_from_capability

from warplab import simulator
from warplab.compile import ptx_assembler
from warplab.compile.ptx_assembler import Assembled
from warplab.dropin.triton.host_memory import HostMemory
from warplab.launch import profiling
from warplab.launch.array_placement import ArrayPlacement
from warplab.launch.errors import ArgumentError, check_number
from warplab.launch.kernel_source import BoundKernel
from warplab.launch.simulate import prepare
from warplab.simulator.memory.tensor_maps import encode_im2col, encode_tiled

_SCALARS = {
    **{f"{letter}{bits}": f"{letter}{bits // 8}" for letter in "iu" for bits in (8, 16, 32, 64)},
    **dict.fromkeys(("i1", "u1"), "u1"),
    "fp16": "f2",
    "fp32": "f4",
    "f32": "f4",
    "fp64": "f8",
    "bf16": ml_dtypes.bfloat16,
}
# CUtensorMapDataType where Triton, which numbers types as PTX does, has another; TF32.
_OF_DRIVER, _TF32 = {8: 10, 9: 8, 10: 9}, 11


@dataclass(frozen=True)
class TritonSource:
    """A kernel of Triton for the types and constants that it is compiled for, as `warplab.launch` asks for it.

    `source`, `metadata`: Triton's own. `entry`: the kernel in the simulator. `ptx`: what it was read from.
    `blocks`: of the grid, for scratch memory.
    """

    source: Any
    metadata: Any
    entry: simulator.Entry
    ptx: str
    blocks: int
    language: ClassVar[str] = "Triton"
    blank: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return self.metadata.name

    def bind(self, args: tuple, arrays: ArrayPlacement) -> BoundKernel:
        """Return the kernel with `args`, one for each parameter of the Python function."""
        memory = HostMemory(arrays)
        names = self.source.fn.arg_names if hasattr(self.source, "fn") else [str(k) for k in self.source.signature]
        check_number(f"kernel {self.name}({', '.join(names)})", len(names), args)
        meta = iter(getattr(self.metadata, "tensordesc_meta", None) or ())
        params = []
        for name, kind, value in zip(names, self.source.signature.values(), args, strict=True):
            params += [_bytes(name, *part, memory) for part in self._parts(name, kind, value, meta, memory)]
        # Memory for the kernel's own use, and for a profiler's, of all blocks.
        of_block = self.metadata.global_scratch_size, self.metadata.profile_scratch_size
        params += [self._scratch(size * self.blocks * self.metadata.num_ctas, arrays) for size in of_block]
        return BoundKernel(self.entry, params, self.assemble, max_registers=self.metadata.maxnreg)

    def _parts(self, name: str, kind: Any, value: Any, meta: Iterator, memory: HostMemory) -> Iterator[tuple[Any, Any]]:
        """Yield (type, value) for each PTX parameter that an argument becomes."""
        if isinstance(kind, tuple):
            for one, item in zip(kind, value, strict=True):
                yield from self._parts(name, one, item, meta, memory)
        elif kind.startswith("tensordesc"):
            described = next(meta, None)
            kinds = expand_signature([kind], described is not None, "nvTmaDesc")
            if described is None:
                values = decompose_descriptor(value)
            else:
                tensor_map = _tensor_map(value, described, memory.address(value.base, name))
                values = [tensor_map, *value.shape, *value.strides]
            yield from zip(kinds, values, strict=True)
        elif kind != "constexpr":
            yield kind, value

    def _scratch(self, nbytes: int, arrays: ArrayPlacement) -> bytes:
        return (arrays.allocate(nbytes) if nbytes else 0).to_bytes(8, "little")

    def assembler(self, args: tuple):
        return self.assemble

    def assemble(self, arch: int) -> Assembled:
        """Return machine code for capability `arch` (75 for 7.5), for which Triton compiles the kernel again."""
        ptx = self.ptx if arch == self.metadata.target.arch else self._compiled(arch)
        return assembled(ptx, self.metadata, arch)

    def _compiled(self, arch: int) -> str:
        target = triton.backends.compiler.GPUTarget("cuda", arch, 32)
        options = {name: getattr(self.metadata, name) for name in ("num_warps", "num_ctas", "num_stages", "maxnreg")}
        return triton.compile(self.source, target=target, options=options).asm["ptx"]


def assembled(ptx: str, metadata: Any, arch: int) -> Assembled:
    """Return machine code of a kernel's PTX for capability `arch`."""
    target = sm_arch_from_capability(arch).removeprefix("sm_")
    return ptx_assembler.assemble(ptx, metadata.name, target, metadata.maxnreg)


class Launcher:
    """What Triton's `launcher_cls` makes for a compiled kernel: called with a grid and arguments, it launches."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.source, self.metadata = source, metadata

    def __call__(
        self, x: int, y: int, z: int, stream, function, packed, launch_metadata, enter_hook, exit_hook, *args
    ) -> None:
        """Launch `function`, the pair of entry and PTX that `driver.Utilities.load_binary` gave, and wait."""
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if x * y * z > 0:
            self._launch((int(x), int(y), int(z)), function, args)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _launch(self, grid: tuple[int, int, int], function: tuple[simulator.Entry, str], args: tuple) -> None:
        metadata, (x, y, z), (entry, ptx) = self.metadata, grid, function
        source = TritonSource(self.source, metadata, entry, ptx, x * y * z)
        options = simulator.Options(
            counters=profiling.active(),
            replicas=True,  # lanes may hold a sum whose last bit differs, where the first addition is fused
            cooperative=metadata.launch_cooperative_grid,
            cluster=(metadata.num_ctas, 1, 1) if metadata.num_ctas > 1 else None,
        )
        block = 32 * metadata.num_warps, 1, 1
        with prepare(source, args) as prepared:
            profiling.record(prepared.run((x * metadata.num_ctas, y, z), block, metadata.shared, options))


def _bytes(name: str, kind: str, value: Any, memory: HostMemory) -> bytes:
    if kind == "nvTmaDesc":
        return value
    if kind.startswith("*"):
        return memory.address(value, name).to_bytes(8, "little")
    dtype = _SCALARS.get(kind)
    if dtype is None:
        raise ArgumentError(f"argument `{name}` has Triton's type {kind}, which the simulator does not pass to kernels")
    if isinstance(value, int):  # what is too large wraps round, as in Triton's launcher
        size = np.dtype(dtype).itemsize
        if np.dtype(dtype).kind in "iu":
            return (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return np.asarray(value, dtype).tobytes()


def _tensor_map(descriptor: Any, described: dict, address: int) -> bytes:
    """Return the tensor map of a host descriptor, as Triton's `make_tensordesc_arg` asks the driver for it."""
    sizes, item = list(descriptor.shape), described["elem_size"]
    if described["fp4_padded"]:
        sizes[-1] *= 2
    kind = _OF_DRIVER.get(described["elem_type"], described["elem_type"])
    if descriptor.round_f32_to_tf32:
        kind = _TF32
    strides = [item * stride for stride in descriptor.strides[-2::-1]]
    box: list[int] = described["block_size"][::-1]
    fill = int(descriptor.padding == "nan")
    common: dict[str, int] = {"swizzle": described["swizzle"], "fill": fill}
    if not described.get("is_im2col"):
        return encode_tiled(kind, len(sizes), address, sizes[::-1], strides, box, [1] * len(sizes), **common)
    lower, upper = descriptor.pixel_box_lower_corner[::-1], descriptor.pixel_box_upper_corner[::-1]
    steps = (descriptor.element_strides or [1] * len(sizes))[::-1]
    return encode_im2col(kind, len(sizes), address, sizes[::-1], strides, lower, upper, box[0], box[1], steps, **common)
