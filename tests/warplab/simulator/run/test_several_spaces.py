"""One load or store whose lanes go to different memory spaces, as compilers write `condition ? shared[i] : own[i]`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.warplab.simulator.run.test_wrapped_addresses import WAYS
from warplab import simulator
from warplab.launch.kernel_source import CudaSource

PICK = """
extern "C" __global__ void pick(const int* x, int* out, int rounds) {
  __shared__ int s[64];
  int own[4] = {100, 200, 300, 400}, i = threadIdx.x, total = 0;
  s[i] = i;
  own[i & 3] += i;
  __syncthreads();
  for (int k = 0; k < rounds; k++) {
    const int* from = i % 3 == 0 ? &s[63 - i] : i % 3 == 1 ? &own[(i + k) & 3] : x + i;
    total += *from;
    int* to = i % 3 == 1 ? &out[64 + i] : &own[i & 1];
    *to = total;
  }
  out[i] = total;
}
"""


def expected(x: np.ndarray, rounds: int) -> np.ndarray:
    out = np.full(128, -1, np.int32)
    for i in range(64):
        own, total = [100, 200, 300, 400], 0
        own[i & 3] += i
        for k in range(rounds):
            total += 63 - i if i % 3 == 0 else own[(i + k) & 3] if i % 3 == 1 else int(x[i])
            if i % 3 == 1:
                out[64 + i] = total
        out[i] = total
    return out


@pytest.mark.parametrize("way", WAYS)
def test_lanes_of_one_access_may_go_to_different_spaces(way):
    entry, rounds = CudaSource(PICK, "pick").load(), 700
    device = simulator.Device(1 << 24)
    x, out = np.arange(1000, 1064, dtype=np.int32), np.full(128, -1, np.int32)
    places = [device.memory.allocate(array.nbytes) for array in (x, out)]
    for place, array in zip(places, (x, out), strict=True):
        device.memory.view(place, array.nbytes)[:] = array.view(np.uint8)
        device.memory.mark_initialized(place, array.nbytes)
    parameters = [*(place.to_bytes(8, "little") for place in places), rounds.to_bytes(4, "little")]
    device.launch(entry, (1,), (64,), parameters, options=simulator.Options(**WAYS[way]))
    np.testing.assert_array_equal(device.memory.view(places[1], out.nbytes).view(np.int32), expected(x, rounds))


def test_a_lane_that_goes_nowhere_is_found_among_others():
    entry = CudaSource(PICK.replace(": x + i;", ": x + (1 << 29) * (i == 2);"), "pick").load()
    device = simulator.Device(1 << 24)
    place = device.memory.allocate(1024)
    device.memory.mark_initialized(place, 1024)
    parameters = [place.to_bytes(8, "little"), place.to_bytes(8, "little"), (1).to_bytes(4, "little")]
    with pytest.raises(simulator.IllegalAddress) as caught:
        device.launch(entry, (1,), (64,), parameters)
    assert caught.value.thread == (2, 0, 0)
