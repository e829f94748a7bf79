"""The pipeline's stages on this machine: real frames, timed as the CPU's, and planes by the kernel."""

import numpy as np
import pytest

from kernels.serving import pipeline_here, video
from kernels.serving.pipeline import Stages, pipelined
from kernels.serving.pipeline_here import decode_here, prepare_here, stages_with
from kernels.serving.preprocess import KERNELS, by_numpy
from kernels.serving.stream_races import races
from kernels.serving.stream_timeline import simulate


@pytest.fixture(scope="module")
def decoded(tmp_path_factory):
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    video.make_clip(path, width=96, height=64, frames=12)
    return decode_here(path)


def test_frames_are_decoded_and_timed_as_this_cpus(decoded):
    assert len(decoded.frames) == len(decoded.ms) == 12
    assert all(ms > 0 for ms in decoded.ms)
    assert min(decoded.ms) <= decoded.median_ms <= max(decoded.ms)
    assert "on one thread of this CPU, " in decoded.label


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernel_prepares_them_as_numpy(decoded, kernel):
    planes = prepare_here(decoded.frames[:3], 24, 40, kernel)
    expected = np.stack([by_numpy(frame, 24, 40) for frame in decoded.frames[:3]])
    np.testing.assert_allclose(planes, expected, rtol=0, atol=3e-5)


def test_a_pipeline_with_this_cpus_decode_time(decoded):
    stages = stages_with(decoded, Stages(decode=1, preprocess=0.01, infer=0.02, answers=0.01), copy=0.01)
    assert (stages.decode, stages.copy, stages.infer) == (decoded.median_ms, 0.01, 0.02)
    schedule = pipelined(12, stages, decoder="CPU")
    assert races(schedule) == []
    assert simulate(schedule).busy("host") == pytest.approx(12 * decoded.median_ms)


def test_a_clip_without_frames_is_refused(monkeypatch):
    monkeypatch.setattr(pipeline_here, "frames_on_cpu", lambda clip: iter(()))
    with pytest.raises(ValueError, match=r"empty\.mp4 has no frames; make one with make_clip"):
        decode_here("empty.mp4")
