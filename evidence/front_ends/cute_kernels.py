"""Two kernels in CuTe DSL, which reads their source from this file."""
# mypy: ignore-errors

import cutlass
import cutlass.cute as cute


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    threads, _, _ = cute.arch.block_dim()
    i = block * threads + thread
    out[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    add_kernel(a, b, out).launch(grid=[4, 1, 1], block=[256, 1, 1])


@cute.kernel
def multiply_kernel(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, product: cute.TiledMma):
    thread, _, _ = cute.arch.thread_idx()
    share = product.get_slice(thread)
    left, right, sums = share.partition_A(a), share.partition_B(b), share.partition_C(out)
    held_left, held_right = product.make_fragment_A(left), product.make_fragment_B(right)
    held_sums = product.make_fragment_C(sums)
    held_sums.fill(0.0)
    cute.autovec_copy(left, held_left)
    cute.autovec_copy(right, held_right)
    cute.gemm(product, held_sums, held_left, held_right, held_sums)
    cute.autovec_copy(held_sums, sums)


@cute.jit
def multiply(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor):
    operation = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    product = cute.make_tiled_mma(operation)
    multiply_kernel(a, b, out, product).launch(grid=[1, 1, 1], block=[32, 1, 1])
