"""A flag between GPUs in three spellings: how a thread waits for it and sets it, in the kernel of the lesson."""

from warplab.launch.kernel_source import CudaSource

# Each orders as the others do: what was written before the flag is set is seen by who has seen the flag, on any GPU.
FLAG = {
    "volatile and fences": (
        "while (*(volatile unsigned *)arrived == 0); __threadfence_system();",
        "__threadfence_system(); *(volatile unsigned *)passed = 1;",
    ),
    "PTX": (
        'do asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory"); while (!seen);',
        'asm volatile("st.release.sys.global.u32 [%0], 1;" :: "l"(passed) : "memory");',
    ),
    "cuda::atomic_ref": (
        "while (Flag(*arrived).load(cuda::memory_order_acquire) == 0);",
        "Flag(*passed).store(1, cuda::memory_order_release);",
    ),
}
_KERNEL = """
#include <cuda/atomic>
using Flag = cuda::atomic_ref<unsigned, cuda::thread_scope_system>;

extern "C" __global__ void pass_on(const float *mine, float *next, unsigned *arrived, unsigned *passed, int n, int) {
    unsigned seen = 0;
    (void)seen;
    if (threadIdx.x == 0) { WAIT }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) next[i] = mine[i];
    __syncthreads();
    if (threadIdx.x == 0) { TELL }
}
"""


def pass_on(wait: str, tell: str) -> CudaSource:
    """Return the lesson's forwarding kernel with these statements around its flags."""
    return CudaSource(_KERNEL.replace("WAIT", wait).replace("TELL", tell), "pass_on", file="pass_on.cu")
