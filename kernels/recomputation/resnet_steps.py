"""ResNet's blocks in TensorFlow, random weights, to be run by a plan and tracked: what `resnet` computes, measured.

Gradients are taken with respect to the image alone, so that what lives is activations: the weights' gradients, 170 MiB
for ResNet-101, do not depend on the batch. Everything that their computation needs is saved all the same. The tape also
keeps both summands of y + side(x), though the gradient needs their shapes alone: `resnet.blocks(summands=True)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernels.recomputation import plan as plans
from kernels.recomputation import segments
from kernels.recomputation.framework import tf
from kernels.recomputation.resnet import BLOCKS, EXPANSION, WIDTHS
from kernels.recomputation.tape import Tracker

Block = Callable[[Any], Any]


@dataclass(frozen=True)
class Found:
    """`kept_bytes` after the forward pass, `peak_bytes` of a step, `convolutions` that ran forward, the gradient."""

    kept_bytes: int
    peak_bytes: int
    convolutions: int
    gradient: Any


def network(depth: int = 101) -> list[Block]:
    """Return the stem and the bottlenecks, in the order of `resnet.blocks`: functions of (n, h, w, c)."""
    random = tf.random.Generator.from_seed(segments.SEED)

    def normed(channels: int, width: int, kernel: int, stride: int = 1) -> Block:
        w = random.normal((kernel, kernel, channels, width)) * (2 / (kernel**2 * channels)) ** 0.5
        scale, offset = tf.ones(width), tf.zeros(width)

        def call(x: Any) -> Any:
            x = tf.nn.conv2d(x, w, stride, "SAME")
            return tf.compat.v1.nn.fused_batch_norm(x, scale, offset)[0]

        return call

    def bottleneck(channels: int, width: int, stride: int, project: bool) -> Block:
        wide = EXPANSION * width
        main = [normed(channels, width, 1), normed(width, width, 3, stride), normed(width, wide, 1)]
        side = normed(channels, wide, 1, stride) if project else tf.identity

        def call(x: Any) -> Any:
            y = main[2](tf.nn.relu(main[1](tf.nn.relu(main[0](x)))))
            return tf.nn.relu(y + side(x))

        return call

    first = normed(3, 64, 7, 2)
    found: list[Block] = [lambda x: tf.nn.max_pool2d(tf.nn.relu(first(x)), 3, 2, "SAME")]
    channels = 64
    for stage, (count, width) in enumerate(zip(BLOCKS[depth], WIDTHS, strict=True)):
        for k in range(count):
            found.append(bottleneck(channels, width, 2 if stage and k == 0 else 1, k == 0))
            channels = EXPANSION * width
    return found


def step(blocks: list[Block], images: Any, plan: plans.Plan = (0,)) -> Found:
    """Return forward and backward pass over `images`, (batch, side, side, 3) float32, tracked."""
    *again, last = plans.segments(plan, len(blocks))
    with Tracker() as tracker:
        with tf.GradientTape() as tape:
            tape.watch(images)
            x = images
            for segment in again:
                x = segments.recompute(_part(blocks, segment))(x)
            x = _part(blocks, last)(x)
            loss = tf.reduce_mean(x)
        del x
        kept = tracker.live
        gradient = tape.gradient(loss, images)
    return Found(kept, tracker.peak, tracker.count("Conv2D"), gradient)


def _part(blocks: list[Block], layers: range) -> Block:
    def run(x: Any) -> Any:
        for i in layers:
            x = blocks[i](x)
        return x

    return run
