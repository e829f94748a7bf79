"""Lab 13, Attention: where fusion meets recomputation.

`forward` computes attention by any of `STEPS`: 1 and 2 in Numba and float32; 3 by mma.sync and 4 by Hopper's wgmma, in
float16 or bfloat16. `backward` gives the gradients by recomputation, by 3 or 4, `decode` one token from a paged cache;
`reference` is the definition in float64, below all labs; `ATTENTION` is what they get of this one without importing it.
`triton_kernels` is step 3 in Triton, where that is installed. `recordings` holds what was measured on a GPU.
"""

from typing import Any

import numpy as np

from kernels.attention.backward_pass import backward
from kernels.attention.decoding import decode
from kernels.attention.forward_pass import STEPS, forward
from kernels.attention.sources import SIZES
from warpcourse.bench import attention as reference
from warpcourse.bench.recordings import Recordings
from warplab import cp


def _on_device(x: np.ndarray) -> Any:
    return cp.asarray(np.ascontiguousarray(x, np.int32 if x.dtype.kind == "i" else np.float16))


recordings = Recordings(__name__)
ATTENTION = reference.Attention(forward, decode, _on_device, cp.asnumpy, SIZES)

__all__ = ["ATTENTION", "STEPS", "backward", "decode", "forward", "recordings", "reference"]
