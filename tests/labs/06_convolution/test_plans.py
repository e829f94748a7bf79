"""The choice among cuDNN's plans, and what is kept of their tables: no GPU is needed."""

import pytest

from kernels.convolution.cudnn import plan_table
from kernels.convolution.cudnn.plan_table import NoPlan, choose, first_choice, frontier, full_precision
from kernels.convolution.measured.algorithms import fastest_by_kind, kind
from kernels.convolution.measured.plans import KEPT_FASTEST, KEPT_PER_STATUS, kept
from tests.support.random_inputs import generator


def row(id_, seconds, workspace, *, status="ok", engine=0, proposed="A", numerical=""):
    return {
        "id": id_,
        "plan": f"eng{engine}_k2={id_}",
        "engine": engine,
        "proposed": proposed,
        "status": status,
        "seconds": seconds if status == "ok" else None,
        "workspace_bytes": workspace,
        "behavior": "",
        "numerical": numerical,
        "relative_error": 1e-7 if status == "ok" else None,
    }


ROWS = [
    row(0, 5e-4, 0, engine=1),
    row(1, 1e-4, 4000, engine=2, numerical="TENSOR_CORE"),
    row(2, 9e-5, None, engine=3, status="CUDNN_STATUS_NOT_SUPPORTED"),
    row(3, 2e-4, 100, engine=4, numerical="FFT"),
    row(4, 3e-4, 2000, engine=5, numerical="WINOGRAD WINOGRAD_TILE_4x4", proposed=""),
    row(5, 1e-4, 3000, engine=2, numerical="DOWN_CONVERT_INPUTS TENSOR_CORE"),
]


def random_rows(count):
    random = generator()
    rows = []
    for id_ in range(count):
        status = "ok" if random.random() < 0.8 else "CUDNN_STATUS_NOT_SUPPORTED"
        seconds, workspace = random.integers(1, 6) * 1e-5, int(random.integers(0, 5)) * 64
        rows.append(row(id_, seconds, workspace, status=status, engine=int(random.integers(4))))
    return rows


def test_the_fastest_plan_that_can_run_is_chosen_and_of_equals_the_one_with_less_workspace():
    assert choose(ROWS)["id"] == 5


@pytest.mark.parametrize(("limit", "chosen"), [(0, 0), (99, 0), (100, 3), (2999, 3), (3000, 5), (10**12, 5)])
def test_a_limit_is_kept(limit, chosen):
    assert choose(ROWS, limit)["id"] == chosen


def test_of_plans_alike_the_earlier_one_is_chosen():
    assert choose([row(7, 1e-4, 8), row(3, 1e-4, 8), row(5, 1e-4, 8)])["id"] == 3


def test_where_nothing_fits_the_smallest_workspace_is_named():
    with pytest.raises(NoPlan, match=r"no plan fits into 99 bytes; the smallest workspace is 100 bytes"):
        choose(ROWS[1:], 99)


@pytest.mark.parametrize("rows", [[], ROWS[2:3]])
def test_where_nothing_runs_statuses_are_pointed_at(rows):
    for function in (choose, first_choice):
        with pytest.raises(NoPlan, match="statuses say why"):
            function(rows)


def test_a_negative_limit_is_refused():
    with pytest.raises(ValueError, match="limit_bytes is -1"):
        choose(ROWS, -1)


def test_the_first_choice_is_the_first_proposed_that_runs():
    unproposed = row(0, 1e-6, 0, proposed="")
    assert first_choice([unproposed, *ROWS[::-1][:-1]])["id"] == 1


def test_the_frontier_holds_what_limits_choose():
    for count in (1, 7, 40):
        rows = random_rows(count)
        if not any(r["status"] == "ok" for r in rows):
            continue
        chosen = []
        for limit in range(0, 300, 4):
            try:
                found = choose(rows, limit)
            except NoPlan:
                continue
            if found not in chosen:
                chosen.append(found)
        assert frontier(rows) == chosen


def test_full_precision_leaves_tensor_cores_out():
    assert [r["id"] for r in full_precision(ROWS)] == [0, 2, 3, 4]


def test_kinds_of_algorithms():
    assert [kind(r) for r in ROWS if r["status"] == "ok"] == [
        "multiply-adds",
        "tensor cores",
        "FFT",
        "Winograd",
        "tensor cores",
    ]
    fastest = fastest_by_kind([*ROWS, row(6, 5e-5, 0, numerical="TENSOR_CORE")])
    assert {name: found["id"] for name, found in fastest.items()} == {
        "multiply-adds": 0,
        "tensor cores": 6,
        "FFT": 3,
        "Winograd": 4,
    }


@pytest.mark.parametrize("engines", [True, False])
def test_what_is_kept_decides_as_the_whole_table_does(engines):
    for count in (5, 40, 200):
        rows = random_rows(count)
        if not any(r["status"] == "ok" for r in rows):
            continue
        few = kept(rows, engines=engines)
        assert first_choice(few) == first_choice(rows)
        assert frontier(few) == frontier(rows)
        assert frontier(full_precision(few)) == frontier(full_precision(rows))
        refused = [r for r in few if r["status"] != "ok"]
        assert len(refused) == min(KEPT_PER_STATUS, sum(r["status"] != "ok" for r in rows))
        assert len(few) <= KEPT_FASTEST + 4 * engines + 2 * 5 + 1 + KEPT_PER_STATUS
        assert kept(few, engines=engines) == few


def test_reduced_notes_are_those_of_tensor_cores():
    assert plan_table.REDUCED == ("TENSOR_CORE", "DOWN_CONVERT_INPUTS")
