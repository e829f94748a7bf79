"""The record of lab 10."""

from warpcourse.bench.lab import Lab

LAB = Lab(
    __package__,
    "10_collectives",
    "NCCL, rings, and training across GPUs",
    "nearly linear from 1 to 32 GPUs",
    status="ready",
    gpus=2,
    benchmark="benchmark",
    code_cells=43,
    pictures=7,
    further=(("10_networks", 43, 10),),
    shown={
        "collectives-first": "The first broadcast: a space–time diagram of its messages",
        "collectives-fit": "The alpha–beta model fitted to two readings, and the readings between",
        "collectives-curve": "A ring broadcast on two GPUs and on four, by slices",
        "collectives-small": "All-reduces on two GPUs and on four: NCCL's time over ours, by size",
        "collectives-scatter-held": "A reduce-scatter: how many ranks' data is in each slice, step by step",
        "collectives-tree-drawn": "Four broadcasts by size, by the model",
        "collectives-mesh": "Three rings on the NVLinks of a DGX-1 with V100",
        "collectives-overlap": "A step of training, its all-reduces after the backward pass and beside it",
        "collectives-published": "Published scaling, and the model with nothing fitted",
    },
)
