"""What a worker of the tests gives back after each file: the memory goes down, and all that is left still runs."""

import gc
import importlib
import subprocess
import sys
import weakref

import numpy as np
import pytest

from tests.support import worker_memory
from warplab import simulator

LIBRARIES = """
import numpy as np
from tests.support import worker_memory
import llvmlite.binding, numba, scipy.linalg

def files():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["RssFile"].split()[0])

before, twice = files(), numba.njit(lambda x: 2 * x)
assert twice(21) == 42
worker_memory.let_go_of_libraries(0)
after = files()
assert twice(2.5) == 5.0, "compiled by what was dropped"
assert np.allclose(scipy.linalg.inv(np.diag([2.0, 4.0])), np.diag([0.5, 0.25]))
print(before, after)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is in memory")
def test_libraries_run_on_once_their_pages_were_dropped():
    said = subprocess.run([sys.executable, "-c", LIBRARIES], capture_output=True, text=True, check=True).stdout
    before, after = map(int, said.split())
    assert after < before / 4


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux what is in memory")
def test_garbage_is_looked_for_once_memory_has_grown(monkeypatch):
    looked = []
    monkeypatch.setattr(worker_memory.gc, "collect", lambda: looked.append(1))
    monkeypatch.setattr(worker_memory, "_left", 0)  # the system may have taken pages since it was set
    worker_memory.give_back(0)
    worker_memory.give_back()
    assert len(looked) == 1
    held = np.ones(worker_memory.GROWN // 8 + 1)
    worker_memory.give_back()
    assert len(looked) == 2
    assert held.all()


def test_a_kernel_of_a_module_is_compiled_anew():
    cuda = importlib.import_module("warplab").cuda

    @cuda.jit
    def double(x):
        x[cuda.grid(1)] *= 2

    x = np.arange(32, dtype=np.float32)
    double[1, 32](x)
    (compiled,) = map(weakref.ref, double.overloads.values())
    worker_memory.forget_compiled(double)
    gc.collect()
    assert compiled() is None
    double[1, 32](x)
    np.testing.assert_array_equal(x, 4 * np.arange(32))


def test_a_device_keeps_no_program_for_its_variables():
    text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global .align 4 .b8 total[4] = {7};\n"
    device, program = simulator.Device(1 << 20), simulator.load(text)
    address = device.variable_address(program, "total")
    assert device.variable_address(program, "total") == address
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is None
    assert device.memory.view(address, 1)[0] == 7
