// Stands in for kernels/tensor_core/hopper.cuh where there is no Hopper: the same functions for the simulator. Barriers
// are real. A load by TMA only notes in shared memory which part of which matrix lies where, which takes one thread
// less time than to copy it; wgmma is mma.sync on what its descriptors lead to, by way of these notes. So notes are
// written and read when and by whom tiles would be. A cluster is one block.
#pragma once
#include "shared_layout.cuh"

struct alignas(128) TensorMap {
    unsigned char *matrix;
    int item, rows, columns;  // bytes of an element; of the matrix
    int box_rows, box_columns;
};

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void group_sync(int number) {
    asm volatile("barrier.sync.aligned %0, 128;" ::"r"(number) : "memory");
}

template <int REGISTERS>
__device__ __forceinline__ void give_registers() {}

template <int REGISTERS>
__device__ __forceinline__ void take_registers() {}

__device__ __forceinline__ void barrier_init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void fence_barrier_init() {}

__device__ __forceinline__ void barrier_arrive(unsigned barrier, unsigned) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile(
            "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "selp.b32 %0, 1, 0, done;\n}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } while (!done);
}

// Bytes that the loading thread has announced and not brought yet. The arrival comes with the last of them: so a sum
// that is not that of the boxes hangs, as it does on a GPU.
__device__ __forceinline__ unsigned &to_come() {
    __shared__ unsigned bytes;
    return bytes;
}

__device__ __forceinline__ void barrier_expect(unsigned, unsigned bytes) {
    to_come() = bytes;
}

// What lies in 1024 bytes of shared memory, eight lines of a box.
struct Lines {
    const half *matrix;
    int row, column, rows, columns;  // of the first element; of the matrix
};

__device__ __forceinline__ Lines &lines_at(unsigned address) {
    __shared__ Lines lines[256];
    return lines[address / 1024 % 256];  // a block has less than 256 KiB, which start anywhere in the simulator
}

__device__ __forceinline__ void load_box(unsigned to, const TensorMap &map, int column, int row, unsigned barrier) {
    for (int i = 0; i < map.box_rows; i += 8) {
        const half *const matrix = reinterpret_cast<const half *>(map.matrix);
        lines_at(to + i * 128) = Lines{matrix, row + i, column, map.rows, map.columns};
    }
    to_come() -= map.box_rows * 128;
    if (to_come() == 0) {
        barrier_arrive(barrier, 0);
    }
}

__device__ __forceinline__ void load_box_for(unsigned short, unsigned, const TensorMap &, int, int, unsigned) {
    __trap();
}

__device__ __forceinline__ void store_box(const TensorMap &map, unsigned from, int column, int row) {
    const int per_chunk = 16 / map.item, rows = min(map.box_rows, map.rows - row);
    for (int r = 0; r < rows; r++) {
        for (int chunk = 0; chunk < 8; chunk++) {
            const int x = column + chunk * per_chunk;
            if (x < map.columns) {
                uint4 v;
                asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                             : "r"(from + r * 128 + (chunk ^ (r % 8)) * 16)
                             : "memory");
                *reinterpret_cast<uint4 *>(map.matrix + (size_t(row + r) * map.columns + x) * map.item) = v;
            }
        }
    }
}

__device__ __forceinline__ void stores_commit() {}

template <int N>
__device__ __forceinline__ void stores_have_read() {}

__device__ __forceinline__ void fence_for_tma() {}

__device__ __forceinline__ void wgmma_fence() {}

__device__ __forceinline__ void wgmma_commit() {}

template <int N>
__device__ __forceinline__ void wgmma_wait() {}

__device__ __forceinline__ void settle(float (&)[128]) {}

// Bytes from a descriptor; the swizzle exchanges bits 4 to 6 of an address by bits 7 to 9.
__device__ __forceinline__ unsigned field(unsigned long long descriptor, int low) {
    return unsigned(descriptor >> low & 0x3FFF) << 4;
}

__device__ __forceinline__ unsigned swizzled(unsigned address) {
    return address ^ (address >> 3 & 0x70);
}

// The element of a loaded box that lies at an address, whose lines are given; zero outside the matrix.
__device__ __forceinline__ unsigned element(const Lines &lines, unsigned address) {
    const int line = address / 128 % 8, row = lines.row + line;
    const int column = lines.column + ((address / 16 % 8) ^ line) * 8 + address % 16 / 2;
    return row < lines.rows && column < lines.columns
               ? __half_as_ushort(lines.matrix[size_t(row) * lines.columns + column])
               : 0;
}

// K-major: two elements of k from `depth` on, of a row.
__device__ __forceinline__ unsigned pair_of_a(unsigned long long a, int row, int depth) {
    const unsigned at = swizzled(field(a, 0) + row % 8 * 128 + row / 8 * field(a, 32) + depth * 2);
    const Lines lines = lines_at(at);
    return element(lines, at) | element(lines, at + 2) << 16;
}

// N-major: the elements of a column at `depth`, which is even, and the next.
__device__ __forceinline__ unsigned pair_of_b(unsigned long long b, int depth, int column) {
    const unsigned at = field(b, 0) + depth % 8 * 128 + depth / 8 * field(b, 32) + column / 64 * field(b, 16) +
                        column % 64 * 2;
    const Lines lines = lines_at(at);
    return element(lines, swizzled(at)) | element(lines, swizzled(at + 128)) << 16;
}

// A loop, and no part of the kernel's own code, which would be too much for the simulator otherwise.
__device__ __noinline__ void wgmma(float (&sum)[128], unsigned long long a, unsigned long long b, int add) {
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 % 4 * 16 + lane / 4, k = lane % 4 * 2;
    const unsigned a0 = pair_of_a(a, row, k), a1 = pair_of_a(a, row + 8, k);
    const unsigned a2 = pair_of_a(a, row, k + 8), a3 = pair_of_a(a, row + 8, k + 8);
#pragma unroll 1
    for (int j = 0; j < 32; j++) {
        float s[4] = {};
        for (int i = 0; i < 4 && add; i++) {
            s[i] = sum[4 * j + i];
        }
        const unsigned b0 = pair_of_b(b, k, 8 * j + lane / 4), b1 = pair_of_b(b, k + 8, 8 * j + lane / 4);
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
        for (int i = 0; i < 4; i++) {
            sum[4 * j + i] = s[i];
        }
    }
}
