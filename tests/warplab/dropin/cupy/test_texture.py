"""cupy.cuda.texture: descriptors, copies to and from CUDA arrays, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from warplab.dropin import cupy as cp
from warplab.dropin.cupy.cuda import runtime, texture

FLOAT = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)


@pytest.mark.parametrize("on_device", [False, True])
@pytest.mark.parametrize("dimensions", [(67, 0, 0), (67, 19, 0), (67, 19, 31)])
@pytest.mark.parametrize(("dtype", "kind"), [("f2", 2), ("f4", 2), ("i1", 0), ("i2", 0), ("i4", 0), ("u4", 1)])
@pytest.mark.parametrize("channels", [1, 2, 4])
def test_copies(on_device, dimensions, dtype, kind, channels):
    width, height, depth = dimensions
    shape = (*(n for n in (depth, height) if n), channels * width)
    data = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    bits = [8 * data.itemsize] * channels + [0] * (4 - channels)
    made = texture.CUDAarray(texture.ChannelFormatDescriptor(*bits, kind), width, height, depth)
    assert made.ndim == len(shape)
    made.copy_from(cp.asarray(data) if on_device else data)
    back = cp.empty(shape, dtype) if on_device else np.empty_like(data)
    made.copy_to(back)
    np.testing.assert_array_equal(cp.asnumpy(back), data)


def test_descriptors_tell_what_they_were_given():
    assert FLOAT.get_channel_format() == {"x": 32, "y": 0, "z": 0, "w": 0, "f": 2}
    made = texture.CUDAarray(FLOAT, 8)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=made)
    assert resource.get_resource_desc() == {"resType": 0, "array": {"array": made.ptr}}
    memory = cp.zeros(8, "f4")
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeLinear, arr=memory, chDesc=FLOAT, sizeInBytes=32)
    linear = {"devPtr": memory.data.ptr, "desc": FLOAT.get_channel_format(), "sizeInBytes": 32}
    assert resource.get_resource_desc() == {"resType": 2, "linear": linear}
    rules = texture.TextureDescriptor(
        (runtime.cudaAddressModeClamp, runtime.cudaAddressModeMirror),
        runtime.cudaFilterModeLinear,
        runtime.cudaReadModeNormalizedFloat,
        borderColors=(0.5, 1),
        normalizedCoords=1,
    )
    assert rules.get_texture_desc() == {
        "addressMode": (1, 2, 0),
        "filterMode": 1,
        "readMode": 1,
        "sRGB": 0,
        "borderColor": (0.5, 1, 0, 0),
        "normalizedCoords": 1,
        "maxAnisotropy": 0,
    }


def _linear(arr, nbytes):
    return texture.ResourceDescriptor(runtime.cudaResourceTypeLinear, arr=arr, chDesc=FLOAT, sizeInBytes=nbytes)


def _pitched(arr, width, height, pitch):
    return texture.ResourceDescriptor(
        runtime.cudaResourceTypePitch2D, arr=arr, chDesc=FLOAT, width=width, height=height, pitchInBytes=pitch
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: texture.CUDAarray(FLOAT, 0), "width must be nonzero"),
        (lambda: texture.CUDAarray(FLOAT, 4, 0, 2), "height must be nonzero"),
        (lambda: texture.CUDAarray(texture.ChannelFormatDescriptor(32, 32, 32, 0, 2), 4), "1, 2 or 4 channels"),
        (lambda: texture.CUDAarray(texture.ChannelFormatDescriptor(8, 16, 0, 0, 1), 4), "same number of bits"),
        (lambda: texture.CUDAarray(FLOAT, 4, 5, 6, runtime.cudaArrayCubemap), "six layers that are squares"),
        (lambda: texture.CUDAarray(FLOAT, 4).copy_from(np.zeros(5, "f4")), "shape mismatch"),
        (lambda: texture.CUDAarray(FLOAT, 4).copy_from(np.zeros(4, "f8")), "dtype mismatch"),
        (lambda: texture.TextureObject(_linear(cp.zeros(8, "f4")[1:], 16), texture.TextureDescriptor()), "512 bytes"),
        (lambda: texture.TextureObject(_linear(cp.zeros(8, "f4"), 64), texture.TextureDescriptor()), "64 bytes of"),
        (
            lambda: texture.TextureObject(_pitched(cp.zeros((4, 6), "f4"), 6, 4, 24), texture.TextureDescriptor()),
            "multiple of 32",
        ),
        (
            lambda: texture.SurfaceObject(texture.ResourceDescriptor(0, cuArr=texture.CUDAarray(FLOAT, 4))),
            "cudaArraySurfaceLoadStore",
        ),
        (lambda: texture.SurfaceObject(_linear(cp.zeros(8, "f4"), 32)), "needs a CUDA array"),
        (lambda: texture.TextureDescriptor([7]), "cudaAddressMode"),
    ],
)
def test_what_cuda_refuses(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_integers_are_not_filtered_unless_they_are_read_as_floats():
    whole = texture.ChannelFormatDescriptor(8, 0, 0, 0, runtime.cudaChannelFormatKindUnsigned)
    resource = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=texture.CUDAarray(whole, 4))
    with pytest.raises(ValueError, match="linear filtering of uint8 texels"):
        texture.TextureObject(resource, texture.TextureDescriptor([1], runtime.cudaFilterModeLinear))
    texture.TextureObject(
        resource,
        texture.TextureDescriptor([1], runtime.cudaFilterModeLinear, runtime.cudaReadModeNormalizedFloat),
    )


def test_what_is_not_on_the_simulator():
    with pytest.raises(NotImplementedError, match="cudaResourceTypeMipmappedArray"):
        texture.ResourceDescriptor(runtime.cudaResourceTypeMipmappedArray)
    with pytest.raises(AttributeError, match="CuPy has none of that name"):
        texture.TextureReference  # noqa: B018 - CUDA 12 has removed them
