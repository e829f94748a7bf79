"""How the simulator's errors speak to those who wrote a kernel: the likely cause in the terms of its front end.

The simulator says it for CUDA C++ with Numba's words in brackets, and conditions as Python writes them.
"""

import re
from pathlib import PurePath

from warplab.simulator.errors import SimulatorError

_CPP = ".cu", ".cuh", ".cuda", ".h", ".hpp"
_CUDA = "CUDA C++"
_TERMS = {
    _CUDA: (
        (r" (?:\(in Numba(?:[^()]|\(\))*\)|In Numba: .*?\)\.(?= |$))", ""),
        (r"\(cuda\.to_device,", "(cudaMemcpy,"),
        ("`empty` and `device_array` leave", "cudaMalloc and cp.empty leave"),
        (r"`if ([^`(]*)`", r"`if (\1)`"),
    ),
    "CUDA C++ program": (  # after those of CUDA C++: no word of CuPy
        (r"\(cudaMemcpy, cp\.asarray\) and pass that array", "(cudaMemcpy) and pass that copy"),
        ("cudaMalloc and cp.empty leave", "cudaMalloc leaves"),
        (r" a \w+ of the simulated device \(cp\.cuda\.texture\)", " the object that the runtime has made"),
    ),
    "Triton": (
        (r" \(or a __syncwarp\(\) within a warp\)\? In Numba: cuda\.syncthreads\(\), cuda\.syncwarp\(\)\.", "?"),
        (r"__syncthreads\(\)", "tl.debug_barrier()"),
        ("Threads of different blocks", "Programs of a grid"),
        ("use an atomic", "use tl.atomic_add or another atomic"),
        (
            r"element, `x \+= \.\.\.`\? That needs an atomic\.",
            "element by a load and a store? That needs tl.atomic_add.",
        ),
        (r"a guard missing \(`if i < n`\)", "a mask missing (`mask=offsets < n`)"),
        (
            r"the other block (.*) put a __threadfence\(\) \(in Numba cuda\.threadfence\(\)\) before it",
            r"another \1 give it sem='acq_rel'",
        ),
        (r"Make it `volatile` and put a __threadfence\(\) before it is set, or use", "Set it and wait for it by"),
        (r" \(in Numba cuda\.atomic functions and cuda\.threadfence\(\)\)", " (tl.atomic_xchg, tl.atomic_cas)"),
    ),
}


def tell(error: SimulatorError, language: str = "") -> None:
    """Put the reason of an error in the terms of `language`, or of CUDA C++ where the error's file is in that."""
    is_cpp = PurePath(error.file or "").suffix in _CPP or language.startswith(_CUDA)
    for of in dict.fromkeys(([_CUDA] if is_cpp else []) + [language]):
        for words, own in _TERMS.get(of, ()):
            error.reason = re.sub(words, own, error.reason)
    error.args = (error.message(),)
