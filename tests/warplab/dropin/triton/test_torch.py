"""Triton with tensors of torch on the CPU, and programs that ask for torch's "cuda"."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

triton = pytest.importorskip("triton", reason="Triton is an extra: pip install triton")
torch = pytest.importorskip("torch", reason="torch is not needed; here are what tensors of it do")
tl = pytest.importorskip("triton.language")

from triton.tools.tensor_descriptor import TensorDescriptor  # noqa: E402

from warplab import simulator  # noqa: E402
from warplab.dropin import triton as simulated  # noqa: E402

simulated.install()
pytestmark = pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")


@triton.jit
def transpose_kernel(x, out, x_stride, out_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tl.store(out + c * out_stride + r, tl.load(x + r * x_stride + c))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.float8_e4m3fn])
def test_tensors_and_slices_of_them(dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(-8, 8, (40, 64), generator=generator).to(dtype)
    out = torch.zeros((32, 48), dtype=dtype)
    part, wanted = x[8:24, 16:48], out[:, 16:32]
    transpose_kernel[(1,)](part, wanted, part.stride(0), wanted.stride(0), ROWS=16, COLUMNS=32)
    assert torch.equal(wanted.to(torch.float32), part.T.to(torch.float32))
    assert not out[:, :16].to(torch.float32).any()


def test_reinterpreted_tensors():
    x = torch.arange(64, dtype=torch.int32)
    out = torch.zeros(64, dtype=torch.int32)
    transpose_kernel[(1,)](triton.reinterpret(x, tl.uint32), out, 8, 8, ROWS=8, COLUMNS=8)
    assert torch.equal(out, x.reshape(8, 8).T.reshape(-1))


@triton.jit
def described_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r, c = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([r, c], x.load([r, c]) + 1)


@triton.jit
def describing_kernel(x, out, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [ROWS, COLUMNS])
    r, c = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    target.store([r, c], source.load([r, c]) + 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
@pytest.mark.parametrize("by_host", [True, False])
def test_tensor_descriptors_of_the_host_and_of_the_kernel(dtype, by_host):
    """Copied by TMA: what lies outside the tensor is neither read nor written."""
    generator = torch.Generator().manual_seed(0)
    x, out = torch.rand((50, 72), generator=generator).to(dtype), torch.full((50, 72), -1.0, dtype=dtype)
    if by_host:
        arguments = TensorDescriptor.from_tensor(x, [16, 32]), TensorDescriptor.from_tensor(out, [16, 32])
        kernel = described_kernel[(4, 3)](*arguments, ROWS=16, COLUMNS=32)
    else:
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
        kernel = describing_kernel[(4, 3)](x, out, 50, 72, ROWS=16, COLUMNS=32)
    assert "cp.async.bulk.tensor" in kernel.asm["ptx"]
    assert torch.equal(out, x + 1)


@triton.jit
def describing_a_row(x, out, columns, COLUMNS: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [columns], [1], [COLUMNS])
    target = tl.make_tensor_descriptor(out, [columns], [1], [COLUMNS])
    target.store([tl.program_id(0) * COLUMNS], source.load([tl.program_id(0) * COLUMNS]) + 1)


def test_a_descriptor_of_one_axis_whose_fields_are_zero():
    x, out = torch.arange(100, dtype=torch.int32), torch.zeros(100, dtype=torch.int32)
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    describing_a_row[(4,)](x, out, 100, COLUMNS=32)
    assert torch.equal(out, x + 1)


def test_a_tensor_on_the_device_of_the_driver():
    device = triton.runtime.driver.active.get_active_torch_device()
    x = torch.arange(64, device=device)
    out = torch.empty_like(x)
    transpose_kernel[(1,)](x, out, 8, 8, ROWS=8, COLUMNS=8)
    assert torch.equal(out, x.reshape(8, 8).T.reshape(-1))
    with pytest.raises(simulator.IllegalAddress, match="`out`"):
        transpose_kernel[(1,)](x, out[:32].clone(), 8, 8, ROWS=8, COLUMNS=8)


PROGRAM = """
import torch
import triton
import triton.language as tl


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
x = torch.arange(100, dtype=torch.float32, device="cuda")
y = torch.ones(100).cuda().to(torch.device("cuda:0"))
assert x.is_cuda and y.is_cuda
double[(1,)](x, 100, BLOCK=128)
torch.cuda.synchronize()
print((x + y).sum().item())
"""

OF_ADDRESSES = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_to_each(tensors, n, BLOCK: tl.constexpr):
    x = tl.load(tensors + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(x + i, 1 + tl.load(x + i, mask=i < n), mask=i < n)


x = torch.zeros(200, device="cuda")
y = torch.ones(60, device="cuda")
addresses = torch.tensor([x[100:].data_ptr(), y.data_ptr()], device="cuda")
kept = x[100:]
addresses[0] = kept.data_ptr()
before = addresses.clone()
add_to_each[(2,)](addresses, 60, BLOCK=64)
assert torch.equal(addresses, before)
print(x[:100].sum().item(), x[100:160].sum().item(), x[160:].sum().item(), y.sum().item(), flush=True)
addresses[1] += 4
add_to_each[(2,)](addresses, 4, BLOCK=64)
"""


def test_an_array_of_the_addresses_of_tensors(tmp_path):
    """And one with a number in it that is no tensor's: the host's memory, as on a GPU."""
    (tmp_path / "program.py").write_text(OF_ADDRESSES)
    command = [sys.executable, "-m", "warplab", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.splitlines()[0] == "0.0 60.0 0.0 120.0", done.stderr
    assert done.returncode == 1
    assert "HostPointer" in done.stderr
    assert "1 defect" in done.stderr


def test_tritons_binding_of_cublas_computes(tmp_path):
    """The product of a and the transposed b, as tutorial 09 asks for it."""
    (tmp_path / "program.py").write_text(
        "import torch\nfrom triton._C.libtriton import nvidia\n"
        "blas = nvidia.cublas.CublasLt(torch.empty(32, device='cuda', dtype=torch.uint8))\n"
        "a, b = torch.arange(12.0).reshape(3, 4).half(), torch.arange(8.0).reshape(2, 4).half()\n"
        "c = torch.empty((3, 2), device='cuda', dtype=torch.float16)\n"
        "blas.matmul(a, b, c)\nprint(torch.equal(c.float(), a.float() @ b.float().T))\n"
    )
    command = [sys.executable, "-m", "warplab", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split()[:1] == ["True"], done.stderr


def test_a_program_that_asks_for_torchs_cuda(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "warplab", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(float(np.arange(100).sum() * 2 + 100))
    assert "1 kernel, 1 launch, 0 defects" in done.stdout + done.stderr
