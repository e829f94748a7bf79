"""The timed launches, their groups, and the error of estimates."""

from __future__ import annotations

import json
import re

import pytest

from evidence.estimates import error as estimate_error
from evidence.estimates import publish, register_banks, timed_work
from evidence.estimates.error import Result, summary, table
from evidence.estimates.of_labs import collectives
from evidence.estimates.timed_calls import Part, row
from tests.support.estimate_model import model_hash
from warplab.compile.nvrtc import compile_cubin
from warplab.estimating.work import Work

CHEAP = 2  # launches of labs that the tests simulate
MOST_ERROR = 0.15  # of these, as measured


@pytest.fixture(scope="module")
def calls():
    return timed_work.timed()


def test_every_launch_is_in_one_group(calls) -> None:
    sizes = {name: len([one for one in calls if one.group == name]) for name in timed_work.GROUPS}
    assert sum(sizes.values()) == len(calls)
    assert min(sizes.values()) >= 39


def test_a_kernel_with_all_its_launches_is_in_one_half(calls) -> None:
    unseen = [one for one in calls if one.group != timed_work.LABS]
    kernels = [{one.kind for one in unseen if one.group == name} for name in (timed_work.OPEN, timed_work.FIRST)]
    assert not kernels[0] & kernels[1]
    assert min(map(len, kernels)) >= 25


def test_every_launch_has_a_recorded_time_on_the_card(calls) -> None:
    for card in timed_work.CARDS:
        for name in timed_work.GROUPS:
            for one in timed_work.group(name, calls, card):
                assert one.seconds(card) > 0, one.name
                assert re.match(rf"NVIDIA {card}\b.*, \d{{4}}-\d\d-\d\d$", one.recorded_on(card))
    labs = timed_work.group(timed_work.LABS, calls)
    assert len(labs) >= 231
    assert {one.kind for one in labs} == {f"lab {number:02}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 11)}
    assert {one.kind for one in timed_work.group(timed_work.LABS, calls, timed_work.OTHER)} >= {"lab 02", "lab 10"}
    assert len(timed_work.group(timed_work.OPEN, calls, timed_work.OTHER)) >= 101


def test_every_launch_of_a_lab_has_parts(calls) -> None:
    for one in (one for one in calls if one.group == timed_work.LABS):
        parts = one.parts()
        assert parts
        assert all(isinstance(part, Part) and part.blocks > 0 and part.work > 0 for part in parts), one.name


SMALL_ALONE = [one for one in collectives.LAUNCHES if one.want.nbytes <= 2**20]


@pytest.mark.parametrize("one", SMALL_ALONE, ids=lambda one: one.name)
def test_a_rank_of_lab_10_alone_has_all_that_it_waits_for(one) -> None:
    _, right = collectives.first_call(one)
    assert right


def test_a_row_that_is_not_there_is_an_error() -> None:
    find = row(n=4)
    assert find([{"n": 2, "seconds": 1.0}, {"n": 4, "seconds": 2.0}]) == 2.0
    with pytest.raises(LookupError, match="0 rows of the recording"):
        find([{"n": 2, "seconds": 1.0}])


@pytest.fixture(scope="module")
def simulated(calls, tmp_path_factory):
    """Simulate some launches of labs with few blocks."""
    patch = pytest.MonkeyPatch()
    patch.setattr(timed_work, "KEPT", tmp_path_factory.mktemp("kept"))

    def lanes(one) -> int:
        parts = one.parts()
        sizes = [part.grid if isinstance(part.grid, int) else 1 << 20 for part in parts]
        return sum(sizes) * 1024 if len(parts) > 1 else max(sizes)

    cheap = sorted(timed_work.group(timed_work.LABS, calls), key=lanes)
    cheap = [one for one in cheap if "size" in one.name][:CHEAP]
    yield [(one, timed_work.work(one), timed_work.work(one)) for one in cheap]
    patch.undo()


def test_what_was_simulated_is_kept(simulated) -> None:
    for _, first, again in simulated:
        assert first == [Work.from_json(json.loads(json.dumps(part.as_json()))) for part in again]


def test_a_sample_of_the_labs_is_as_near_as_measured(simulated) -> None:
    for one, *_ in simulated:
        result = estimate_error.result(one)
        assert abs(result.error) <= MOST_ERROR, result
        assert abs(result.error) < abs(result.bound_error)


RESULTS = [
    Result("lab 01, near", 1e-3, 1.1e-3, 0.9e-3, "DRAM", "NVIDIA H100, 2026-11-21", "lab 01"),
    Result("lab 01, far", 1e-3, 2e-3, 0.1e-3, "latency", "NVIDIA H100, 2026-11-21", "lab 01"),
]


def test_the_summary_by_hand() -> None:
    assert summary([r.error for r in RESULTS]) == "mean absolute error 55.0 %, 1 of 2 within 15 %, 1 of 2 within 30 %"


def test_the_table_shows_each_launch() -> None:
    text = table(RESULTS).text()
    assert re.search(r"lab 01, near +1\.00 ms +1\.10 ms +\+10 % +DRAM +900 µs +-10 %", text)


def test_the_page_and_the_label_give_the_error_of_what_is_held_out() -> None:
    groups = {(name, card): [] for card in timed_work.CARDS for name in timed_work.GROUPS}
    for name, found in zip(
        timed_work.GROUPS,
        (RESULTS[:1], RESULTS[:1], RESULTS[1:], RESULTS[1:], RESULTS, RESULTS, RESULTS, RESULTS[:1]),
        strict=True,
    ):
        groups[name, timed_work.CARD] = found
    groups[timed_work.THIRD, timed_work.OTHER] = RESULTS[1:]
    readings = {
        (name, "H100"): of
        for name, of in zip(
            ("first", "second", "third", "sixth"), (RESULTS[1:], RESULTS, RESULTS[:1], RESULTS), strict=True
        )
    }
    readings["sixth", "H200"] = RESULTS[:1]
    page = publish.page(publish.PAGE.read_text(encoding="utf-8"), groups, readings, missing=3)
    assert "| sixth set, at its first reading | H100 | 2 | 55.0 % | 50 % | 50 % |" in page
    assert "| sixth set, at its first reading | H200 | 1 | 10.0 % | 100 % | 100 % |" in page
    assert "| sixth set, now, seen | H100 | 1 | 10.0 % | 100 % | 100 % |" in page
    assert "| third set, now, seen | H200 | 1 | 100.0 % | 0 % | 0 % |" in page
    assert "| second set, at its first reading | H100 | 2 | 55.0 % | 50 % | 50 % |" in page
    assert "| first set, held out, at its first reading | H100 | 1 | 100.0 % | 0 % | 0 % |" in page
    assert "| first set, open, seen | H100 | 1 | 10.0 % | 100 % | 100 % |" in page
    assert "on an H100 the first is not reached (55.0 %), the second not reached (1 of 2)" in page
    assert "3 of the unseen launches have not been recorded" in page
    assert publish.error(readings)["H200"]["mean_percent"] == 10.0
    assert publish.error(readings)["H100"] == {
        "model": model_hash(),
        "device": "NVIDIA H100",
        "date": "2026-11-21",
        "launches": 2,
        "mean_percent": 55.0,
        "within_15": 1,
        "within_30": 1,
        "limits": {
            "DRAM": {"launches": 1, "mean_percent": 10.0},
            "latency": {"launches": 1, "mean_percent": 100.0},
        },
    }


def test_kernels_before_and_after_the_model_was_changed_for_them() -> None:
    def of(kernel: str, estimated: float) -> Result:
        return Result("", 1.0, estimated, 1.0, "DRAM", "", kernel)

    first, now = [of("gather", 1.5), of("adam", 1.1)], [of("gather", 1.25), of("adam", 1.1)]
    assert publish._changed(first, now) == [["`gather`", "50.0 %", "25.0 %"]]


def test_the_first_readings_are_kept() -> None:
    """As published on 2026-11-23 and 2026-11-27, whatever the model says now."""
    found = [summary([r.error for r in publish.reading(*key)]) for key in publish.READINGS]
    first, second, third, h200, *later = found
    assert first == "mean absolute error 14.0 %, 62 of 92 within 15 %, 81 of 92 within 30 %"
    assert second == "mean absolute error 10.7 %, 90 of 110 within 15 %, 102 of 110 within 30 %"
    assert third == "mean absolute error 11.4 %, 28 of 39 within 15 %, 37 of 39 within 30 %"
    assert h200 == "mean absolute error 11.3 %, 28 of 39 within 15 %, 37 of 39 within 30 %"
    assert later == [
        "mean absolute error 28.5 %, 32 of 48 within 15 %, 35 of 48 within 30 %",
        "mean absolute error 26.4 %, 28 of 48 within 15 %, 34 of 48 within 30 %",
        "mean absolute error 12.5 %, 34 of 48 within 15 %, 44 of 48 within 30 %",
        "mean absolute error 13.3 %, 31 of 48 within 15 %, 44 of 48 within 30 %",
        "mean absolute error 6.8 %, 43 of 48 within 15 %, 47 of 48 within 30 %",
        "mean absolute error 9.1 %, 40 of 48 within 15 %, 47 of 48 within 30 %",
    ]


def test_nothing_to_show_is_an_error(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["estimate_error", "--match", "no such launch"])
    with pytest.raises(SystemExit):
        estimate_error.main()
    assert "no launch has 'no such launch' in its name" in capsys.readouterr().err


def test_the_published_tables_and_the_labels_figures_agree() -> None:
    """All were written from one reading of what was held out."""
    text = publish.PAGE.read_text(encoding="utf-8")
    for card, known in json.loads(publish.ERROR.read_text()).items():
        share = round(100 * known["within_30"] / known["launches"])
        figures = rf"{known['launches']} \| {known['mean_percent']} % \| \d+ % \| {share} %"
        assert re.search(rf"\| sixth set, at its first reading \| {card} \| {figures} \|", text)
    table = text.partition("<!-- errors -->")[2]
    rows = re.findall(r"\n\| ((?:\w+ set|labs)[^|]*) \| (H\d+) \| (\d+) \| ([\d.]+) %", table)
    names = {
        "sixth set, now, seen": timed_work.SIXTH,
        "fifth set, now, seen": timed_work.FIFTH,
        "fourth set, now, seen": timed_work.FOURTH,
        "third set, now, seen": timed_work.THIRD,
        "second set, now, seen": timed_work.SECOND,
        "first set, held out, now, seen": timed_work.FIRST,
        "first set, open, seen": timed_work.OPEN,
        "labs 01 to 08, 10 and 11, published before, seen": timed_work.LABS,
    }
    means: dict[tuple[str, str], list[float]] = {}
    for one in publish.kept():
        error = abs(float(one["estimate_us"]) / float(one["recorded_us"]) - 1)
        means.setdefault((one["group"], one["card"]), []).append(error)
    now = {(names[name], card): (int(n), float(mean)) for name, card, n, mean in rows if name in names}
    assert set(now) == set(means)
    for key, errors in means.items():
        number, mean = now[key]
        assert len(errors) == number
        assert 100 * sum(errors) / number == pytest.approx(mean, abs=0.2)  # the file has three digits of each time


def test_the_estimates_of_large_products_are_nearly_all_too_short() -> None:
    """As lesson 04 says."""
    large = re.compile(r"lab 04, \w+, (?:4096|8192) cubed")
    errors = [int(row["error_percent"]) for row in publish.kept() if large.fullmatch(row["launch"])]
    assert len(errors) == 14
    assert sum(error <= 0 for error in errors) >= 12


def test_the_published_ranking_is_that_of_the_published_times() -> None:
    labs = [row for row in publish.kept() if (row["group"], row["card"]) == ("labs", "H100")]
    told = publish.ranking([(r["launch"], float(r["recorded_us"]), float(r["estimate_us"])) for r in labs])
    assert f"<!-- ranking -->\n{told}\n<!-- /ranking -->" in publish.PAGE.read_text(encoding="utf-8")


def test_the_page_gives_the_error_of_lab_10() -> None:
    rows = [row for row in publish.kept() if row["launch"].startswith("lab 10, ")]
    errors = {row["launch"]: abs(float(row["estimate_us"]) / float(row["recorded_us"]) - 1) for row in rows}
    fenced = [error for name, error in errors.items() if "forward" in name]
    others = [error for name, error in errors.items() if "forward" not in name]
    mean, rest = (100 * sum(of) / len(of) for of in (errors.values(), others))
    text = " ".join(publish.PAGE.read_text(encoding="utf-8").split())
    assert f"{len(errors)} launches, off by {mean:.1f} %" in text
    least, most = 100 * min(fenced), 100 * max(fenced)
    assert f"in every slice, by {least:.0f} to {most:.0f} %, the others by {rest:.1f} %" in text


def test_the_page_gives_the_clocks_of_multiply_adds_by_their_registers() -> None:
    record = json.loads(register_banks.RECORD.read_text())
    text = " ".join(publish.PAGE.read_text(encoding="utf-8").split())
    assert f"{record['device']}, {record['date']}; [register_banks.json]" in text
    rows = [(row["clocks"]["4"], row["three"], row["kept"]) for row in record["rows"] if row["flow"] != "square"]
    assert {f"{c:.2f} {kept:.0%}" for c, three, kept in rows if kept > 0.9} == {"1.03 96%"}
    assert {f"{c:.2f}" for c, three, kept in rows if kept < 0.9 and not three} == {"1.44"}
    conflicts = [row for row in rows if row[1]]
    least, most = ([f(column) for column in zip(*conflicts, strict=True)] for f in (min, max))
    assert (
        f"{least[0]:.2f} to {most[0]:.2f} where in {100 * least[1]:.0f} to {100 * most[1]:.0f} % all three do" in text
    )
    for few in ("takes 1.03 clocks for one where 96 % keep", "1.44 where 22 to 26 % keep one"):
        assert few in text


def test_the_multiply_adds_of_the_sweep_are_read_from_machine_code() -> None:
    assert register_banks.read(compile_cubin(register_banks.source("rows", 1), "flow.cu", 90))["kept"] > 0.9


def test_the_ports_of_registers_give_the_clocks_of_the_sweep() -> None:
    """What was published of other cards, with nothing fitted: as far off as measured."""
    rows = json.loads(register_banks.RECORD.read_text())["rows"]
    off = [
        register_banks.by_ports(compile_cubin(register_banks.source(row["flow"], row["seed"]), "flow.cu", 90))
        / row["clocks"]["4"]
        - 1
        for row in rows
    ]
    assert sum(map(abs, off)) / len(off) < 0.022
    assert max(map(abs, off)) < 0.08


def test_the_ranking_by_hand() -> None:
    times = ((1.0, 2.0), (2.0, 1.0), (3.0, 3.0), (3.1, 2.9))  # one pair is swapped, the last is too near to count
    told = publish.ranking(
        [(f"lab 01, k{n}, n = 4", *pair) for n, pair in enumerate(times)] + [("lab 01, alone", 1, 2)]
    )
    assert "Of 5 pairs" in told
    assert "4 in the right order (4 kernels, 1 tasks)" in told
    assert "| lab 01, n = 4 | 4 | 0.60 | 4 of 5 |" in told
