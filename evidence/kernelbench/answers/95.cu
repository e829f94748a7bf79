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

__global__ void losses(const float* predictions, const long long* targets, float* losses, int classes) {
    const float* x = predictions + size_t(blockIdx.x) * classes;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < classes; i += 128) top = fmaxf(top, x[i]);
    top = over_block(top, true);
    for (int i = threadIdx.x; i < classes; i += 128) sum += expf(x[i] - top);
    sum = over_block(sum, false);
    if (threadIdx.x == 0) losses[blockIdx.x] = top + logf(sum) - x[targets[blockIdx.x]];
}

__global__ void mean(const float* losses, float* loss, int count) {
    float sum = 0;
    for (int i = threadIdx.x; i < count; i += 128) sum += losses[i];
    sum = over_block(sum, false);
    if (threadIdx.x == 0) *loss = sum / count;
}
