"""On a GPU: textures and surfaces do what the simulator's tests expect of them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.warplab.simulator.run import test_textures as textures

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    """The tests of the simulator run on the GPU."""
    import cupy
    from cupy.cuda import texture

    monkeypatch.setattr(textures, "cp", cupy)
    for name in ("ChannelFormatDescriptor", "CUDAarray", "ResourceDescriptor", "SurfaceObject"):
        monkeypatch.setattr(textures, name, getattr(texture, name))
    for name in ("TextureDescriptor", "TextureObject"):
        monkeypatch.setattr(textures, name, getattr(texture, name))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize(("normalized", "mode"), [(n, m) for n in (False, True) for m in textures.MODES])
def test_coordinates(mode, normalized, linear):
    textures._coordinates(mode, normalized, linear, 0.05)


TYPES = [
    *[("u8x1", "u1", 1), ("s8x2", "i1", 2), ("u8x4", "u1", 4), ("s16x1", "i2", 1), ("u16x4", "u2", 4)],
    *[("s32x2", "i4", 2), ("u32x1", "u4", 1), ("f32x1", "f4", 1), ("f32x2", "f4", 2), ("f32x4", "f4", 4)],
    *[("f32x1", "f2", 1), ("f32x4", "f2", 4)],
]


@pytest.mark.parametrize(("name", "dtype", "count"), TYPES)
def test_types_of_texels(name, dtype, count):
    textures.test_types_of_texels(name, dtype, count)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2"])
def test_integers_read_as_parts_of_the_largest(dtype):
    textures.test_integers_read_as_parts_of_the_largest(dtype)


@pytest.mark.parametrize(
    "test",
    [
        textures.test_weights_have_eight_bits,
        textures.test_no_number_is_a_coordinate_of_zero,
        textures.test_a_border_of_integers_has_the_bits_of_its_color,
        textures.test_weights_between_four_texels_are_those_of_an_h100,
        textures.test_faces_of_a_cube,
        textures.test_lanes_with_textures_of_their_own,
        textures.test_pitched_memory,
        textures.test_volumes_layers_and_formats,
    ],
    ids=lambda test: test.__name__,
)
def test_what_the_simulator_does(test):
    test()


def test_layers():
    random = np.random.default_rng(23)
    data = random.standard_normal((3, 4, 5)).astype("f4")
    made = textures.texture(data, linear=True, flags=textures.runtime.cudaArrayLayered)
    x, y, layer = random.uniform(-1, 6, 60).astype("f4"), random.uniform(-1, 5, 60).astype("f4"), np.arange(60) % 3
    expected = [textures.sample(data[k], (a, b), "clamp", True, False) for a, b, k in zip(x, y, layer, strict=True)]
    np.testing.assert_allclose(textures.fetched("layered", made, x, y, layer), expected, rtol=1e-6, atol=1e-6)


def test_gather():
    data = np.arange(12, dtype="f4").reshape(3, 4)
    made = textures.texture(data, flags=textures.runtime.cudaArrayTextureGather)
    out = textures.cp.zeros((1, 4), "f4")
    x, y = (textures.cp.asarray(np.array([at], "f4")) for at in (2.0, 1.0))
    textures.launch("gather", out, made, x, y, np.int32(1))
    assert out.get().tolist() == [[5, 6, 2, 1]]


@pytest.mark.parametrize(("mode", "want"), [(0, [0, 0, 0, 1, 2, 3, 0, 0]), (1, [1, 1, 1, 1, 2, 3, 3, 3])])
def test_reads_of_a_surface_outside(mode, want):
    made = textures.array_of(np.array([[9, 9, 9], [1, 2, 3]], "f4"), flags=textures.STORABLE)
    out = textures.cp.zeros(8, "f4")
    textures.launch("shifted", textures.surface(made), out, np.int32(3), np.int32(mode), threads=8)
    assert out.get().tolist() == want
