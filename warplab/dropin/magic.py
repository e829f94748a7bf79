"""The `%%cuda` cell magic: compiles CUDA C++ in a cell and makes its kernels variables of the notebook.

    %%cuda
    extern "C" __global__ void scale(float* x, float factor, int n) { ... }

    scale(grid, block, (x, np.float32(2), np.int32(n)))       # in the next cell, called like CuPy's kernels

What follows `%%cuda` goes to the compiler: `%%cuda -DTILE=16 --use_fast_math`.
"""

import shlex
import sys

from warplab.dropin import missing_names


def register(shell) -> None:
    """Make `%%cuda` known to an IPython shell, and let it say what is missing where a name is not defined."""
    shell.register_magic_function(lambda line, cell: run(shell, line, cell), "cell", "cuda")
    missing_names.register(shell)


def run(shell, line: str, cell: str) -> None:
    """Compile `cell` and make its kernels variables of the notebook. CompileError shows the cell's own lines.

    A kernel needs no extern "C" here. Templates compile with the cell but become no variables; their instances come
    from `cp.RawModule(code=..., name_expressions=["f<float>"])`.
    """
    from IPython.core.error import UsageError

    from warplab.compile.cuda_signature import kernels
    from warplab.compile.headers import COURSE_HEADERS, include_folders
    from warplab.compile.nvrtc import compile_cuda_program
    from warplab.compile.source_files import current_cell_name
    from warplab.dropin import choice
    from warplab.launch.kernel_source import CudaSource
    from warplab.launch.on_gpu import InSimulator

    # The magic's own line is line 1 of the cell.
    code = f"// %%cuda {line}".rstrip() + f"\n{cell}"
    names = tuple(name for name, signature in kernels(code).items() if not signature.template)
    file, options = current_cell_name(), tuple(shlex.split(line))
    # When a cell no longer compiles, the kernels of its last version must not be launched in their place.
    shell.drop_by_id({name: shell.user_ns[name] for name in names if name in shell.user_ns})
    if not names:
        raise UsageError('the cell has no kernel; write extern "C" __global__ void name(...) { ... }')
    options += tuple(f"-I{folder}" for folder in (*include_folders(), COURSE_HEADERS))
    # The simulator's module asks for the same program, and gets this one.
    asked = CudaSource(code, "", options, by_cupy=True).compiler_options
    warnings = compile_cuda_program(code, file, options=asked, name_expressions=names).log
    if warnings:
        print(warnings, file=sys.stderr)
    module = choice.load("cp").RawModule(code=code, options=options, name_expressions=names)
    module._file = file
    try:
        found = {name: module.get_function(name) for name in names}
    except Exception as error:  # CuPy's, of a GPU without the instructions of an H100: the cell itself compiles
        why = (str(error) or repr(error)).splitlines()[0]
        print(f"Not on this card, in the simulator: {why}")
        found = {name: InSimulator(CudaSource(code, name, options, file, names, by_cupy=True)) for name in names}
    shell.push(found, interactive=True)
