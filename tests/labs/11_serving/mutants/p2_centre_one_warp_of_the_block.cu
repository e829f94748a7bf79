// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: one thread does too much of the work

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    if (threadIdx.x >= 32)
        return;
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin + threadIdx.x; i < end; i += 32)
            sum += x[i];
        for (int lane = 16; lane; lane /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, lane);
        for (int i = begin + threadIdx.x; i < end; i += 32)
            y[i] = x[i] - sum / (end - begin);
    }
}
