__global__ void matvec(const float* A, const float* B, float* C, int K) {
    __shared__ float warps[4];
    int t = threadIdx.x;
    size_t row = blockIdx.x;
    float sum = 0;
    for (int k = t; k < K; k += 128) sum += A[row * K + k] * B[k];
    for (int step = 16; step; step /= 2) sum += __shfl_down_sync(~0u, sum, step);
    if (t % 32 == 0) warps[t / 32] = sum;
    __syncthreads();
    if (t == 0) C[row] = warps[0] + warps[1] + warps[2] + warps[3];
}
