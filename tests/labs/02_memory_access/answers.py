"""Right and wrong answers to the tasks of lesson 02 ("Your turn"), by the id of the answer cell."""

from tests.support.lesson_answers import Answers, one_line


def warp_sum(middle: str, end: str) -> str:
    head = "%%cuda\n__global__ void warp_sum(const float *in, float *out) {\n    float value = in[threadIdx.x];"
    return f"{head}\n    {middle}\n    {end}\n}}"


SHUFFLE = "for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);"
STRIDE = "sectors(stride, itemsize)"
LITTLE = "in_flight(bandwidth, latency, multiprocessors)"
BLOCKS = "blocks(threads, registers, shared_bytes)"
BY_THREADS = "2048 // threads"
BY_REGISTERS = "65536 // (threads * registers)"
BY_SHARED = "228 * 1024 // (shared_bytes + 1024)"


def numba_kernel(head: str, *body: str) -> str:
    return "\n".join(["@cuda.jit", f"def {head}:", *(f"    {line}" for line in body)])


def cuda_kernel(head: str, *body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body)
    return f"%%cuda\n__global__ void {head} {{\n{lines}\n}}"


def reverse_tiles(first_wait: str = "cuda.syncthreads()", second_wait: str = "cuda.syncthreads()") -> str:
    return numba_kernel(
        "reverse_tiles(source, out)",
        "own = cuda.shared.array(64, float32)",
        "t = cuda.threadIdx.x",
        "for first in range(64 * cuda.blockIdx.x, out.size, 64 * cuda.gridDim.x):",
        "    own[t] = source[first + t]",
        f"    {first_wait}",
        "    out[first + t] = own[63 - t]",
        f"    {second_wait}",
    )


def products(*body: str) -> str:
    begin = "own = cuda.shared.array(128, float32)", "t, first = cuda.threadIdx.x, 128 * cuda.blockIdx.x"
    return numba_kernel("products(pairs, out)", *begin, *body)


COPIED = "own[t] = pairs[first + t]", "own[t + 64] = pairs[first + t + 64]", "cuda.syncthreads()"
OWN_PRODUCT = "out[cuda.grid(1)] = own[2 * t] * own[2 * t + 1]"


def flip(pitch: int, row: str, column: str, wait: str = "__syncthreads();") -> str:
    return cuda_kernel(
        "flip(const float *in, float *out, int columns)",
        f"__shared__ float tile[32][{pitch}];",
        "int left = 32 * blockIdx.x;",
        "for (int k = threadIdx.x; k < 32 * 32; k += 256)",
        "    tile[k / 32][k % 32] = in[k / 32 * columns + left + k % 32];",
        wait,
        "for (int k = threadIdx.x; k < 32 * 32; k += 256)",
        f"    out[(left + {row}) * 32 + {column}] = tile[{column}][{row}];",
    )


def in_step(*body: str, end: str = "if (t == 0) out[0] = part[0];") -> str:
    loop = "for (int step = 16; step > 0; step /= 2) {", *(f"    {line}" for line in body), "}"
    begin = "__shared__ float part[32];", "int t = threadIdx.x;", "part[t] = in[t];"
    return cuda_kernel("in_step(const float *in, float *out)", *begin, *loop, end)


def two_sums(last: int, end: str) -> str:
    loop = f"for (int step = 16; step > {last}; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);"
    return cuda_kernel("two_sums(const float *in, float *out)", "float value = in[threadIdx.x];", loop, end)


def block_sum(*end: str) -> str:
    return cuda_kernel(
        "block_sum(const float *in, float *out, int n)",
        *(["__shared__ float part[32];"] if any("part" in line for line in end) else []),
        "float value = 0;",
        "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)",
        "    value += in[i];",
        SHUFFLE,
        *end,
    )


LEFT = "if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;"
WARPS = "for (int w = 1; w < blockDim.x / 32; w++) value += part[w];"
ADDED = f"if (threadIdx.x == 0) {{ {WARPS} atomicAdd(out, value); }}"


def three(*body: str) -> str:
    begin = "own = cuda.shared.array(66, float32)", "t, i = cuda.threadIdx.x, cuda.grid(1)"
    return numba_kernel("three(a, out)", *begin, *body)


HALO = "if t < 2:", "    own[t + 64] = a[i + 64] if i + 64 < a.size else float32(0)"
OWN_SUM = "out[i] = own[t] + own[t + 1] + own[t + 2]"


def lifted(pitch: str, loaded: str = "tile[tx][ty]", wait: str = "__syncthreads();") -> str:
    return f"""\
%%cuda
extern "C" __global__ void transpose_lifted(const float *in, float *out, int rows, int columns) {{
    __shared__ float tile[32][{pitch}];
    int left = blockIdx.x * 32, top = blockIdx.y * 32, tx = threadIdx.x;
    for (int ty = threadIdx.y; ty < 32; ty += 8)
        if (left + tx < columns && top + ty < rows)
            tile[ty][tx] = in[(top + ty) * columns + left + tx];
    {wait}
    for (int ty = threadIdx.y; ty < 32; ty += 8)
        if (top + tx < rows && left + ty < columns)
            out[(left + ty) * rows + top + tx] = {loaded};
}}"""


ANSWERS = {
    "your-turn-stride": Answers(
        one_line(STRIDE, "min(32, stride * itemsize)"),
        {
            one_line(STRIDE, "min(32, 4 * stride)"): "sectors(stride=3, itemsize=8)",
            one_line(STRIDE, "stride * itemsize"): "sectors(stride=40, itemsize=4)",
            one_line(STRIDE, "32"): "the same value for all",
        },
    ),
    "your-turn-offset": Answers(
        one_line("sectors_at(offset)", "(offset + 31) // 8 - offset // 8 + 1"),
        {
            one_line("sectors_at(offset)", "5 if offset else 4"): "sectors_at(offset=8)",
            one_line("sectors_at(offset)", "4 + offset // 8"): "sectors_at(offset=1)",
            one_line("sectors_at(offset)", "5 if offset % 32 else 4"): "off by one: every wrong answer, 1 of 8",
            one_line("sectors_at(offset)", "4 + offset % 2"): "sectors_at(offset=4)",
            one_line("sectors_at(offset)", "4"): "the same value for all",
        },
    ),
    "your-turn-tiles": Answers(
        reverse_tiles(),
        {
            reverse_tiles("pass"): "nothing orders the two",
            reverse_tiles(second_wait="pass"): "nothing orders the two",
            reverse_tiles().replace("64 * cuda.gridDim.x)", "64)"): "and outputs are stored several times",
            numba_kernel(
                "reverse_tiles(source, out)",
                "if cuda.grid(1) == 0:",
                "    for i in range(out.size):",
                "        out[i] = source[i // 64 * 64 + 63 - i % 64]",
            ): "too few shared load requests",
            numba_kernel(
                "reverse_tiles(source, out)",
                "t = cuda.threadIdx.x",
                "for first in range(64 * cuda.blockIdx.x, out.size, 64 * cuda.gridDim.x):",
                "    out[first + t] = source[first + 63 - t]",
            ): "too few shared load requests",
        },
    ),
    "your-turn-staged": Answers(
        products(*COPIED, OWN_PRODUCT),
        {
            products("i = cuda.grid(1)", "out[i] = pairs[2 * i] * pairs[2 * i + 1]"): "sectors per load request",
            products(*COPIED[:2], OWN_PRODUCT): "nothing orders the two",
            products(COPIED[0], COPIED[2], OWN_PRODUCT): "uninitialised",
            products(
                "if t == 0:",
                "    for k in range(128):",
                "        own[k] = pairs[first + k]",
                "cuda.syncthreads()",
                OWN_PRODUCT,
            ): "one thread does too much of the work",
        },
        also=(
            products(
                "for k in range(t, 128, cuda.blockDim.x):", "    own[k] = pairs[first + k]", COPIED[2], OWN_PRODUCT
            ),
        ),
    ),
    "your-turn-banks": Answers(
        one_line("wavefronts(stride)", "math.gcd(stride, 32)"),
        {
            one_line("wavefronts(stride)", "min(stride, 32)"): "wavefronts(stride=3)",
            one_line("wavefronts(stride)", "32 if stride % 32 == 0 else 1"): "wavefronts(stride=2)",
            one_line("wavefronts(stride)", "stride % 32"): "wavefronts(stride=3)",
        },
    ),
    "your-turn-numbering": Answers(
        flip(33, "k / 32", "k % 32"),
        {
            flip(32, "k / 32", "k % 32"): "too many shared load bank conflicts",
            flip(33, "k % 32", "k / 32"): "sectors per store request",
            flip(33, "k / 32", "k % 32", wait=""): "nothing orders the two",
            """%%cuda
__global__ void flip(const float *in, float *out, int columns) {
    int left = 32 * blockIdx.x;
    for (int k = threadIdx.x; k < 32 * 32; k += 256) out[left * 32 + k] = in[k % 32 * columns + left + k / 32];
}""": "sectors per load request",
        },
    ),
    "your-turn-lifted": Answers(
        lifted("33"),
        {
            lifted("32"): "too many shared load bank conflicts",
            lifted("34"): "too many shared load bank conflicts",
            lifted("33", loaded="tile[ty][tx]"): "out is wrong",
            lifted("33", wait=""): "nothing orders the two",
            lifted("33")
            .replace(
                "tile[ty][tx] = in[(top + ty) * columns + left + tx]",
                "tile[tx][ty] = in[(top + tx) * columns + left + ty]",
            )
            .replace("left + tx < columns && top + ty < rows", "left + ty < columns && top + tx < rows"): (
                "too many sectors per load request"
            ),
            """%%cuda
extern "C" __global__ void transpose_lifted(const float *in, float *out, int rows, int columns) {
    int x = blockIdx.x * 32 + threadIdx.x, top = blockIdx.y * 32;
    for (int y = top + threadIdx.y; y < top + 32; y += 8) out[x * rows + y] = in[y * columns + x];
}""": "sectors per store request",
        },
    ),
    "your-turn-in-step": Answers(
        in_step("__syncwarp();", "float other = part[t ^ step];", "__syncwarp();", "part[t] += other;"),
        {
            in_step("part[t] += part[t ^ step];"): "nothing orders the two",
            in_step("__syncwarp();", "part[t] += part[t ^ step];"): "nothing orders the two",
            in_step("float other = part[t ^ step];", "__syncwarp();", "part[t] += other;"): "nothing orders the two",
            in_step("__syncthreads();", "float other = part[t ^ step];", "__syncthreads();", "part[t] += other;"): (
                "barriers"
            ),
            in_step(
                end="__syncwarp(); if (t == 0) { for (int k = 1; k < 32; k++) part[0] += part[k]; out[0] = part[0]; }"
            ): ("the warp efficiency is too low"),
        },
    ),
    "your-turn-shuffle": Answers(
        warp_sum(SHUFFLE, "if (threadIdx.x == 0) out[0] = value;"),
        {
            warp_sum("for (int k = 1; k < 32; k++) value += in[(threadIdx.x + k) % 32];", "out[0] = value;"): (
                "one thread does too much of the work"
            ),
            warp_sum(SHUFFLE.replace("16", "8"), "if (threadIdx.x == 0) out[0] = value;"): "out is wrong",
            warp_sum(SHUFFLE, "if (threadIdx.x == 31) out[0] = value;"): "out is wrong",
            warp_sum("", "atomicAdd(out, value);"): "out is wrong",
            warp_sum(SHUFFLE.replace("0xffffffff", "1"), "out[0] = value;"): "which does not name it",
            warp_sum(
                "__shared__ float all[32]; all[threadIdx.x] = value; __syncwarp();",
                "if (threadIdx.x == 0) { out[0] = 0; for (float x : all) out[0] += x; }",
            ): "too many shared store requests",
        },
    ),
    "your-turn-two-sums": Answers(
        two_sums(1, "if (threadIdx.x < 2) out[threadIdx.x] = value;"),
        {
            two_sums(0, "if (threadIdx.x < 2) out[threadIdx.x] = value;"): "out is wrong",
            two_sums(2, "if (threadIdx.x < 2) out[threadIdx.x] = value;"): "out is wrong",
            two_sums(1, "if (threadIdx.x == 0) out[0] = value;"): "never written",
            cuda_kernel(
                "two_sums(const float *in, float *out)",
                "if (threadIdx.x > 1) return;",
                "float value = 0;",
                "for (int k = threadIdx.x; k < 32; k += 2) value += in[k];",
                "out[threadIdx.x] = value;",
            ): "one thread does too much of the work",
        },
    ),
    "your-turn-block-sum": Answers(
        block_sum(LEFT, "__syncthreads();", ADDED),
        {
            block_sum(LEFT, ADDED): "nothing orders the two",
            cuda_kernel(
                "block_sum(const float *in, float *out, int n)",
                "if (blockIdx.x == 0 && threadIdx.x == 0) {",
                "    float value = 0;",
                "    for (int i = 0; i < n; i++) value += in[i];",
                "    out[0] = value;",
                "}",
            ): "one thread does too much of the work",
            block_sum("if (threadIdx.x % 32 == 0) atomicAdd(out, value);"): "too many atomics",
            block_sum("if (threadIdx.x == 0) atomicAdd(out, value);"): "out is wrong",
            block_sum(LEFT, "__syncthreads();", ADDED.replace("atomicAdd(out, value)", "out[0] += value")): "race",
        },
    ),
    "your-turn-halo": Answers(
        three("own[t] = a[i]", *HALO, "cuda.syncthreads()", OWN_SUM),
        {
            three("own[t] = a[i]", *HALO, OWN_SUM): "nothing orders the two",
            three("own[t] = a[i]", "if t < 2:", "    own[t + 64] = a[i + 64]", "cuda.syncthreads()", OWN_SUM): (
                "past the end of a"
            ),
            three("own[t] = a[i]", "cuda.syncthreads()", OWN_SUM): "uninitialised",
            three(
                "x = a[i + 1] if i + 1 < a.size else float32(0)",
                "y = a[i + 2] if i + 2 < a.size else float32(0)",
                "out[i] = a[i] + x + y",
            ): "too many global load bytes",
        },
        also=(
            three(
                "own[t] = a[i]",
                "if t == 0:",
                "    for k in range(64, 66):",
                "        own[k] = a[i + k] if i + k < a.size else 0",
                "cuda.syncthreads()",
                OWN_SUM,
            ),
        ),
    ),
    "your-turn-little": Answers(
        one_line(LITTLE, "bandwidth * latency / multiprocessors"),
        {
            one_line(LITTLE, "bandwidth * latency"): "Does it use multiprocessors?",
            one_line(LITTLE, "bandwidth / latency / multiprocessors"): "in_flight returns the wrong value",
            one_line(LITTLE, "1e9 * bandwidth * latency / multiprocessors"): "a power of 1000 is missing",
        },
    ),
    "your-turn-blocks": Answers(
        one_line(BLOCKS, f"min({BY_THREADS}, {BY_REGISTERS}, {BY_SHARED})"),
        {
            one_line(BLOCKS, BY_THREADS): "blocks(threads=512, registers=32, shared_bytes=60000)",
            one_line(BLOCKS, f"min({BY_THREADS}, {BY_REGISTERS})"): "4 of 6 answers are right",
            one_line(BLOCKS, f"min({BY_THREADS}, {BY_SHARED})"): "blocks(threads=256, registers=64, shared_bytes=0)",
            one_line(BLOCKS, f"max({BY_THREADS}, {BY_REGISTERS}, {BY_SHARED})"): "blocks returns the wrong value",
        },
    ),
}
