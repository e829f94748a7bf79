// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: one thread does too much of the work

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    for (int request = blockIdx.x * blockDim.x + threadIdx.x; request < requests; request += gridDim.x * blockDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin; i < end; i++)
            sum += x[i];
        for (int i = begin; i < end; i++)
            y[i] = x[i] - sum / (end - begin);
    }
}
