// problem: forward
// loses: forward-one, forward-any
// reason: race between devices: narrow fence
extern "C" __global__ void forward(
    const float* mine, float* next, const volatile unsigned* arrived, volatile unsigned* passed, int n, int slices)
{
    for (int s = 0; s < slices; s++) {
        int first = (long long)s * n / slices, last = (long long)(s + 1) * n / slices;
        int flag = s * gridDim.x + blockIdx.x;
        if (threadIdx.x == 0) {
            while (arrived[flag] == 0)
                ;
            __threadfence();
        }
        __syncthreads();
        for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x)
            next[i] = mine[i];
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            passed[flag] = 1;
        }
    }
}
