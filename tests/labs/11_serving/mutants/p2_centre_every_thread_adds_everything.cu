// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: one thread does too much of the work|too many global load requests

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    for (int request = blockIdx.x; request < requests; request += gridDim.x) {
        int begin = first[request], end = first[request + 1];
        float sum = 0;
        for (int i = begin; i < end; i++)
            sum += x[i];
        float mean = sum / (end - begin);
        for (int i = begin + threadIdx.x; i < end; i += blockDim.x)
            y[i] = x[i] - mean;
        __syncthreads();
    }
}
