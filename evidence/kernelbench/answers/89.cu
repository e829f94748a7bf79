__global__ void cumsum(const float* x, float* y, int dim) {
    __shared__ float sums[128];
    int t = threadIdx.x;
    float before = 0;
    for (int start = 0; start < dim; start += 128) {
        int i = start + t;
        sums[t] = i < dim ? x[size_t(blockIdx.x) * dim + i] : 0;
        __syncthreads();
        for (int step = 1; step < 128; step *= 2) {
            float other = t >= step ? sums[t - step] : 0;
            __syncthreads();
            sums[t] += other;
            __syncthreads();
        }
        if (i < dim) y[size_t(blockIdx.x) * dim + i] = before + sums[t];
        before += sums[127];
        __syncthreads();
    }
}
