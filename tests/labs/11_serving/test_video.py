"""The clip that the lab encodes, and its frames decoded again."""

import sys

import numpy as np
import pytest

from kernels.serving.overlap.streams import video
from kernels.serving.overlap.streams.preprocess import by_numpy


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    assert video.make_clip(path, width=96, height=64, frames=20) in video.CODECS
    return path


def test_the_decoded_frames_are_the_pictures(clip):
    frames = list(video.frames_on_cpu(clip))
    pictures = list(video.moving_digits(96, 64, 20))
    assert len(frames) == len(pictures) == 20
    for nv12, picture in zip(frames, pictures, strict=True):
        assert nv12.shape == (96, 96)
        assert nv12.dtype == np.uint8
        rgb = 255 * by_numpy(nv12, 64, 96, mean=(0, 0, 0), std=(1, 1, 1)).transpose(1, 2, 0)
        assert np.abs(rgb - picture).mean() < 6  # of 255: the encoder leaves something out, colours above all


def test_pictures_move_and_come_again_with_the_same_seed():
    one, same, other = (list(video.moving_digits(96, 64, 9, seed=seed)) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(one, same, strict=True))
    assert any((a != b).any() for a, b in zip(one, other, strict=True))
    assert (one[0] != one[8]).any()


def test_digits_stay_in_the_picture_however_long_the_clip():
    first = next(video.moving_digits(64, 64, 1, digits=3))
    *_, last = video.moving_digits(64, 64, 1500, digits=3)
    ground = first.min(axis=(0, 1)).astype(int)
    assert last.shape == first.shape
    assert (last > ground + 100).any()  # a digit is to be seen


def test_a_clip_without_a_container_can_be_repeated(tmp_path):
    once, longer = tmp_path / "once.h264", tmp_path / "longer.h264"
    if video.make_clip(tmp_path / "probe.mp4", width=64, height=64, frames=1) != "libx264":
        pytest.skip("PyAV's FFmpeg has no libx264")
    video.make_clip(once, width=64, height=64, frames=5)
    video.repeat(once, 3, longer)
    frames = list(video.frames_on_cpu(longer))
    assert len(frames) == 15
    np.testing.assert_array_equal(frames[0], frames[5])
    with pytest.raises(ValueError, match=r"only \.h264 can be repeated"):
        video.repeat(tmp_path / "probe.mp4", 2, longer)


@pytest.mark.parametrize(("width", "height"), [(62, 64), (64, 62), (65, 64), (64, 67)])
def test_sizes_that_do_not_fit_are_refused(width, height, tmp_path):
    with pytest.raises(ValueError, match=f"a clip of {width} × {height} pixels: both must be even and at least 64"):
        video.make_clip(tmp_path / "clip.mp4", width=width, height=height)


def test_without_pyav_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(RuntimeError, match=r"PyAV is missing.*pip install av"):
        video.make_clip(tmp_path / "clip.mp4")


def test_without_an_encoder_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(video, "CODECS", ("no such codec",))
    with pytest.raises(RuntimeError, match="has none of the encoders no such codec"):
        video.make_clip(tmp_path / "clip.mp4")


def test_without_a_gpu_nvdec_says_why(clip, monkeypatch):
    monkeypatch.setattr("warplab.hardware.backend.name", lambda: "simulator")
    assert "there is no GPU to decode on" in video.nvdec_missing()
    with pytest.raises(RuntimeError, match="NVDEC cannot decode here: there is no GPU"):
        next(video.frames_on_nvdec(clip))


def test_without_its_library_nvdec_says_why(monkeypatch):
    monkeypatch.setattr("warplab.hardware.backend.name", lambda: "gpu")
    monkeypatch.setitem(sys.modules, "PyNvVideoCodec", None)
    assert "PyNvVideoCodec cannot be imported" in video.nvdec_missing()


@pytest.mark.gpu
def test_nvdec_decodes_what_ffmpeg_decodes(tmp_path):
    """H.264 says what each bit of a frame is."""
    import cupy

    pytest.importorskip("av", reason="PyAV makes the clip")

    clip = tmp_path / "clip.mp4"
    video.make_clip(clip, width=320, height=192, frames=20)
    if reason := video.nvdec_missing():
        pytest.skip(reason)
    for by_gpu, by_cpu in zip(video.frames_on_nvdec(clip), video.frames_on_cpu(clip), strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(by_gpu), by_cpu)
