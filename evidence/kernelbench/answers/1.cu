constexpr int TILE = 16;

__global__ void matmul(const float* A, const float* B, float* C, int N) {
    __shared__ float a[TILE][TILE], b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < N; k += TILE) {
        a[y][x] = row < N && k + x < N ? A[row * N + k + x] : 0;
        b[y][x] = k + y < N && column < N ? B[(k + y) * N + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += a[y][i] * b[i][x];
        __syncthreads();
    }
    if (row < N && column < N) C[row * N + column] = sum;
}
