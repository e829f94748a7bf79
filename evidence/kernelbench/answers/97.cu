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

__global__ void attention(const float* Q, const float* K, const float* V, float* out, int length, int width) {
    extern __shared__ float scores[];
    size_t head = size_t(blockIdx.y) * length * width, row = head + size_t(blockIdx.x) * width;
    float top = -INFINITY, sum = 0;
    for (int key = threadIdx.x; key < length; key += 128) {
        float score = 0;
        for (int i = 0; i < width; i++) score += Q[row + i] * K[head + size_t(key) * width + i];
        scores[key] = score * rsqrtf(width);
        top = fmaxf(top, scores[key]);
    }
    top = over_block(top, true);
    for (int key = threadIdx.x; key < length; key += 128) {
        scores[key] = expf(scores[key] - top);
        sum += scores[key];
    }
    sum = over_block(sum, false);
    for (int i = threadIdx.x; i < width; i += 128) {
        float value = 0;
        for (int key = 0; key < length; key++) value += scores[key] * V[head + size_t(key) * width + i];
        out[row + i] = value / sum;
    }
}
