"""A clip of moving digits, encoded here, and its frames decoded again: by PyAV on the CPU, by NVDEC on a GPU.

A decoded frame is NV12, as video decoders write it: `height` rows of luma (Y), then `height / 2` rows in which blue and
red differences (U, V) alternate, one pair for four pixels. uint8, shape (height * 3 // 2, width).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CODECS = ("libx264", "mpeg4")  # the first that PyAV's FFmpeg has
OPTIONS = {"libx264": {"preset": "veryfast", "crf": "28", "bf": "0"}, "mpeg4": {"qscale": "6"}}
RATE = 30  # frames per second


def make_clip(
    path: str | Path, *, width: int = 320, height: int = 192, frames: int = 90, digits: int = 6, seed: int = 11
) -> str:
    """Write a clip of digits that move across a shaded ground; return the encoder's name ("libx264" or "mpeg4").

    `path`: its ending names the container, such as .mp4; .h264 for H.264 without one, which `repeat` makes longer.
    `width`, `height`: even numbers of pixels, at least 64. The same seed gives the same pictures. ValueError for sizes
    that do not fit, RuntimeError where PyAV has neither encoder.
    """
    av = _av()
    _check_size(width, height)
    codec = next((name for name in CODECS if name in av.codecs_available), None)
    if codec is None:
        raise RuntimeError(f"PyAV's FFmpeg has none of the encoders {', '.join(CODECS)}; install PyAV's own wheel (av)")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=RATE, options=OPTIONS[codec])
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.gop_size = RATE
        for picture in moving_digits(width, height, frames, digits=digits, seed=seed):
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return codec


def repeat(path: str | Path, times: int, target: str | Path) -> None:
    """Write a clip of H.264 without a container (.h264) `times` times, one after the other: a longer clip."""
    if not str(path).endswith(".h264") or times < 1:
        raise ValueError(f"{path}, {times} times: only .h264 can be repeated, for it has no table of frames; 1 or more")
    Path(target).write_bytes(Path(path).read_bytes() * times)


def moving_digits(width: int, height: int, frames: int, *, digits: int = 6, seed: int = 11) -> Iterator[np.ndarray]:
    """Return the pictures of a clip before they are encoded: RGB, uint8, shape (height, width, 3)."""
    from sklearn.datasets import load_digits

    _check_size(width, height)
    random = np.random.default_rng(seed)
    images = load_digits().images[random.integers(0, 1797, digits)]  # 8 × 8, 0 to 16
    scale = max(2, min(width, height) // 32)
    glyphs = [np.kron(image / 16, np.ones((scale, scale))) for image in images]
    colours = random.uniform(0.45, 1, (digits, 3))
    room = np.array([height - 8 * scale, width - 8 * scale])
    place, step = random.uniform(0, 1, (digits, 2)) * room, random.uniform(-0.02, 0.02, (digits, 2)) * room
    ground = np.linspace(0.1, 0.3, width)[None, :, None] * np.linspace(0.6, 1, height)[:, None, None] * np.ones(3)
    for frame in range(frames):
        picture = ground.copy()
        for glyph, colour, (y, x) in zip(glyphs, colours, _bounce(place + frame * step, room), strict=True):
            under = picture[y : y + 8 * scale, x : x + 8 * scale]
            under += glyph[:, :, None] * (colour - under)
        yield np.rint(255 * picture).astype(np.uint8)


def _bounce(place: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Return places folded back into the picture."""
    return np.abs((place + room) % (2 * room) - room).astype(int)


def frames_on_cpu(path: str | Path) -> Iterator[np.ndarray]:
    """Return the frames of a clip as NV12 in host memory, decoded by FFmpeg on one thread of the CPU."""
    av = _av()
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.thread_count = 1
        for frame in container.decode(stream):
            yield frame.reformat(format="nv12").to_ndarray()


def nvdec_missing() -> str | None:
    """Return why NVDEC cannot decode here; None where it can."""
    from warplab.hardware import backend

    if backend.name() != "gpu":
        return f"there is no GPU to decode on (kernels run on the {backend.name()}: {backend.reason()})"
    try:
        import PyNvVideoCodec  # noqa: F401
    except ImportError as problem:
        return f"PyNvVideoCodec cannot be imported: {problem}"
    return None


def frames_on_nvdec(path: str | Path, stream: Any = None, *, ahead: bool = True) -> Iterator[Any]:
    """Return the frames of a clip as NV12 in device memory (CuPy arrays), decoded by NVDEC.

    A frame is the decoder's own memory: use it before you ask for the next one. `stream`: a CuPy stream in which the
    decoder's copy out of NVDEC is queued; None: its own. `ahead`: NVDEC works up to four frames ahead of the one that
    it gives; False: it begins a frame when it is asked for it. RuntimeError where there is no NVDEC, with the reason.
    """
    if reason := nvdec_missing():
        raise RuntimeError(f"NVDEC cannot decode here: {reason}")
    import cupy
    import PyNvVideoCodec as nvc

    cupy.zeros(1)  # makes the device's primary context current, in which decoder and kernels share memory
    given: dict[str, Any] = {}
    if stream is not None:
        given = {"cudacontext": cupy.cuda.driver.ctxGetCurrent(), "cudastream": stream.ptr}
    if not ahead:
        given["latency"] = nvc.DisplayDecodeLatencyType.LOW
    demuxer = nvc.CreateDemuxer(str(path))
    decoder = nvc.CreateDecoder(gpuid=0, codec=demuxer.GetNvCodecId(), usedevicememory=True, **given)
    width, height = demuxer.Width(), demuxer.Height()
    for packet in demuxer:
        if not ahead:
            packet.decode_flag = nvc.VideoPacketFlag.ENDOFPICTURE
        for frame in decoder.Decode(packet):
            yield _as_array(cupy, frame, width, height)


def _as_array(cupy: Any, frame: Any, width: int, height: int) -> Any:
    """View a decoded frame as a CuPy array over the decoder's memory; rows may lie further apart than they are long."""
    luma = frame.cuda()[0].__cuda_array_interface__
    pitch = (luma["strides"] or (width,))[0]
    rows = height * 3 // 2
    memory = cupy.cuda.UnownedMemory(frame.GetPtrToPlane(0), pitch * rows, frame)
    return cupy.ndarray((rows, width), cupy.uint8, cupy.cuda.MemoryPointer(memory, 0), strides=(pitch, 1))


def _check_size(width: int, height: int) -> None:
    if width < 64 or height < 64 or width % 2 or height % 2:
        raise ValueError(f"a clip of {width} × {height} pixels: both must be even and at least 64")


def _av() -> Any:
    try:
        import av
    except ImportError:
        raise RuntimeError("PyAV is missing: it makes and reads the clip. Install it with: pip install av") from None
    return av
