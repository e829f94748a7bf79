"""What lab 10's lesson says of numbers, how it shows recordings, and what its tasks' checks say beside answers.py."""

import ast
import importlib
import re
import types
from collections import Counter
from itertools import combinations

import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.collectives import (
    data_parallel,
    figures,
    interpreter,
    lesson_checks,
    measurements,
    model,
    mpi_ranks,
    on_virtual_devices,
    over_mpi,
    published,
    ring,
    topology,
)
from kernels.collectives.perceptron import Perceptron, clusters
from tests.support.lesson_answers import answers
from tools.execute_notebooks import execute
from warpcourse.bench.lab import labs
from warpcourse.bench.recordings import Measurement
from warplab.checks import CheckFailed

ring_readings = importlib.import_module("tests.labs.10_collectives.ring_readings")

LESSONS = next(lab for lab in labs() if lab.number == 10).lessons


@pytest.fixture(scope="module")
def texts():
    """The sources of both notebooks' cells by id; of the second one's verdict as "second-verdict-text"."""
    first, second = (
        {cell.id: cell.source for cell in nbformat.read(each.notebook, as_version=4).cells} for each in LESSONS
    )
    return second | first | {"second-verdict-text": second["collectives-verdict-text"]}


# Numbers of the text.


def test_the_verdict_on_the_formula_is_that_of_the_readings(texts):
    readings, hop = ring_readings.curve(4, "gbps"), ring_readings.curve(2, "gbps")[1]
    text = texts["collectives-verdict-text"]
    assert f"{readings[1]:.0f} GB/s of {hop:.0f}" in text
    assert readings[1] / hop == pytest.approx(1 / 3, rel=0.01)
    for slices, phrase in ((32, "At S = 32 it is {:.0f} % too high"), (256, "at S = 256 by {:.0f} %")):
        assert phrase.format(100 * (hop * slices / (slices + 2) / readings[slices] - 1)) in text
    check = ring_readings.check(4, 1, 256)
    assert check.worst < 0.03
    assert "With α it is within 3 % from end to end" in text
    assert texts["collectives-fit-after"].startswith("Within 3 %")
    two = ring_readings.check(2, 1, 256)
    assert (
        f"α was {check.link.alpha * 1e6:.1f} µs on four of these GPUs, and {two.link.alpha * 1e6:.1f} µs on two, fitted"
        in text
    )
    assert max(readings, key=readings.get) == 32
    assert "From S = 32 on" in texts["collectives-alpha-text"]


def test_no_kernel_broadcasts_more_than_the_text_says(texts):
    assert (
        "Without flags our TMA kernel got 367 on four H200 (2026-11-26): its limit" in texts["collectives-earlier-text"]
    )
    assert f"A copy engine gets {ring_readings.curve(2, 'gbps')[1]:.0f} of it" in texts["collectives-earlier-text"]
    for row in measurements.recorded("broadcast_table", 4).value["rows"]:
        assert row["gbps"] < 367 or not row["engine"].startswith("kernel")


def test_two_small_numbers_of_slices_predict_badly(texts):
    assert "two small S say little of α" in texts["collectives-fit-after"]
    small = combinations([s for s in measurements.SLICES if s <= 8], 2)
    assert max(ring_readings.check(4, *pair).worst for pair in small) > 0.1


def test_the_scaling_is_that_of_the_text(texts):
    errors = [100 * error for curve in published.CURVES for error in curve.errors().values()]
    between = f"by {min(errors):.0f} to {max(errors):.0f} points"
    assert between in texts["collectives-published-after"]
    resnets = published.CURVES[:2]
    assert [round(100 * (1 - curve.published[2])) for curve in resnets] == [3, 3]
    assert "lose 3 % on two GPUs" in texts["collectives-published-after"]
    assert 100 * (1 - published.predicted(32, "flat ring")) == pytest.approx(2, abs=0.5)
    times = sorted(published.SEVEN_ON_EIGHT.values())
    assert f"tables of others have {times[0]:.1f} to {times[-1]:.1f}" in texts["second-verdict-text"]
    worst = min(published.SEVEN_ON_EIGHT, key=published.SEVEN_ON_EIGHT.get)
    assert worst[0].startswith("AlexNet")


def test_the_messages_of_rings_are_those_of_the_text(texts):
    text, gpus, inside = texts["collectives-ring-after"], 2048, 8
    assert f"{2 * (gpus - 1)} for each bucket" in text
    assert f"n nodes of g GPUs: {2 * (inside - 1) + 2 * (gpus // inside - 1)}" in text


def test_the_bandwidth_of_the_tree_is_that_of_the_text(texts, defined):
    for link in (topology.PCIE_3, 1e9):
        pcie = topology.pcie_tree(4, link)
        rates = [defined["ring_bandwidth"](pcie, order) for order in ([0, 1, 2, 3], [0, 2, 1, 3])]
        assert rates == [link, link / 2]
    assert "in a bad one some do, at half the rate" in texts["second-verdict-text"]


def test_halving_and_doubling_is_never_slower_than_the_ring(texts):
    assert "halving and doubling beats the ring everywhere" in texts["collectives-when-after"]
    link = ring_readings.check(4, 1, 256).link
    for n in (2**10, 2**20, 2**30):
        fewer, ringed = model.halving_doubling_all_reduce(n, 8, 8, link), model.ring_all_reduce(n, 8, 8, link)
        assert fewer < ringed
    assert model.recursive_doubling_all_reduce(4096, 8, 1, link) < model.halving_doubling_all_reduce(4096, 8, 8, link)


def test_the_gain_of_overlap_is_that_of_the_text(texts):
    text = texts["collectives-streams-text"]
    for ranks in (2, 4):
        rows = measurements.recorded("sgd", ranks).value["rows"]
        seconds = {(row["way"], row["overlap"]): row["seconds"] for row in rows}
        assert seconds["nccl", True] > seconds["nccl", False]
        assert seconds["copies", True] < seconds["copies", False]
    assert "NCCL's step became longer by overlap, that of the copy engines shorter" in text


def test_what_sharing_a_network_out_sends_is_that_of_the_text(texts, capsys):
    text, link = texts["collectives-tensor-text"], ring_readings.check(4, 1, 256).link
    n, k = 2 * 7e10, 64
    half = model.ring_reduce_scatter(n, k, k, link)  # an all-gather takes the same
    assert 2 * half == model.ring_all_reduce(n, k, k, link)
    assert "Stage 1 and 2 send what an all-reduce sends." in text
    assert 3 * half == pytest.approx(1.5 * model.ring_all_reduce(n, k, k, link))
    assert "half as much again" in text
    exec(texts["collectives-tensor"], {"model": model, "link": link})
    shares = [int(line.partition("%")[0].split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert len(shares) == 3
    assert shares == sorted(shares)
    assert shares[0] < 25 < 50 < shares[-1]  # inside an NVLink domain, and across four
    assert "stays inside an NVLink domain" in texts["collectives-tensor-after"]


# What cells define.


@pytest.fixture(scope="module")
def defined(texts):
    """The functions of three cells by name."""
    found = {"np": np, "ring": ring, "Counter": Counter, "Perceptron": Perceptron, "clusters": clusters}
    for name in ("collectives-order", "collectives-train", "collectives-sgd-same"):
        functions = [node for node in ast.parse(texts[name]).body if isinstance(node, ast.FunctionDef)]
        exec(compile(ast.Module(functions, []), name, "exec"), found)
    return found


@pytest.mark.parametrize(
    ("wires", "order", "bandwidth"),
    [
        (topology.pcie_tree(4), [0, 1, 2, 3], 12e9),
        (topology.pcie_tree(4), [0, 2, 1, 3], 6e9),
        (topology.pcie_tree(8), topology.leaves(topology.pcie_tree(8)), 12e9),
        (topology.nodes_on_infiniband(1, 4, inside=395e9), [0, 2, 1, 3], 395e9),
        (topology.nodes_on_infiniband(2, 4, cards=4), range(8), topology.INFINIBAND_EDR),
        (topology.nodes_on_infiniband(2, 4), [0, 4, 1, 5, 2, 6, 3, 7], topology.INFINIBAND_EDR / 4),
    ],
)
def test_a_ring_gets_what_its_busiest_wire_leaves_it(defined, wires, order, bandwidth):
    """The talks' claim is the first: a ring over the leaves in order has the whole bandwidth of a link."""
    assert defined["ring_bandwidth"](wires, order) == bandwidth


def test_ranks_end_with_the_same_bits_and_those_of_one_device_to_rounding(defined):
    train, difference = defined["train"], defined["difference"]
    (alone,), losses = train(1, interpreter.run, steps=10)
    task = data_parallel.Task(sizes=(32, 64, 10), steps=10)
    assert all(map(np.array_equal, alone, data_parallel.train_alone(task)[0]))
    weights, mean_losses = train(4, interpreter.run, steps=10)
    assert all(np.array_equal(*pair) for other in weights for pair in zip(weights[0], other, strict=True))
    assert 0 < difference(alone, weights[0]) < 1e-5
    np.testing.assert_allclose(mean_losses, losses, rtol=1e-4)


def test_virtual_devices_train_as_one_device(defined):
    (alone,), _ = defined["train"](1, interpreter.run, steps=2)
    weights, _ = defined["train"](2, on_virtual_devices.run, steps=2)
    assert max(defined["difference"](alone, each) for each in weights) < 1e-5


def test_without_the_sum_the_weights_would_differ(defined):
    (alone,), _ = defined["train"](1, interpreter.run, steps=10)
    weights, _ = defined["train"](4, lambda schedule, arrays: [4 * array for array in arrays], steps=10)
    assert defined["difference"](alone, weights[0]) > 1e-3


# Cells that show recordings.

TABLE = [{"engine": "ours", "seconds": 1.0, "gbps": 300.0, "bus_gbps": 300.0, "ratio_to_nccl": 1.02, "correct": True}]
SGD = [{"way": "nccl", "overlap": True, "seconds": 2e-3, "efficiency": 0.9, "difference": 0.0, "correct": True}]
SHOWN = {
    "collectives-nccl": (TABLE, "1.020 of NCCL's"),
    "collectives-sgd-measured": (SGD, "2.00 ms, efficiency 90.0%"),
    "collectives-verdict-recorded": (SGD, "2001-02-03: 1.80 × by nccl"),
}


@pytest.mark.parametrize("cell", SHOWN)
def test_a_recording_is_shown_with_device_and_date(texts, cell, monkeypatch, capsys):
    rows, shown = SHOWN[cell]
    found = Measurement(
        {"ranks": 2, "rows": rows, "one_gpu_seconds": 1.8e-3, "gradient_bytes": 10**8},
        "Some GPU",
        "2001-02-03",
        live=False,
    )
    monkeypatch.setattr(measurements, "measured", lambda key: [found])
    monkeypatch.setattr(measurements, "recorded", lambda key, ranks: found)
    exec(texts[cell], {"measurements": measurements})
    out = capsys.readouterr().out
    assert shown in out
    assert "recorded on Some GPU, 2001-02-03" in out


def test_curves_of_two_and_four_gpus_are_drawn_with_device_and_date(texts):
    shown, draw = [], figures.draw_measured
    drawing = types.SimpleNamespace(draw_measured=lambda *given, **named: shown.append(draw(*given, **named)))
    for cell in ("collectives-curve", "collectives-small"):
        exec(texts[cell], {"measurements": measurements, "figures": drawing, "display": lambda figure: None})
    titles = [figure.axes[0].get_title("left") for figure in shown]
    assert len(titles) == 3
    assert all("NVIDIA H200, 2026-11-26" in title for title in titles)
    assert [text.get_text() for text in shown[0].axes[0].get_legend().get_texts()] == ["2 GPUs", "4 GPUs"]


def test_two_runs_of_the_same_code_are_as_far_apart_as_the_text_says(texts):
    rows = measurements.recorded("sgd", 2).value["rows"]
    (recorded,) = (2 * row["efficiency"] for row in rows if row["way"] == "tma" and row["overlap"])
    said = texts["collectives-streams-text"]
    assert f"two GPUs gave {recorded:.2f} × in one run" in said
    outputs = {cell.id: cell.get("outputs") for cell in nbformat.read(LESSONS[1].notebook, as_version=4).cells}
    shown = re.search(r"tma, overlapped .*efficiency ([\d.]+)%", outputs["collectives-sgd-measured"][0].text)
    assert f"{2 * float(shown[1]) / 100:.2f} × in another" in said


def test_streams_are_drawn_for_one_rank():
    def row(rank, stream, what, begin, end):
        return {"rank": rank, "stream": stream, "what": what, "begin": begin, "end": end}

    rows = [
        row(0, "compute", "forward", 0, 1e-3),
        row(0, "communicate", "sum 3", 1e-3, 3e-3),
        row(1, "compute", "x", 0, 9),
    ]
    figure = figures.draw_streams({"ranks": 2, "overlapped": rows}, "recorded on Some GPU, 2001-02-03")
    (ax,) = figure.axes
    assert [(bar.get_x(), bar.get_width()) for bar in ax.patches] == [(0, 1), (1, 2)]
    assert figure.get_suptitle() == "recorded on Some GPU, 2001-02-03"


# Without MPI.


@pytest.mark.parametrize("cell", ["collectives-mpi", "collectives-dies"])
def test_without_mpi_the_lesson_says_what_to_install(texts, cell, monkeypatch, capsys):
    def missing():
        raise mpi_ranks.MpiMissing("there is no mpiexec")

    monkeypatch.setattr(mpi_ranks, "mpiexec", missing)
    arrays = [np.full(12, rank, np.float32) for rank in range(4)]
    names = {"np": np, "over_mpi": over_mpi, "ring": ring, "arrays": arrays, "schedule": ring.ring_all_reduce(4, 4)}
    exec(texts[cell], names | {"RankFailed": mpi_ranks.RankFailed, "MpiMissing": mpi_ranks.MpiMissing})
    assert "there is no mpiexec" in capsys.readouterr().out


# Tasks: what answers.py does not reach.


@pytest.mark.thorough
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.slug)
def test_a_solved_lesson_runs_to_its_end(lesson, monkeypatch):
    # Names that a check leaves behind must not break cells below it.
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")
    notebook = nbformat.read(lesson.notebook, as_version=4)
    solved = answers(lesson)
    for cell in notebook.cells:
        if cell.id in solved:
            cell.source = solved[cell.id].right
    execute(notebook)
    checked = [str(cell.outputs) for cell in notebook.cells if "check" in cell.metadata.get("tags", [])]
    assert len(checked) == len(solved)
    assert all("right for" in text for text in checked)


def test_the_picture_of_all_reduces_has_the_learners_ends():
    def finish(ready, lasts):
        free = 0.0
        for r, t in zip(ready, lasts, strict=True):
            free = max(free, r) + t
        return free

    figure = lesson_checks.draw_finish(finish)
    assert isinstance(figure, Figure)
    right = max(bar.get_x() + bar.get_width() for bar in figure.axes[0].patches)
    assert right == pytest.approx(14)


def test_a_schedule_of_the_learners_messages_is_returned():
    schedule = lesson_checks.check_one_slice(
        lambda ring, slice: [(slice + hop, ring[hop], ring[hop + 1], slice) for hop in range(len(ring) - 1)]
    )
    assert (schedule.steps, schedule.ranks, schedule.sends[0].destination) == (6, 4, 2)
    schedule = lesson_checks.check_slice_to_send(lambda rank, step, k: (rank - step - 1) % k)
    assert schedule.steps == 3


@pytest.mark.parametrize(
    ("check", "answer", "problem"),
    [
        (lesson_checks.check_one_slice, lambda ring, slice: 3, "wrong type"),
        (lesson_checks.check_one_slice, lambda ring, slice: [], "empty list"),
        (lesson_checks.check_slice_to_send, lambda rank, step, k: None, "returns nothing"),
        (lesson_checks.check_slice_to_send, lambda rank, step, k: 0.5, "is not one"),
        (lesson_checks.check_receives_first, lambda place: 0, "wrong type"),
        (lesson_checks.check_receives_first, lambda place: 1 / place, "raises ZeroDivisionError"),
        (lesson_checks.check_one_step, lambda messages, arrays: arrays[:1], "wrong length"),
    ],
)
def test_answers_of_another_kind_are_refused(check, answer, problem):
    with pytest.raises(CheckFailed, match=problem):
        check(answer)
