"""The record of lab 11."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "11_serving",
    "Is the GPU busy? Utilisation, concurrency and serving",
    "MPS gives 7 × the inference throughput",
    needs=("av", "fastapi", "onnx", "safetensors", "uvicorn"),
    benchmark="benchmark",
    launches="launches",
    code_cells=37,
    pictures=2,
    further=(("11_busy", 27, 6), ("11_overlap", 40, 8)),
    shown={
        "serving-first": "Utilisation 80 %: one block on one of 132 SMs",
        "serving-measured": "NVML's utilisation, SM activity and occupancy under known loads, recorded on an H100",
        "serving-trace": "Eight requests on a timeline: calls, copies, kernels, and a GPU that waits",
        "serving-race": "Two streams without an event: each kernel races with its copy",
        "serving-nv12": "A decoded frame, and the planes that the network gets",
        "serving-verdict-ways": "One to sixteen processes that share an H100: in turns, through MPS, in streams",
        "serving-parts": "A small request beside a large neighbour, by the way to share",
        "serving-verdict-load": "Answers and latency against the offered load, by batch limit, recorded on an H100",
    },
)
