__device__ float sum_of_block(float mine) {
    __shared__ float warps[4];
    int t = threadIdx.x;
    for (int step = 16; step; step /= 2) mine += __shfl_xor_sync(~0u, mine, step);
    if (t % 32 == 0) warps[t / 32] = mine;
    __syncthreads();
    float sum = warps[0] + warps[1] + warps[2] + warps[3];
    __syncthreads();
    return sum;
}

__global__ void layer_norm(const float* x, const float* weight, const float* bias, float* y, int count) {
    x += size_t(blockIdx.x) * count;
    y += size_t(blockIdx.x) * count;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < count; i += 128) sum += x[i];
    float mean = sum_of_block(sum) / count;
    for (int i = threadIdx.x; i < count; i += 128) squares += (x[i] - mean) * (x[i] - mean);
    float scale = rsqrtf(sum_of_block(squares) / count + 1e-5f);
    for (int i = threadIdx.x; i < count; i += 128) y[i] = (x[i] - mean) * scale * weight[i] + bias[i];
}
