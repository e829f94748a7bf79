// Layouts in shared memory of kernels for Hopper: operands of wgmma in the boxes that TMA brings, results in those that
// it takes; and tiles of a result in the order of their numbers. Addresses are those of shared memory, 32 bits.
#pragma once
#include <cuda_fp16.h>

constexpr int LINE_BYTES = 128;  // rows of a box; the 16-byte chunks of row r are exchanged by chunk ^ r % 8

__device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return unsigned(__cvta_generic_to_shared(pointer));
}

// -- operands ---------------------------------------------------------------------------------------------------------

// Describes an operand with swizzled lines of 128 bytes. `leading`, `stride`: bytes, see `k_major` and `mn_major`.
__device__ __forceinline__ unsigned long long describe(unsigned address, unsigned leading, unsigned stride) {
    constexpr unsigned long long SWIZZLE_128 = 1ull << 62;
    return (address & 0x3FFFF) >> 4 | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(stride >> 4) << 32 | SWIZZLE_128;
}

// Rows from `row` on, 16 of k, from a box whose lines are rows, 64 of k each. From eight rows to the next: 8 lines. The
// leading offset is not used. 16 further along k: 32 bytes.
__device__ __forceinline__ unsigned long long k_major(unsigned box, int row, int depth) {
    return describe(box + row * LINE_BYTES + depth * 2, 16, 8 * LINE_BYTES);
}

// 16 of k from `depth` on, from boxes of `box_rows` lines each, a line for each k with 64 columns (of B, rows of A).
// From 64 columns to the next: a box. From eight of k to the next: 8 lines. 16 further along k: 16 lines.
__device__ __forceinline__ unsigned long long mn_major(unsigned boxes, int depth, int box_rows) {
    return describe(boxes + depth * LINE_BYTES, box_rows * LINE_BYTES, 8 * LINE_BYTES);
}

// The operand of a descriptor that starts `bytes` further, a multiple of 16. The address does not overflow into the
// upper half; said so, it takes one addition and not two.
__device__ __forceinline__ unsigned long long moved(unsigned long long descriptor, unsigned bytes) {
    return (descriptor >> 32 << 32) | (unsigned(descriptor) + (bytes >> 4));
}

// -- results ----------------------------------------------------------------------------------------------------------

// Two neighbouring results of row `row` of a box of C, from column `column`, to where the swizzle puts them. The last
// argument only says the type.
__device__ __forceinline__ void keep2(unsigned box, int row, int column, float x, float y, float) {
    const unsigned to = box + row * LINE_BYTES + ((column / 4) ^ (row % 8)) * 16 + column % 4 * 4;
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ void keep2(unsigned box, int row, int column, float x, float y, half) {
    const unsigned to = box + row * LINE_BYTES + ((column / 8) ^ (row % 8)) * 16 + column % 8 * 2;
    const half2 both = __floats2half2_rn(x, y);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(*reinterpret_cast<const unsigned *>(&both)) : "memory");
}

// A warp's 16 × 16 results of float16, from row `row` and column `column` of a box on: a, b of its rows lane / 4 and eight
// below, columns lane % 4 · 2 and the next; c, d likewise eight columns on. Stores four matrices of 8 × 8 at once.
__device__ __forceinline__ void keep_16x16(unsigned box, int row, int column, half2 a, half2 b, half2 c, half2 d) {
    const int lane = threadIdx.x % 32, line = row + lane % 16;  // whose 16 bytes the lane gives the address of
    const unsigned to = box + line * LINE_BYTES + ((column / 8 + lane / 16) ^ (line % 8)) * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                 "r"(*reinterpret_cast<const unsigned *>(&a)), "r"(*reinterpret_cast<const unsigned *>(&b)),
                 "r"(*reinterpret_cast<const unsigned *>(&c)), "r"(*reinterpret_cast<const unsigned *>(&d))
                 : "memory");
}

// Row and column of tile number `tile` of height × width tiles: down `group` rows of tiles, then the next column; at
// the end of the columns the next rows.
__device__ __forceinline__ void place_of(int tile, int height, int width, int group, int &row, int &column) {
    const int start = tile / (group * width) * group, rows = min(group, height - start);
    const int place = tile - start * width;
    row = start + place % rows;
    column = place / rows;
}
