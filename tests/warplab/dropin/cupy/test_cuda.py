"""`cupy.cuda` on the simulator."""

import numpy as np
import pytest

from warplab.dropin import cupy as cp


def test_streams_events_device():
    with cp.cuda.Stream(non_blocking=True) as stream:
        start = stream.record()
    end = cp.cuda.Event()
    end.record(stream)
    end.synchronize()
    with pytest.raises(RuntimeError, match="no GPU here"):
        cp.cuda.get_elapsed_time(start, end)
    cp.cuda.Stream.null.synchronize()
    cp.cuda.Device().synchronize()
    cp.cuda.runtime.deviceSynchronize()
    assert cp.cuda.Device(0).compute_capability == "90"
    assert cp.cuda.runtime.getDeviceProperties(0)["name"] == b"PTX simulator"
    assert len(np.frombuffer(cp.cuda.alloc_pinned_memory(64), np.float32, 16)) == 16
