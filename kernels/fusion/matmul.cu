// y = a × b for each of several pairs of matrices, both computed: M × K by K × N, row by row. A block of 16 × 16 threads
// has as many results, and brings as large tiles of a and b to shared memory.
// Expected: for the small products of an attention that is not fused, the time of a launch.
// Right on an H200 (2026-11-26); not timed there.
constexpr int TILE = 16;

extern "C" __global__ void matmul(const float *a, const float *b, float *y, int m, int k, int n) {
    __shared__ float of_a[TILE][TILE], of_b[TILE][TILE];
    const int across = (n - 1) / TILE + 1, tiles = ((m - 1) / TILE + 1) * across;
    const int matrix = blockIdx.x / tiles, tile = blockIdx.x % tiles, r = threadIdx.x / TILE, c = threadIdx.x % TILE;
    const int row = tile / across * TILE + r, column = tile % across * TILE + c;
    a += size_t(matrix) * m * k;
    b += size_t(matrix) * k * n;
    float sum = 0;
    for (int start = 0; start < k; start += TILE) {
        of_a[r][c] = row < m && start + c < k ? a[row * k + start + c] : 0;
        of_b[r][c] = start + r < k && column < n ? b[(start + r) * n + column] : 0;
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++) sum += of_a[r][i] * of_b[i][c];
        __syncthreads();
    }
    if (row < m && column < n) y[size_t(matrix) * m * n + row * n + column] = sum;
}
