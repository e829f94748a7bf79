// Transpose of a matrix of floats: out[x][y] = in[y][x], in of rows × columns, out of columns × rows, of any size.
// 8 bytes of memory traffic per element and no arithmetic: the limit is a copy.
// Measured: 16384 × 16384, NVIDIA H100 80GB HBM3, 2026-11-21; copy 3002 GB/s. ncu: Nsight Compute, same day.

constexpr int TILE = 32;  // side of a tile
constexpr int STEP = 8;   // rows that a block of 32 × 8 threads moves at a time

// 1. One thread per element: a warp loads 32 neighbours of a row and stores them into a column.
// Expected: 4 sectors per load request, 32 per store request; sectors are written a float at a time: far from the copy.
// Reached: 413 GB/s, 0.14 of the copy. ncu: the L2 cache takes eight times as many sectors as from step 2.
extern "C" __global__ void transpose_naive(const float *in, float *out, int rows, int columns) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < columns && y < rows) {
        out[size_t(x) * rows + y] = in[size_t(y) * columns + x];
    }
}

// 2. A tile of 32 × 32 through shared memory: rows of in are loaded, rows of out are stored.
// Expected: 4 sectors both ways. But a column of the tile lies in one bank: 32 wavefronts per load.
// Reached: 1752 GB/s, 0.58 of the copy. ncu: the way to shared memory is busy for 95 % of the time.
extern "C" __global__ void transpose_tile(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < columns && y + k < rows) {
            tile[threadIdx.y + k][threadIdx.x] = in[size_t(y + k) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;  // in out
    for (int k = 0; k < TILE; k += STEP) {
        if (x < rows && y + k < columns) {
            out[size_t(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}

// 3. Step 2 with rows of 33 words: the words of a column lie in 32 banks.
// Expected: no conflict; 4 % more shared memory.
// Reached: 2783 GB/s, 0.93 of the copy. ncu: that way is busy for 21 % of the time.
extern "C" __global__ void transpose_padded(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + 1];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < columns && y + k < rows) {
            tile[threadIdx.y + k][threadIdx.x] = in[size_t(y + k) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < rows && y + k < columns) {
            out[size_t(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
        }
    }
}

// 4. Step 2 with column c of row r kept in place c ^ r: for a fixed c the 32 rows give 32 different banks.
// Expected: as step 3, without the unused words.
// Reached: 2776 GB/s, 0.92 of the copy.
extern "C" __global__ void transpose_swizzled(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < columns && y + k < rows) {
            tile[threadIdx.y + k][threadIdx.x ^ (threadIdx.y + k)] = in[size_t(y + k) * columns + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
    for (int k = 0; k < TILE; k += STEP) {
        if (x < rows && y + k < columns) {
            out[size_t(y + k) * rows + x] = tile[threadIdx.x][(threadIdx.y + k) ^ threadIdx.x];
        }
    }
}

constexpr int SIDE = 64;      // of the tiles of steps 5 and 6
constexpr int THREADS = 256;  // a block of steps 5 and 6, in one dimension

// 5. Step 3 with tiles of 64 × 64: 16 elements per thread, loaded before the first is stored. The grid has one
// dimension and runs down the columns of in, so blocks that follow each other continue the same rows of out.
// Expected: four times the bytes in flight for each thread, and 256 bytes in a row where there were 128.
// Reached: 2893 GB/s, 0.96 of the copy.
extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_large(const float *in, float *out, int rows, int columns) {
    __shared__ float tile[SIDE][SIDE + 1];
    const int down = (rows - 1) / SIDE + 1;
    const int row = blockIdx.x % down * SIDE, column = blockIdx.x / down * SIDE;  // of in, where the tile starts
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll
    for (int k = 0; k < SIDE; k += THREADS / SIDE) {
        if (column + x < columns && row + y + k < rows) {
            tile[y + k][x] = in[size_t(row + y + k) * columns + column + x];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; k += THREADS / SIDE) {
        if (row + x < rows && column + y + k < columns) {
            out[size_t(column + y + k) * rows + row + x] = tile[x][y + k];
        }
    }
}

// 6. Step 5 with 16 bytes per access. Each thread loads 4 × 4 elements, transposes them in its registers and stores
// four float4 into the tile, swizzled as in step 4. Rows and columns are multiples of 4, addresses multiples of 16.
// Expected: a quarter of the requests and of the wavefronts; some bandwidth, if requests still cost any.
// Reached: 2916 GB/s, 0.97 of the copy; 0.90 for 16380 × 20004, whose rows start inside sectors (H200,
// 2026-11-27) and which step 7 takes.
// Tried and left out: tiles of 32 × 128 to 128 × 32 in step 5 (at most 0.94), tiles in groups of 4 to 16 rows (0.96),
// loads and stores with cache hints (0.96).
extern "C" __global__ void __launch_bounds__(THREADS)
    transpose_float4(const float *in, float *out, int rows, int columns) {
    constexpr int VECTORS = SIDE / 4;  // in a row of the tile
    __shared__ float4 tile[SIDE][VECTORS];
    const int down = (rows - 1) / SIDE + 1;
    const int row = blockIdx.x % down * SIDE, column = blockIdx.x / down * SIDE;
    const int x = threadIdx.x % VECTORS, y = threadIdx.x / VECTORS;
    if (row + 4 * y < rows && column + 4 * x < columns) {
        float4 a[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            a[k] = *reinterpret_cast<const float4 *>(in + size_t(row + 4 * y + k) * columns + column + 4 * x);
        }
        tile[4 * x][y ^ x] = make_float4(a[0].x, a[1].x, a[2].x, a[3].x);
        tile[4 * x + 1][y ^ x] = make_float4(a[0].y, a[1].y, a[2].y, a[3].y);
        tile[4 * x + 2][y ^ x] = make_float4(a[0].z, a[1].z, a[2].z, a[3].z);
        tile[4 * x + 3][y ^ x] = make_float4(a[0].w, a[1].w, a[2].w, a[3].w);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SIDE; k += THREADS / VECTORS) {
        const int r = y + k;  // of the tile, and of out from `column` on
        if (row + 4 * x < rows && column + r < columns) {
            *reinterpret_cast<float4 *>(out + size_t(column + r) * rows + row + 4 * x) = tile[r][x ^ (r / 4)];
        }
    }
}

constexpr int BATCH = 8;          // loads of a thread that are under way at a time
constexpr unsigned SECTOR = 8;    // floats
constexpr unsigned HIGH = 128;    // rows of a tile of step 7
constexpr unsigned CHUNKS = 16;   // of 16 bytes, that a tile's row takes
constexpr unsigned MOST_DOWN = 256, GROUP = 16;  // tiles one below the other, before the next column of tiles: all, so
                                                 // that rows of out are written whole, or where they are long a group
constexpr unsigned STRIP = 32;                   // rows that a warp of step 8 stores of a column

// A load for which the L2 cache fetches the 256 bytes around it, where it must ask memory at all.
__device__ __forceinline__ float load(const float *from) {
    float v;
    asm volatile("ld.global.L2::256B.f32 %0, [%1];" : "=f"(v) : "l"(from));
    return v;
}

// Likewise 16 bytes, on their way into shared memory, of a vector that ends `left` floats behind `from`.
__device__ __forceinline__ void copy_ahead(float *to, const float *from, size_t left) {
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(left < 4 ? 4 * int(left) : 16)
                 : "memory");
}

__device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    __syncthreads();
}

// Where word w of a row r, which may be before the tile's first, lies in shared memory: chunks swizzled by fours of rows,
// so that 32 threads one below the other find theirs in up to 32 banks, as word w of a column is another one in each row.
__device__ __forceinline__ int word_of(int r, unsigned w) {
    return r * int(4 * CHUNKS) + int((w / 4 ^ unsigned(r) / 4 % 8) * 4 + w % 4);
}

// 7. For any shape. Where rows is no multiple of 8 floats, a line of out ends inside a sector, which two blocks of step
// 5 store in part; the L2 cache has to put it together. Here each line of a tile begins where a sector of out does, up
// to 7 rows of in before the tile: these are loaded twice, the second time from the L2 cache. Rows of in begin at any
// float: of each a tile copies the chunks of 16 bytes that have some of it, asynchronously, and so without registers. A
// warp stores 32 neighbours of a row of out; of a column all threads' words lie 32 rows apart at the same place of their
// row, so that a store costs a load, an addition and a comparison. A tile has 128 rows of in and `wide` columns.
// Expected: no sector is stored in part but for the ends of out's rows, so the copy's speed.
// Reached (H200, 2026-11-27, whose copy has 4240 GB/s): 0.93 of the copy for 16381 × 20011, two primes, where step 5 reaches
// 0.68; 0.93 for 16380 × 20004; 0.86 for 1000003 × 250. Loaded float by float
// it had 0.76, 0.76 and 0.75, though reading alone had 1.35 of the copy's rate and storing alone 1.83.
// Tried and left out (H200): two tiles in turns, of which one is on its way, by cp.async (0.62 to 0.74) or by bulk copies
// of rows (0.67 to 0.72); bulk copies without (0.80 to 0.82); tiles that begin where 128 bytes of out do (as fast); __stcs,
// 0.02 slower; without the 256 bytes 0.03 slower.
extern "C" __global__ void __launch_bounds__(THREADS, 6)
    transpose_sectors(const float *in, float *out, unsigned rows, unsigned columns, unsigned wide) {
    __shared__ __align__(16) float words[(HIGH + SECTOR - 1) * 4 * CHUNKS];
    const unsigned down = (rows + SECTOR - 2) / HIGH + 1, across = (columns - 1) / wide + 1;
    const unsigned group = down <= MOST_DOWN ? down : GROUP, first_row = blockIdx.x / (group * across) * group;
    const unsigned in_group = blockIdx.x % (group * across), height = min(group, down - first_row);
    const unsigned row = (first_row + in_group % height) * HIGH, column = in_group / height * wide;
    const unsigned above = min(row, SECTOR - 1);  // rows of in that lie before `row` and are loaded, too
    const unsigned lines = min(HIGH + above, rows - (row - above)), length = min(wide, columns - column);
    const size_t begin = size_t(row - above) * columns + column, end = size_t(rows) * columns;

    size_t first = begin + size_t(threadIdx.x / CHUNKS) * columns;
#pragma unroll 4
    for (unsigned r = threadIdx.x / CHUNKS; r < lines; r += THREADS / CHUNKS) {
        const unsigned chunk = threadIdx.x % CHUNKS;
        const size_t from = first / 4 * 4 + 4 * chunk;
        if (from < first + length) copy_ahead(words + word_of(r, 4 * chunk), in + from, end - from);
        first += size_t(THREADS / CHUNKS) * columns;
    }
    wait_for_copies();

    const unsigned floats = reinterpret_cast<size_t>(out) / sizeof(float) + column * rows + row;
#pragma unroll 1
    for (unsigned c = threadIdx.x / 32; c < length; c += THREADS / 32) {
        const int r = int(above - (floats + c * rows) % SECTOR + threadIdx.x % 32);  // the first at a sector of out
        const float *const from = words + word_of(r, (unsigned(begin) + r * columns) % 4 + c);
        float *const to = out + size_t(column + c) * rows + int(row - above) + r;
#pragma unroll
        for (int i = 0; i < HIGH; i += 32) {
            if (r + i < lines) to[i] = from[i * int(4 * CHUNKS)];  // of r before 0 neither
        }
    }
}

// 8. Step 7 for few columns: a tile has them all, so it is one piece of in, and lies in that order in shared memory.
// Chunks are swizzled where columns is even, as words of a column are then in some of the banks only.
// Expected: as step 7, without the chunks that two tiles copy.
// Reached (H200, 2026-11-27): 0.97 for 89478485 × 3, where step 7 reaches 0.17. From 25 columns
// on step 7 is faster: 0.88 for 8000003 × 31, this one 0.84. Timed since: 31214 × 8 by tiles of 1024 elements 0.90, of 2048
// 0.85; 2449741 × 7 by 2048 0.91, by 4096 0.85; 5000011 × 13 by 2048 0.85, by 4096 0.89.
extern "C" __global__ void __launch_bounds__(THREADS, 5)
    transpose_few_columns(const float *in, float *out, unsigned rows, unsigned columns, unsigned high) {
    extern __shared__ __align__(16) float words[];
    const unsigned row = blockIdx.x * high, above = min(row, SECTOR - 1), lines = min(high + above, rows - (row - above));
    const size_t begin = size_t(row - above) * columns, end = size_t(rows) * columns;
    const unsigned before = begin % 4, size = before + lines * columns, swizzle = columns % 2 ? 0 : 7 * 4;
#pragma unroll 4
    for (unsigned w = 4 * threadIdx.x; w < size; w += 4 * THREADS) {
        const size_t from = begin - before + w;
        copy_ahead(words + (w ^ (w / 8 & swizzle)), in + from, end - from);
    }
    wait_for_copies();

    const unsigned floats = reinterpret_cast<size_t>(out) / sizeof(float) + row;
    const unsigned strips = high / STRIP;
    for (unsigned strip = threadIdx.x / 32; strip < columns * strips; strip += THREADS / 32) {
        const unsigned c = strip / strips;  // so that neighbouring warps store what lies in a row
        const int r = int(above - (floats + c * rows) % SECTOR + strip % strips * STRIP + threadIdx.x % 32);
        const unsigned w = before + r * columns + c;
        if (r < lines) out[size_t(c) * rows + int(row - above) + r] = words[w ^ (w / 8 & swizzle)];
    }
}

// 9. For few rows: a tile has them all, so it is one piece of out, and lies in that order in shared memory. `wide` is a
// multiple of 32, so each piece begins where a sector of out does. Threads that store neighbours of a row of in into
// shared memory are `rows` words apart: in different banks, if rows is odd; else a word more after every 32 helps
// (`log_pad` 5, and 31 for none).
// Expected: as step 7, without sectors stored in part at the ends of out's short rows.
// Reached (H200, 2026-11-27): 0.98 of the copy for 3 × 89478485, 0.90 for 250 × 1000003, 0.96 for 31 × 8000003, which
// on an H100 had 0.75 with the word more, as columns then lie 32 words apart, in one bank. Timed since: 21 × 11819 by tiles
// of 2048 elements 0.94, of 1024 0.86.
extern "C" __global__ void __launch_bounds__(THREADS, 5)
    transpose_few_rows(const float *in, float *out, unsigned rows, unsigned columns, int log_wide, int log_pad) {
    extern __shared__ __align__(16) float words[];
    const unsigned wide = 1 << log_wide, column = blockIdx.x * wide, length = min(wide, columns - column);
    const float *source = in + column;
    for (unsigned e = threadIdx.x; e < rows * wide; e += BATCH * THREADS) {
        float a[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const unsigned r = (e + k * THREADS) >> log_wide, c = (e + k * THREADS) % wide;
            a[k] = r < rows && c < length ? load(source + size_t(r) * columns + c) : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const unsigned r = (e + k * THREADS) >> log_wide, c = (e + k * THREADS) % wide;
            const unsigned at = c * rows + r;
            if (r < rows) words[at + (at >> log_pad)] = a[k];
        }
    }
    __syncthreads();

    float *target = out + size_t(column) * rows;
    const unsigned size = length * rows;
    for (unsigned e = 4 * threadIdx.x; e < size; e += 4 * THREADS) {
        const float *from = words + e + (e >> log_pad);  // of four words in a row, as e is a multiple of 4
        if (e + 3 < size) {
            *reinterpret_cast<float4 *>(target + e) = log_pad == 5 ? make_float4(from[0], from[1], from[2], from[3])
                                                                   : *reinterpret_cast<const float4 *>(from);
        } else {
            target[e] = from[0];
            if (e + 1 < size) target[e + 1] = from[1];
            if (e + 2 < size) target[e + 2] = from[2];
        }
    }
}
