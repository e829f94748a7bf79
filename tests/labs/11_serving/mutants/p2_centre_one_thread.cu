// problem: centre
// loses: centre-each, centre-turns, centre-counted
// reason: one thread does too much of the work

extern "C" __global__ void centre(const float* x, const int* first, float* y, int requests)
{
    if (blockIdx.x || threadIdx.x)
        return;
    for (int request = 0; request < requests; request++) {
        float sum = 0;
        for (int i = first[request]; i < first[request + 1]; i++)
            sum += x[i];
        for (int i = first[request]; i < first[request + 1]; i++)
            y[i] = x[i] - sum / (first[request + 1] - first[request]);
    }
}
