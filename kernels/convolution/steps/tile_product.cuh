// The tile loop of the float32 kernels: a block computes BM × BN elements of a matrix product from tiles in shared
// memory, a thread 8 × 8 of them in registers (lab 04). Where the operands come from, a kernel says:
//
//   struct Rows {                        // the left one, BM × depth
//       void go_to(int depth);           // the column that `at` reads next; each thread has its own
//       float at(int row);               // row of the tile; 0 outside the matrix
//   };
//   struct Columns {                     // the right one, depth × BN; a thread reads column threadIdx.x of the tile
//       float next(bool wanted);         // down the column, element by element; 0 outside the matrix, or unwanted
//   };
//
// The next tiles are on their way from global memory while the products of these are computed.
#pragma once

constexpr int BM = 64, BN = 128;  // rows and columns of the result that a block computes
constexpr int BK = 16;            // depth of the tiles it loads
constexpr int TM = 8, TN = 8;     // rows and columns that a thread computes
constexpr int THREADS = BM / TM * (BN / TN);
constexpr int BLOCKS = 3;                 // on a multiprocessor at a time, at least: 168 registers for a thread
constexpr int ROW_STEP = THREADS / BK;    // rows of the left tile that the block loads at a time
constexpr int ROW_LOADS = BM / ROW_STEP;  // of a thread for a tile
constexpr int COLUMN_STEP = BN / TN;      // from one of a thread's columns to the next: lanes read side by side
static_assert(THREADS == BN, "a thread loads one column of the right tile");

// Row, and first column, of the tile that a thread computes.
__device__ __forceinline__ int tile_row() { return threadIdx.x / COLUMN_STEP * TM; }
__device__ __forceinline__ int tile_column() { return threadIdx.x % COLUMN_STEP; }

// sum += rows · columns over the depths from `begin` to `end`. sum[i][j] is of row tile_row() + i and of column
// tile_column() + j * COLUMN_STEP.
template <class Rows, class Columns>
__device__ __forceinline__ void multiply_tiles(Rows rows, Columns columns, int begin, int end, float (&sum)[TM][TN]) {
    // Four more words in a line of the left tile: of lanes that store 16 depths × 2 rows, two meet in a bank and
    // not 16.
    __shared__ __align__(16) float row_tile[BK][BM + 4];
    __shared__ __align__(16) float column_tile[BK][BN];
    const int k = threadIdx.x % BK, row = threadIdx.x / BK;
    float of_rows[ROW_LOADS], of_columns[BK];
    auto load = [&](int start) {
        const bool inside = start + k < end;
        if (inside) {
            rows.go_to(start + k);
        }
#pragma unroll
        for (int i = 0; i < ROW_LOADS; i++) {
            of_rows[i] = inside ? rows.at(row + i * ROW_STEP) : 0;
        }
#pragma unroll
        for (int i = 0; i < BK; i++) {
            of_columns[i] = columns.next(start + i < end);
        }
    };
    load(begin);
    for (int start = begin; start < end; start += BK) {
#pragma unroll
        for (int i = 0; i < ROW_LOADS; i++) {
            row_tile[k][row + i * ROW_STEP] = of_rows[i];
        }
#pragma unroll
        for (int i = 0; i < BK; i++) {
            column_tile[i][threadIdx.x] = of_columns[i];
        }
        __syncthreads();
        if (start + BK < end) {
            load(start + BK);
        }
#pragma unroll
        for (int i = 0; i < BK; i++) {
            float a[TM], b[TN];
#pragma unroll
            for (int r = 0; r < TM; r += 4) {
                *reinterpret_cast<float4 *>(a + r) = *reinterpret_cast<const float4 *>(&row_tile[i][tile_row() + r]);
            }
#pragma unroll
            for (int s = 0; s < TN; s++) {
                b[s] = column_tile[i][tile_column() + s * COLUMN_STEP];
            }
#pragma unroll
            for (int r = 0; r < TM; r++) {
#pragma unroll
                for (int s = 0; s < TN; s++) {
                    sum[r][s] += a[r] * b[s];
                }
            }
        }
        __syncthreads();
    }
}

// A row-major matrix as the left operand, from row `first_row` on.
struct MatrixRows {
    const float *matrix;
    int row_count, pitch;  // rows from `first_row` on; elements from one to the next

    __device__ __forceinline__ MatrixRows(const float *matrix, int first_row, int row_count, int pitch)
        : matrix(matrix + size_t(first_row) * pitch), row_count(row_count - first_row), pitch(pitch) {}

    __device__ __forceinline__ void go_to(int to) { depth = to; }
    __device__ __forceinline__ float at(int row) const {
        return row < row_count ? matrix[size_t(row) * pitch + depth] : 0;
    }

  private:
    int depth;
};

// A row-major matrix as the right operand; the thread's column is number `column`.
struct MatrixColumns {
    const float *next_element;
    int pitch;
    bool inside;

    __device__ __forceinline__ MatrixColumns(const float *matrix, int column, int column_count, int pitch)
        : next_element(matrix + column), pitch(pitch), inside(column < column_count) {}

    __device__ __forceinline__ float next(bool wanted) {
        const float value = inside && wanted ? *next_element : 0;
        next_element += pitch;
        return value;
    }
};
