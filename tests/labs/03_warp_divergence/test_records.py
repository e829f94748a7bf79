"""What is recorded of lab 03: measurements, their place in the headers, machine code, pictures."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.warp_divergence import figures, machine_code, recordings
from kernels.warp_divergence.kernel_table import SOURCES
from kernels.warp_divergence.measurements import MEASUREMENTS, SELECTED
from kernels.warp_divergence.selection import APPENDING
from tests.support.figure_shapes import overlapping
from warplab.draw.style import ink

VALUES = recordings.values()
ORIGIN = recordings.recorded("histogram_table").origin


def header(file):
    """The comments of a file, without line breaks."""
    lines = [line.strip() for line in SOURCES.text(file).splitlines()]
    return " ".join(line[2:].strip() for line in lines if line.startswith("//"))


def rows(table, name):
    return [row for row in VALUES[table]["rows"] if row["name"] == name]


def test_every_measurement_is_recorded_on_a_named_gpu():
    assert set(VALUES) == set(MEASUREMENTS)
    assert all(m.device.startswith("NVIDIA ") for m in recordings.load().values())
    for table in ("histogram_table", "selection_table"):
        assert VALUES[table]["n"] == 2**28
        assert VALUES[table]["cub"].startswith("CUB ")
        assert all(row["correct"] for row in VALUES[table]["rows"])
    assert all(row["correct"] for row in VALUES["task_times"])
    assert VALUES["accelerators"]["routines"] == ["cub"], "cupy.histogram is CUB's"


@pytest.mark.parametrize(
    ("table", "name", "number"),
    [("histogram_table", "cuda_histogram_columns", 2), ("selection_table", "cuda_pipelined", len(SELECTED))],
)
def test_the_last_steps_are_as_fast_as_the_libraries(table, name, number):
    found = rows(table, name)
    assert len(found) == number
    for row in found:
        assert row["ratio_to_cub"] >= 1
        assert row["ratio_to_cupy"] >= 1


def test_the_headers_of_the_histograms_give_the_recorded_rates():
    text = header("histogram.cu")
    for name in {row["name"] for row in VALUES["histogram_table"]["rows"] if row["name"].startswith("cuda_")}:
        a, b = rows("histogram_table", name)
        rates = f"Reached: {a['gbps']:.4g} GB/s on uniform data and {b['gbps']:.4g} on skewed, "
        assert rates + f"{a['ratio_to_cub']:.3g} and {b['ratio_to_cub']:.3g} of CUB." in text, name
    for a, b in (rows("histogram_table", "CUB"), rows("histogram_table", "cupy.histogram")):
        assert f"{a['gbps']:.4g}" in text
        assert f"{b['gbps']:.4g}" in text
    assert ORIGIN in text


def test_the_headers_of_the_selections_give_the_recorded_rates():
    for row in VALUES["selection_table"]["rows"]:
        step = row["name"].partition("_")[2]
        if not row["name"].startswith("cuda_"):
            continue
        text = header("append.cu" if step in APPENDING else "select.cu")
        a, b, c = rows("selection_table", row["name"])
        reached = f"Reached: {a['gbps']:.0f}, {b['gbps']:.0f} and {c['gbps']:.0f} GB/s with 10, 50 and 90 % kept, "
        ratios = [f"{r['ratio_to_cub']:.2f}" for r in (a, b, c)]
        assert reached + f"{ratios[0]}, {ratios[1]} and {ratios[2]} of CUB." in text, row["name"]
        assert ORIGIN in text


def test_numbas_kernels_give_the_recorded_rates():
    text = SOURCES.text("numba_kernels.py")
    assert ORIGIN in text
    names = {row["name"] for table in ("histogram_table", "selection_table") for row in VALUES[table]["rows"]}
    numba = sorted(name for name in names if name.startswith("numba_"))
    assert len(numba) == 5
    for name in numba:
        rates = [row["gbps"] for table in ("histogram_table", "selection_table") for row in rows(table, name)]
        if "histogram" in name:
            reached = f"Reached: {rates[0]:.4g} GB/s on uniform data and {rates[1]:.4g} on skewed."
        else:
            reached = f"Reached: {rates[0]:.0f}, {rates[1]:.0f} and {rates[2]:.0f} GB/s with 10, 50 and 90 % kept."
        assert reached in text, name


def test_the_headers_of_paths_tasks_and_order_give_the_recorded_times():
    paths, tasks, order = header("paths.cu"), header("tasks.cu"), header("order.cu")
    for text in (paths, tasks, order):
        assert ORIGIN in text
    for by in ("lane", "warp"):
        times = [f"{row[f'by_{by}_seconds'] * 1e6:.4g}" for row in VALUES["path_costs"]["rows"]]
        assert f"by {by} {', '.join(times)} µs" in paths
    for row in VALUES["task_times"]:
        assert f"{row['seconds'] * 1e6:.4g} µs, efficiency {row['warp_efficiency']:.3f}" in tasks, row["name"]
    for row in VALUES["order_of_sides"]:
        letters = sorted(row["letters"], key=lambda letter: letter["clocks"])
        reached = ", ".join(f"{letter['letter']} {letter['clocks']}" for letter in letters)
        assert f"Reached: {reached}" in order, row["kernel"]


def test_what_the_sides_of_a_branch_did_on_the_gpu():
    found = {row["kernel"]: row for row in VALUES["order_of_sides"]}
    assert found["in_turn"]["sequence"] == "AXBYZ"
    for name in ("ordered", "in_turn", "handshake"):
        assert found[name]["read"] == [42] * 4
        assert found[name]["sequence"].index("X") < found[name]["sequence"].index("B")


def test_ways_by_lane_cost_their_number_and_by_warp_nothing():
    for row in VALUES["path_costs"]["rows"]:
        assert 0.85 * row["ways"] < row["by_lane_seconds"] / VALUES["path_costs"]["rows"][0]["by_lane_seconds"]
        assert row["by_warp_seconds"] < 1.1 * VALUES["path_costs"]["rows"][0]["by_warp_seconds"]


# -- machine code ----------------------------------------------------------------------------------------------------


def test_the_machine_code_is_of_these_sources():
    assert machine_code.recorded()["sources"] == machine_code.checksums(), (
        "run python -m kernels.warp_divergence.machine_code"
    )
    assert set(machine_code.recorded()["kernels"]) == set(machine_code.RECORDED)


@pytest.mark.parametrize(("steps", "branches"), [(4, False), (7, False), (8, True)])
def test_short_conditions_are_predicated(steps, branches):
    name = f"cuda_condition<{steps}>"
    lines = machine_code.sass(name)
    products = [line.split() for line in lines if "FFMA" in line]
    assert len(products) == steps
    assert all((words[0].startswith("@")) is not branches for words in products)
    assert any("BSSY" in line for line in lines) is branches
    # The PTX has a branch either way: around the condition, beside the guard's.
    assert sum("bra" in line for line in machine_code.ptx(name)) == 2


def test_what_was_not_recorded_is_refused():
    with pytest.raises(ValueError, match="machine code of 'cuda_paths<2>' was not recorded; recorded are"):
        machine_code.sass("cuda_paths<2>")
    with pytest.raises(ValueError, match="numba_collatz is a kernel of Numba"):
        machine_code.ptx("numba_collatz")


# -- pictures and the benchmark --------------------------------------------------------------------------------------


def measured(key):
    def never():
        raise AssertionError("a measurement ran without a GPU")

    return recordings.measure(key, never)


def test_pictures():
    orders, paths, tasks = (measured(key) for key in ("order_of_sides", "path_costs", "task_times"))
    drawn = [figures.draw_order(orders, row["kernel"]) for row in orders.value]
    drawn += [figures.draw_paths(paths), figures.draw_efficiency(paths, tasks)]
    drawn += [figures.draw_rates(measured("histogram_table"), "data", data) for data in ("uniform", "skewed")]
    drawn += [figures.draw_rates(measured("selection_table"), "share", share) for share in SELECTED]
    for figure in drawn:
        assert isinstance(figure, Figure)
        texts = [figure.get_suptitle(), *(ax.get_title(loc="left") for ax in figure.axes)]
        assert any(f"recorded on {ORIGIN}" in text for text in texts)
        assert overlapping(figure) == []
    with pytest.raises(ValueError, match="kernel 'x' was not measured; measured are branch"):
        figures.draw_order(orders, "x")
    with pytest.raises(ValueError, match=r"share 0\.3 was not measured"):
        figures.draw_rates(measured("selection_table"), "share", 0.3)


def test_letters_are_dark_on_light_bars_and_rates_on_a_logarithmic_axis_are_dots():
    row = measured("order_of_sides")
    ax = figures.draw_order(row).axes[0]
    colours = {text.get_text(): text.get_color() for text in ax.texts}
    bars = {letter: bar.get_facecolor() for letter, bar in zip(colours, ax.patches, strict=True)}
    assert set(colours.values()) == {"black", "white"}
    assert all(colours[letter] == ink(bar) for letter, bar in bars.items())
    table = measured("histogram_table")
    ax = figures.draw_rates(table, "data", "skewed").axes[0]
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert sorted(dots) == sorted(row["gbps"] for row in table.value["rows"] if row["data"] == "skewed")
    assert len(ax.patches) == 0


def test_the_picture_of_lanes_has_an_arrow_into_each_lane_that_changed():
    values = np.array([[1, 2, 3, 4], [4, 6, 7, 8], [11, 14, 15, 16]])
    used = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], bool)

    def arrows(figure):
        return sorted(
            (int(text.xyann[0]), int(text.xy[0])) for text in figure.axes[0].texts if hasattr(text, "arrow_patch")
        )

    assert arrows(figures.draw_lanes(values, [2, 1], used)) == [(1, 0), (2, 0), (3, 1)]
    assert arrows(figures.draw_lanes(values, [-1, -2])) == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]


def test_the_picture_of_passes_says_how_busy_warps_are():
    passes = np.zeros((4, 32), int)
    passes[:, ::8] = 6
    passes[:, 1::8] = 3
    figure = figures.draw_picture(passes, {"rows": (32, 1), "columns": (1, 4)})
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles[1:3] == ["rows: 0.19 busy", "columns: 1.00 busy"]  # (4 x 6 + 4 x 3) / (32 x 6)
    share = np.asarray(figure.axes[2].images[0].get_array())
    assert share[0, :3].tolist() == [1, 1, 0]


def test_the_benchmark_prints_what_it_measured():
    from kernels.warp_divergence import benchmark

    assert "cuda_pipelined" in benchmark.library_table(VALUES["selection_table"], "share")
    assert len(benchmark.paths_table(VALUES["path_costs"]).splitlines()) == 1 + len(VALUES["path_costs"]["rows"])
    assert "Collatz" in benchmark.tasks_table(VALUES["task_times"])
    found = benchmark.BENCHMARK.summary(VALUES)
    assert json.loads(json.dumps(found)) == found
    assert found["correct"] is True
    wrong = json.loads(json.dumps(VALUES))
    wrong["task_times"][0]["correct"] = False
    assert benchmark.BENCHMARK.summary(wrong)["correct"] is False


def test_without_a_gpu_the_benchmark_says_so_and_ends_with_code_2():
    done = subprocess.run(
        [sys.executable, "-m", "kernels.warp_divergence.benchmark"],
        env={**os.environ, "WARPLAB_BACKEND": "simulator"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "needs an NVIDIA GPU" in done.stderr
    assert done.stdout == ""
