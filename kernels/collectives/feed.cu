// A root that feeds a ring one slice at a time: it sends a slice only when the last device has passed on the one before.
// Where another kernel of the ring waits for later slices before it passes on the first, nobody goes on.
// Before the first slice it takes its time: a kernel that stops waiting after a while passes on what is not there.
// `reached`: the flags that the last device sets. Otherwise as the kernels that it feeds; see forward_checks.py.
extern "C" __global__ void feed(
    const float* mine, float* next, const volatile unsigned* reached, volatile unsigned* passed, int n, int slices)
{
    for (int look = 0; look < 1500; look++)
        (void)*reached;
    for (int s = 0; s < slices; s++) {
        int first = (long long)s * n / slices, last = (long long)(s + 1) * n / slices;
        if (s > 0 && threadIdx.x == 0) {
            while (reached[(s - 1) * gridDim.x + blockIdx.x] == 0)
                ;
            __threadfence_system();
        }
        __syncthreads();
        for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x)
            next[i] = mine[i];
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            passed[s * gridDim.x + blockIdx.x] = 1;
        }
    }
}
