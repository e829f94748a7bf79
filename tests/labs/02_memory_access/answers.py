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

ANSWERS = {
    "your-turn-stride": Answers(
        one_line(STRIDE, "min(32, stride * itemsize)"),
        {
            one_line(STRIDE, "min(32, 4 * stride)"): "sectors(stride=3, itemsize=8)",
            one_line(STRIDE, "stride * itemsize"): "sectors(stride=40, itemsize=4)",
            one_line(STRIDE, "32"): "the same value for all",
        },
    ),
    "your-turn-banks": Answers(
        one_line("wavefronts(stride)", "math.gcd(stride, 32)"),
        {
            one_line("wavefronts(stride)", "min(stride, 32)"): "wavefronts(stride=3)",
            one_line("wavefronts(stride)", "32 if stride % 32 == 0 else 1"): "wavefronts(stride=2)",
            one_line("wavefronts(stride)", "stride % 32"): "wavefronts(stride=3)",
        },
    ),
    "your-turn-shuffle": Answers(
        warp_sum(SHUFFLE, "if (threadIdx.x == 0) out[0] = value;"),
        {
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
    "your-turn-little": Answers(
        one_line(LITTLE, "bandwidth * latency / multiprocessors"),
        {
            one_line(LITTLE, "bandwidth * latency"): "the error differs from input to input",
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
