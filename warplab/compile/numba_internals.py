"""The one door to the inner modules and the private names of Numba and numba-cuda; all else uses their public names.

Read in numba-cuda 0.30.4 and Numba 0.68.1: when a new version renames one of these, this is the file to change;
tests/warplab/compile/test_numba_internals.py holds that. Importing it imports numba.cuda (a second), so a module that
is to load without Numba imports from it where it needs something. Raises CompilerNotFound where numba.cuda does not
load, RuntimeError where Numba's own simulator has taken its place.
"""
# ruff: noqa: F401, I001 - imports are for others, by purpose, and after a check

import contextlib
import functools
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from warplab.compile.errors import CompilerNotFound
from warplab.hardware import backend

try:
    import numba.cuda
    from numba.cuda import types
    from numba.cuda.core import config
except ImportError as error:
    raise CompilerNotFound("Numba for CUDA", error, "numba") from error
if config.ENABLE_CUDASIM:
    raise RuntimeError("NUMBA_ENABLE_CUDASIM is set, so Numba compiles nothing; unset it and start Python again")

# Errors and warnings; the two modules of the driver's that `cuda.cudadrv` shows.
from numba.cuda.core.errors import DeprecationError
from numba.cuda.core.errors import NumbaDebugInfoWarning, NumbaInvalidConfigWarning, NumbaPerformanceWarning
from numba.cuda.cudadrv import error as driver_errors
from numba.cuda.cudadrv import nvrtc
from numba.cuda.cudadrv.devicearray import errmsg_contiguous_buffer

# Types: of values, of dtypes and back; signatures, and the overload that fits arguments best.
from numba.cuda.core.sigutils import is_signature, normalize_signature
from numba.cuda.core.typeinfer import register_dispatcher
from numba.cuda.descriptor import cuda_target
from numba.cuda.np.numpy_support import as_dtype, from_dtype
from numba.cuda.typeconv.rules import default_type_manager
from numba.cuda.typing import signature
from numba.cuda.typing.typeof import typeof

# Compiling, and what kernels link.
from numba.cuda.compiler import compile_cuda, kernel_fixup
from numba.cuda.core.compiler_lock import global_compiler_lock
from numba.cuda.cudadrv.driver import FILE_EXTENSION_MAP
from numba.cuda.cudadrv.nvvm import nvvmError, set_launch_bounds
from numba.cuda.memory_management.nrt import NRT_LIBRARY, get_include

# `cuda.jit`: the dispatcher, what `kernel[grid, block]` makes, files of compiled kernels.
from numba.cuda import dispatcher
from numba.cuda.args import ArgHint
from numba.cuda.core.caching import NullCache
from numba.cuda.decorators import _validate_shared_memory_carveout as validate_shared_memory_carveout
from numba.cuda.dispatcher import CUDACache, CUDACacheImpl, CUDADispatcher
from numba.cuda.dispatcher import _LaunchConfiguration as LaunchConfiguration
from numba.cuda.launchconfig import current_launch_config

# `cuda.reduce`, `cuda.vectorize`, `cuda.guvectorize`, and where `numba.vectorize(target="cuda")` looks for them.
from numba.cuda.deviceufunc import GUFuncEngine
from numba.cuda.kernels.reduction import _gpu_reduce_factory as gpu_reduce_factory
from numba.cuda.vectorizers import CUDAGeneralizedUFunc, CUDAGUFuncVectorize
from numba.cuda.vectorizers import CUDAUFuncDispatcher, CUDAUFuncMechanism, CUDAVectorize
from numba.cuda.vectorizers import _CUDAGUFuncCallSteps as CUDAGUFuncCallSteps
from numba.np.ufunc.decorators import GUVectorize as HostGUVectorize
from numba.np.ufunc.decorators import Vectorize as HostVectorize

# Where numba.cuda defines what a kernel may use; its host functions would ask for a GPU.
KERNEL_SIDE = ("numba.cuda.stubs", "numba.cuda.intrinsics", "numba.cuda.cache_hints", "numba.cuda.vector_types")

# What a dispatcher's launch does, before `warplab.launch.on_gpu` lets profiles see it.
launch_kernel = CUDADispatcher.call


def can_compile(kernel: CUDADispatcher) -> bool:
    """Return whether the kernel is compiled for new types of arguments: it has no explicit signatures."""
    return kernel._can_compile


def linking_files(library: Any) -> list:
    """List what a compiled kernel's library links, by Numba's own functions or by `cuda.declare_device`."""
    return list(library._linking_files)


def ptx_modules(library: Any, capability: tuple[int, int]) -> list[str]:
    """Compile a library. Where variables are, which lines do not need, NVVM cannot always say: "Symbol name with
    unsupported characters". `numba.cuda.jit` asks for neither."""
    try:
        return library.get_asm_strs(cc=capability)
    except nvvmError:
        places = re.compile(r'call void @"llvm\.dbg\.value".*')
        library._llvm_strs = [places.sub("", text) for text in library.llvm_strs]
    return library.get_asm_strs(cc=capability)


def is_own(path: str | None) -> bool:
    """Return whether a file is one of numba-cuda's, but for its tests."""
    folder = Path(numba.cuda.__file__).parent
    return path is not None and folder in Path(path).parents and folder / "tests" not in Path(path).parents


@functools.cache
def load_registries() -> None:
    """Let Numba load all that kernels may call, as its first compilation does. That imports scipy.linalg, a quarter of
    the time of a first launch, only to see whether it is there: where SciPy is, a name stands in for it."""
    blas = "scipy.linalg.cython_blas"
    with global_compiler_lock:
        stand_in = blas not in sys.modules and importlib.util.find_spec("scipy") is not None
        if stand_in:
            sys.modules[blas] = ModuleType(blas)
        try:
            cuda_target.typing_context.refresh()
            cuda_target.target_context.refresh()
        finally:
            if stand_in:
                del sys.modules[blas]


@contextlib.contextmanager
def numba_without_gpu(capability: tuple[int, int]) -> Iterator[None]:
    """Name a compute capability for Numba, which compiles device functions for "the current device", where none is."""
    if backend.name() == "gpu":
        yield
        return

    class Device:
        compute_capability = capability

    original = dispatcher.get_current_device
    dispatcher.get_current_device = Device
    try:
        yield
    finally:
        dispatcher.get_current_device = original


def best_overload(actual: tuple, signatures: list[tuple]) -> tuple:
    """Return the one of `signatures` that Numba chooses for arguments of the types `actual`. TypeError if two tie."""
    for one in signatures:
        cuda_target.typing_context.install_possible_conversions(actual, one)
    return signatures[default_type_manager.select_overload(actual, signatures, True, False)]
