"""`cuda` on the simulator also serves Numba's own imports."""

import numba
import numpy as np

from warplab.dropin import choice
from warplab.dropin import numba_cuda as cuda
from warplab.hardware import backend


def test_numba_s_own_imports_reach_the_simulator(monkeypatch):
    import numba.cuda.random as numba_random
    from numba.np.ufunc import decorators

    registries = [decorators.Vectorize.target_registry, decorators.GUVectorize.target_registry]
    for registry in registries:
        monkeypatch.setattr(registry, "ondemand", dict(registry.ondemand))
    monkeypatch.setattr(numba_random, "create_xoroshiro128p_states", None)
    monkeypatch.setattr(backend, "name", lambda: "simulator")
    monkeypatch.setattr(backend, "announce", lambda: None)
    assert choice.load("cuda") is cuda
    cuda.install()  # once more changes nothing

    from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

    @cuda.jit
    def draw_one(states, out):
        out[cuda.grid(1)] = xoroshiro128p_uniform_float32(states, cuda.grid(1))

    @numba.vectorize(["float32(float32)"], target="cuda")
    def double(x):
        return 2 * x

    for registry in registries:
        registry.pop("cuda")
    out = cuda.device_array(32, np.float32)
    draw_one[1, 32](create_xoroshiro128p_states(32, seed=1), out)
    np.testing.assert_array_equal(double(out).copy_to_host(), 2 * out.copy_to_host())
