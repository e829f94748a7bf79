"""`cuda.jit(cache=True)`: compiled kernels in files beside their source, where Numba keeps them.

The files are Numba's, with another name: what they hold is PTX for the simulator, not machine code for a GPU. (Numba
0.68 and numba-cuda 0.30 share an index and date it in two ways, so that each takes that of the other for out of date.)
"""

from dataclasses import replace
from typing import NamedTuple

from warplab.compile.numba_compiler import NumbaProgram
from warplab.compile.numba_internals import CUDACache, CUDACacheImpl
from warplab.dropin.numba_cuda.kernel import CompiledKernel
from warplab.dropin.simulated_device import COMPUTE_CAPABILITY, NAME


class Cached(NamedTuple):
    """A kernel read from a file: what it was compiled to for arguments of the Numba types `argument_types`."""

    argument_types: tuple
    program: NumbaProgram
    launch_config_sensitive: bool


class _Files(CUDACacheImpl):
    def reduce(self, kernel: CompiledKernel) -> dict:
        if kernel.links:
            raise RuntimeError("Cannot pickle CUDACodeLibrary with linking files")  # as Numba does: give cache=False
        # Types of variables are not kept, as in Numba. The library refuses arrays of the device that a kernel captures.
        program = replace(kernel.program, annotation=None, metadata=None)
        return Cached(kernel.argument_types, program, kernel.launch_config_sensitive)._asdict()

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}.simulated"

    def rebuild(self, target_context, payload: dict) -> Cached:
        return Cached(**payload)


class KernelCache(CUDACache):
    """The files of one kernel."""

    _impl_class = _Files

    def _index_key(self, sig, codegen) -> tuple:
        return super()._index_key(sig, _Target)  # Numba's own asks the driver


class _Target:
    @staticmethod
    def magic_tuple() -> tuple:
        """Return what the code is compiled for, as part of the key of a file."""
        return NAME, COMPUTE_CAPABILITY
