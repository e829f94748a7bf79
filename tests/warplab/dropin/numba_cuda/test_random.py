"""`numba.cuda.random` against its algorithm in Python."""

import numpy as np

from warplab.dropin import numba_cuda as cuda


@cuda.jit
def draw(states, out):
    i = cuda.grid(1)
    if i < states.size:
        out[i, 0] = cuda.random.xoroshiro128p_uniform_float32(states, i)
        out[i, 1] = cuda.random.xoroshiro128p_uniform_float64(states, i)
        out[i, 2] = cuda.random.xoroshiro128p_normal_float32(states, i)
        out[i, 3] = cuda.random.xoroshiro128p_normal_float64(states, i)


def _xoroshiro128p(state):
    """Return the next number and the next state of the published generator."""
    low, high = state
    mask = 2**64 - 1
    result, high = (low + high) & mask, low ^ high

    def rotated(x, k):
        return (x << k | x >> (64 - k)) & mask

    return result, (rotated(low, 55) ^ high ^ (high << 14) & mask, rotated(high, 36))


def test_random_numbers():
    states = cuda.random.create_xoroshiro128p_states(2000, seed=7)
    first = states.copy_to_host()
    assert len(set(first["s0"].tolist())) == 2000
    out = np.zeros((2000, 4))
    draw[16, 128](states, out)
    np.testing.assert_allclose(out[:, :2].mean(0), 0.5, atol=0.03)
    np.testing.assert_allclose(out[:, 2:].mean(0), 0, atol=0.1)
    np.testing.assert_allclose(out[:, 2:].std(0), 1, atol=0.06)
    for thread in (0, 1, 1999):
        a, state = _xoroshiro128p((int(first[thread]["s0"]), int(first[thread]["s1"])))
        b, state = _xoroshiro128p(state)
        assert out[thread, 0] == np.float32((a >> 11) / 2**53)
        assert out[thread, 1] == (b >> 11) / 2**53
    again = np.zeros((2000, 4))
    draw[16, 128](cuda.random.create_xoroshiro128p_states(2000, seed=7), again)
    np.testing.assert_array_equal(again, out)
    later = cuda.random.create_xoroshiro128p_states(5, seed=7, subsequence_start=3).copy_to_host()
    np.testing.assert_array_equal(later[:2], first[3:5])
