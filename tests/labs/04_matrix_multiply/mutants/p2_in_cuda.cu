// problem: distances
// loses: distances-right, distances-sectors, distances-banks
// reason: in the wrong language
extern "C" __global__ void distances(const float* x, const float* y, float* d, int n, int k)
{
    int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    float total = 0;
    for (int i = 0; i < k; i++) {
        float step = x[row * k + i] - y[column * k + i];
        total += step * step;
    }
    d[row * n + column] = total;
}
