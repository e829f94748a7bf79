// problem: forward
// loses: forward-one, forward-any
// reason: one thread does too much of the work
extern "C" __global__ void forward(
    const float* mine, float* next, const volatile unsigned* arrived, volatile unsigned* passed, int n, int slices)
{
    for (int s = 0; s < slices; s++) {
        int first = (long long)s * n / slices, last = (long long)(s + 1) * n / slices;
        int flag = s * gridDim.x + blockIdx.x;
        if (threadIdx.x == 0) {
            while (arrived[flag] == 0)
                ;
            __threadfence_system();
        }
        __syncthreads();
        __shared__ float held[1024];
        int count = 0;
        if (threadIdx.x == 0)
            for (int begin = first + blockIdx.x * blockDim.x; begin < last; begin += gridDim.x * blockDim.x)
                for (int i = begin; i < last && i < begin + (int)blockDim.x; i++)
                    held[count++] = mine[i];
        __syncthreads();
        count = threadIdx.x;
        for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < last; i += gridDim.x * blockDim.x) {
            next[i] = held[count];
            count += blockDim.x;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            passed[flag] = 1;
        }
    }
}
