"""Python kernels to PTX by Numba and NVVM, which come as pip packages; needs no GPU and no CUDA toolkit."""

import linecache
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from warplab.compile import kernel_mistakes, linked_code, ptx_linking
from warplab.compile.architecture import DEFAULT_ARCH
from warplab.compile.errors import shorten_traceback


@dataclass(frozen=True)
class NumbaProgram:
    """A compiled Python kernel. `entry`: its name in `ptx`. `texts`: linked CUDA C++ that is in no file, by name.

    `library`, `annotation`, `metadata`: Numba's own objects, with the LLVM code, the types of the variables and what it
    noted. `exceptions`: maps the number that a debug kernel leaves behind to the exception it raised.
    """

    ptx: str
    entry: str
    texts: dict[str, str]
    library: Any
    annotation: Any
    metadata: dict | None
    exceptions: Callable[[int], tuple]


def _place(error: BaseException) -> str:
    """Return the line at which Numba stopped, where its message names none; "" if that is not known."""
    place = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        what = frame.f_locals.get("constraint") or frame.f_locals.get("inst")
        at = getattr(what, "loc", None)
        if at is not None and ", line " not in str(error):
            place = f"line {at.line}: {linecache.getline(at.filename, at.line).strip()}"
    return place


def compile_numba(function: Callable, signature: tuple, arch: int = DEFAULT_ARCH, **options) -> tuple[str, str]:
    """Return the PTX of a Python kernel, with line information, and its entry's name; see `compile_numba_program`."""
    program = compile_numba_program(function, signature, arch, **options)
    return program.ptx, program.entry


def compile_numba_program(
    function: Callable,
    signature: tuple,
    arch: int = DEFAULT_ARCH,
    *,
    fastmath: bool = False,
    opt: bool = True,
    launch_bounds: int | tuple[int, ...] | None = None,
    debug: bool = False,
    link: tuple = (),
) -> NumbaProgram:
    """Compile a Python kernel as `numba.cuda` does for capability `arch` (75 for 7.5), with what it links.

    `signature`: a tuple of Numba types, one per argument. `link`: paths (.cu, .ptx) and objects such as
    `cuda.CUSource`. The entry's mangled name is replaced by the function's own, which keeps the PTX readable. Raises
    Numba's own errors (`numba.cuda.core.errors.TypingError` and so on), CompileError for linked CUDA C++ that does not
    compile, NotImplementedError for linked code that is neither CUDA C++ nor PTX.
    """
    from warplab.compile import numba_internals

    capability = divmod(arch, 10)
    numba_internals.load_registries()
    with numba_internals.numba_without_gpu(capability), warnings.catch_warnings():
        if not debug:
            # A function made by exec() has no lines to record.
            warnings.simplefilter("ignore", numba_internals.NumbaDebugInfoWarning)

        def compile_with(lineinfo: bool) -> Any:
            return numba_internals.compile_cuda(
                function,
                numba_internals.types.void,
                signature,
                debug=debug,
                lineinfo=lineinfo,
                fastmath=fastmath,
                nvvm_options={"fastmath": fastmath, "opt": 3 if opt else 0} | ({"g": None} if debug else {}),
                cc=capability,
            )

        try:
            try:
                compiled = compile_with(lineinfo=not debug)
            except (ZeroDivisionError, IndexError):
                # Numba 0.68 cannot describe a tuple of empty tuples, nor find the lines of a body that is a docstring.
                compiled = compile_with(lineinfo=False)
            library = compiled.library
            kernel = library.get_function(compiled.fndesc.llvm_func_name)
            numba_internals.kernel_fixup(kernel, debug)
            numba_internals.set_launch_bounds(kernel, launch_bounds)
            modules = numba_internals.ptx_modules(library, capability)
        except Exception as error:  # whatever Numba makes of a mistake in the kernel: only the message helps a learner
            meant = kernel_mistakes.hint(function, error) or _place(error)
            if meant:
                error.add_note(meant)
            shorten_traceback(error)
            raise
    linked = linked_code.of_kernel(modules, [*link, *numba_internals.linking_files(library)])
    ptx = ptx_linking.link([*modules, *(code.ptx(arch) for code in linked)])
    mangled = re.findall(r"\.visible \.entry (\w+)\(", ptx)[0]
    entry = function.__name__ if function.__name__.isidentifier() else "kernel"
    texts = {code.name: code.text for code in linked}
    annotation, metadata, exceptions = compiled.type_annotation, compiled.metadata, compiled.call_helper.get_exception
    return NumbaProgram(ptx.replace(mangled, entry), entry, texts, library, annotation, metadata, exceptions)
