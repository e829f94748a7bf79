__device__ float over_block(float mine, bool largest) {
    __shared__ float all[128];
    int t = threadIdx.x;
    all[t] = mine;
    __syncthreads();
    for (int half = 64; half; half /= 2) {
        if (t < half) all[t] = largest ? fmaxf(all[t], all[t + half]) : all[t] + all[t + half];
        __syncthreads();
    }
    float found = all[0];
    __syncthreads();
    return found;
}

__global__ void softmax(const float* x, float* y, int dim) {
    x += size_t(blockIdx.x) * dim;
    y += size_t(blockIdx.x) * dim;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < dim; i += 128) top = fmaxf(top, x[i]);
    top = over_block(top, true);
    for (int i = threadIdx.x; i < dim; i += 128) sum += expf(x[i] - top);
    sum = over_block(sum, false);
    for (int i = threadIdx.x; i < dim; i += 128) y[i] = expf(x[i] - top) / sum;
}
