"""The picture of several estimates beside the times that are known, and what lessons need around it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machines import GOOD, VOLTA, pretending
from warplab import CudaSource, draw_estimate, draw_estimates, estimate, estimate_if_possible
from warplab.compile.errors import CompilerNotFound
from warplab.estimating import beside
from warplab.estimating.beside import KnownTime
from warplab.hardware import driver
from warplab.launch.simulate import simulate

SOURCE = r"""extern "C" __global__ void copy(const float *in, float *out, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * stride];
}"""
RECORDED = KnownTime(200e-6, "NVIDIA H100 80GB HBM3", "2026-11-21", live=False, of="the course's copy")


@pytest.fixture(scope="module")
def launches():
    def run(stride: int):
        arrays = np.zeros(264 * 256 * stride, np.float32), np.zeros(264 * 256, np.float32)
        return simulate(CudaSource(SOURCE, "copy"), 264, 256, (*arrays, np.int32(stride)))

    return {f"stride {stride}": run(stride) for stride in (1, 16)}


@pytest.fixture
def machine(monkeypatch):
    yield from pretending(monkeypatch)


def texts(figure) -> str:
    shown = [*figure.texts, *figure.axes[0].texts, *figure.axes[0].get_legend().get_texts(), figure.axes[0].title]
    return "\n".join(text.get_text().replace("\n", " ") for text in [*shown, *figure.axes[0].get_yticklabels()])


def test_each_launch_has_its_estimate_and_its_known_time(launches) -> None:
    estimates = {name: estimate(launch, blocks=1000) for name, launch in launches.items()}
    figure = draw_estimates(estimates, {"stride 1": RECORDED})
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    one, sixteen = estimates.values()
    assert widths == pytest.approx([one.seconds, RECORDED.seconds, sixteen.seconds])
    marks = [line.get_xdata()[0] for line in figure.axes[0].lines if len(line.get_xdata())]
    assert marks == pytest.approx([one.lifted[one.limit], sixteen.lifted[sixteen.limit]])
    said = texts(figure)
    assert "stride 1\nstride 16" in said
    assert f"recorded 200 µs, estimate {100 * (one.seconds / 200e-6 - 1):+.0f} %" in said
    assert f": {sixteen.limit}" in said
    assert said.count("no recording of this launch") == 1


def test_the_note_says_what_is_an_estimate_and_where_the_other_times_are_from(launches) -> None:
    found = estimate(launches["stride 1"], blocks=1000)
    said = texts(draw_estimates({"one": found, "again": found}, {"one": RECORDED, "again": RECORDED}))
    assert said.count("An estimate by arithmetic, no measurement.") == 1
    assert said.count("Recorded on NVIDIA H100 80GB HBM3, 2026-11-21: the course's copy.") == 1
    assert "another card" not in said
    found = estimate(launches["stride 1"], "V100", blocks=1000)
    said = texts(draw_estimates({"one": found}, {"one": RECORDED}))
    assert "Not validated for the V100" in said
    assert "The estimates are for another card, the V100." in said


def test_the_axis_ends_where_the_last_text_does(launches) -> None:
    found = estimate(launches["stride 1"], blocks=1000)
    figure = draw_estimates({"one": found}, {"one": RECORDED})
    figure.draw_without_rendering()
    ax = figure.axes[0]
    box = ax.get_window_extent()
    last = max(text.get_window_extent().x1 for text in ax.texts)
    assert 0.9 * box.width < last - box.x0 <= box.width


def test_nothing_lies_on_anything_else(launches) -> None:
    names = {f"a launch with a long name, {k}": estimate(launches["stride 16"], blocks=1000 * k) for k in (1, 2, 30)}
    known = {name: KnownTime(3 * found.seconds, "NVIDIA H100", "2026", live=True) for name, found in names.items()}
    figure = draw_estimates(names, known)
    figure.draw_without_rendering()
    ax = figure.axes[0]
    shown = [*ax.texts, ax.get_legend(), ax.xaxis.label, ax.title, *figure.texts]
    boxes = [one.get_window_extent() for one in shown]
    for k, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1, shown[k]
        assert box.y0 >= figure.bbox.y0, shown[k]
        for other in boxes[:k]:
            assert not box.overlaps(other)


def test_the_picture_of_one_launch_shows_the_known_time(launches) -> None:
    found = estimate(launches["stride 16"])
    assert "recorded" not in texts(draw_estimate(found))
    said = texts(draw_estimate(found, known=RECORDED))
    assert "the launch: recorded, 200 µs" in said
    assert "Recorded on NVIDIA H100 80GB HBM3, 2026-11-21: the course's copy." in said


def test_a_launch_that_was_profiled_on_a_gpu_is_shown_with_its_time(launches) -> None:
    launch = launches["stride 16"]
    launch.gpu_seconds, launch.gpu_name = 12e-6, "NVIDIA H100"
    try:
        assert "the launch: measured, 12.0 µs" in texts(draw_estimate(launch))
        assert "measured" not in texts(draw_estimate(estimate(launch, blocks=2)))  # of which no time was taken
    finally:
        launch.gpu_seconds = launch.gpu_name = None


def test_without_the_assembler_a_lesson_goes_on(launches, monkeypatch, capsys) -> None:
    def missing(*_, **__):
        raise CompilerNotFound("ptxas, which assembles PTX,", FileNotFoundError("no such program"))

    monkeypatch.setattr(beside, "estimate", missing)
    assert estimate_if_possible(launches["stride 1"]) is None
    said = capsys.readouterr().out
    assert "No estimate, as it needs the machine code: ptxas, which assembles PTX, does not load" in said
    assert "run `python -m warplab doctor`" in said
    assert draw_estimates({"one": None}) is None
    monkeypatch.undo()
    figure = draw_estimates({"one": None, "two": estimate_if_possible(launches["stride 1"])})
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["two"]


def test_a_lesson_estimates_for_the_gpu_that_is_there(machine) -> None:
    ampere = driver.Gpu("NVIDIA A100-SXM4-40GB", 40 * 2**30, (8, 0))
    machine(replace(GOOD, gpus=(ampere,)))
    assert beside.card_here().name == "A100"


def test_where_the_simulator_runs_kernels_a_lesson_estimates_for_the_card_of_the_recordings(machine) -> None:
    machine(VOLTA)  # too old for CUDA 13
    assert beside.card_here().name == "H100"


def test_estimates_of_several_cards_do_not_share_an_axis(launches) -> None:
    with pytest.raises(ValueError, match="the estimates are for H100 SXM5 80 GB HBM3, Tesla V100 SXM2; draw those of"):
        draw_estimates({name: estimate(launches["stride 1"], name) for name in ("H100", "V100")})
