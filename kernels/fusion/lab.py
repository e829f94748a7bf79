"""The record of lab 09."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "09_fusion",
    "Inference and fusion",
    "TensorRT makes ResNet-50 about 20 × faster",
    needs=("onnx", "onnxruntime", "safetensors"),
    benchmark="benchmark",
    launches="launches",
    code_cells=108,
    pictures=7,
    shown={
        "fusion-graph-drawn": "The network as imported: 57 launches",
        "fusion-optimised-drawn": "The same network after all passes: 17 launches",
        "fusion-histogram": "Values of a tensor on 128 images, and which of them becomes INT8's largest step",
        "fusion-zeros-drawn": "Entropy calibration of one tensor: as its slides describe it, and with zeros left out",
        "fusion-batches-drawn": "Throughput against latency of ResNet-50 on a V100, by batch, as others published it",
    },
)
