"""Tables of profiles: numbers, rows, columns, source lines, HTML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

from tests.support.synthetic_profiles import FILE, Session, vector_multiply
from warplab.report import profile_report
from warplab.simulator.count.counters import COUNTERS, Counts
from warplab.text import tables

THIN = tables.THIN


def row(text: str, label: str) -> list[str]:
    """Return the cells of the row that starts with `label`."""
    (line,) = [line for line in text.splitlines() if line.startswith(label + "  ")]
    return line[len(label) :].split("  ")


def values(text: str, label: str) -> list[str]:
    return [cell.strip() for cell in row(text, label) if cell.strip()]


def test_numbers_and_metrics_of_a_launch():
    text = profile_report.text(vector_multiply())
    assert text.splitlines()[0].split() == ["vector_multiply", "in", "Nsight", "Compute"]
    assert values(text, "grid \N{MULTIPLICATION SIGN} block") == [f"4{THIN}096 \N{MULTIPLICATION SIGN} 256"]
    assert values(text, "warp instructions") == [f"458{THIN}752", "smsp__inst_executed.sum"]
    assert values(text, "global load requests")[0] == f"65{THIN}536"
    assert values(text, "sectors per load request")[0] == "4.00"
    assert values(text, "sectors per store request")[0] == "4.00"
    assert values(text, "load efficiency")[0] == "100.0 %"
    assert values(text, "warp efficiency")[0] == "100.0 %"
    assert values(text, "FP32 operations")[0] == f"1{THIN}048{THIN}576"
    assert values(text, "distinct bytes loaded") == [f"8{THIN}388{THIN}608", "dram__bytes_read.sum, with empty caches"]
    assert values(text, "distinct bytes stored")[0] == f"4{THIN}194{THIN}304"
    assert profile_report.NOTE.split(";")[0] in text.replace("\n", " ")


def test_values_are_aligned_at_the_right():
    lines = profile_report.text(vector_multiply()).split("\n\n")[0].splitlines()
    ends = {len(line[: line.index("  smsp")]) for line in lines if "  smsp" in line}
    assert len(ends) == 1


def test_rows_without_counts_are_left_out():
    text = profile_report.text(vector_multiply())
    for absent in ("shared", "local", "atomics", "barriers", "divergent", "FP16", "FP64", "GPU"):
        assert absent not in text
    everything = vector_multiply(counts=Counts(*range(1, 1 + len(COUNTERS))))
    full, web = profile_report.text(everything), profile_report.html(everything)
    for number, counter in enumerate(COUNTERS, 1):
        assert values(full, counter.label)[0] == str(number)
        assert counter.ncu in full
        assert counter.ncu in web


def test_matrix_products_and_kinds_of_instruction():
    mix = {"load": 100, "integer": 200, "FP32": 100, "store": 0}
    counts = Counts(warp_instructions=400, thread_instructions=400, tensor_operations=6)
    launch = vector_multiply(counts=counts, mix=mix, tensor_operations={"m16n8k16.f32.f16": 2, "m16n8k8.f32.tf32": 1})
    text = profile_report.text(launch)
    assert values(text, "products m16n8k16.f32.f16") == ["2"]
    assert values(text, "products m16n8k8.f32.tf32") == ["1"]
    assert "Warp instructions: integer 50 %, FP32 25 %, load 25 %." in text
    assert "Warp instructions" not in profile_report.text(vector_multiply())
    both = profile_report.text(Session([launch, replace(launch, kernel="second")]))
    assert f"Warp instructions of second, {profile_report.size(launch)}: integer 50 %" in both


def test_a_kernel_that_touches_no_memory_has_no_memory_rows():
    text = profile_report.text(vector_multiply(counts=Counts(warp_instructions=4, thread_instructions=64), lines={}))
    assert "sectors a" not in text
    assert values(text, "warp efficiency")[0] == "50.0 %"


def test_time_and_name_of_the_gpu_only_where_measured():
    timed = vector_multiply(gpu_seconds=1.165e-3, gpu_name="NVIDIA H100 80GB HBM3")
    text = profile_report.text(timed)
    assert values(text, "time on the GPU") == ["1.17 ms"]
    assert values(text, "GPU") == ["NVIDIA H100 80GB HBM3"]
    three = Session([replace(timed, gpu_seconds=s) for s in (1e-3, 9e-3, 2e-3)])
    assert values(profile_report.text(three), "time on the GPU") == ["2.00 ms (median of 3)"]


def test_source_lines_and_the_heaviest():
    text = profile_report.text(vector_multiply())
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()[:1].isdigit()}
    assert list(lines) == ["2", "3", "4"]
    assert "if (i < n)" in lines["3"]
    assert lines["4"].count(tables.MARK) == 2
    assert tables.MARK not in lines["2"] + lines["3"]
    assert f"393{THIN}216" in lines["4"]
    assert lines["4"].endswith("4.00")


def test_bank_conflicts_by_source_line():
    shared = {3: Counts(warp_instructions=2, shared_store_requests=1, shared_store_wavefronts=1)}
    shared[4] = Counts(warp_instructions=2, shared_load_requests=1, shared_load_conflicts=31, shared_atomic_conflicts=2)
    shared[5] = Counts(warp_instructions=2)
    text = profile_report.text(vector_multiply(lines={(FILE, n): c for n, c in shared.items()}))
    assert "bank conflicts" in text
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()[:1].isdigit()}
    assert lines["3"].split()[-1] == "0"
    assert lines["4"].endswith(f"33 {tables.MARK}")
    assert lines["5"].split()[-2:] == ["2", tables.MARK]  # no access to shared memory, so no number
    assert "bank conflicts" not in profile_report.text(vector_multiply())


def test_lines_without_source_text_are_still_counted():
    launch = vector_multiply(sources={})
    assert f"131{THIN}072" in profile_report.text(launch)
    launch = vector_multiply(sources={FILE: "one line only"})
    assert f"131{THIN}072" in profile_report.html(launch)


def test_counts_without_a_line_are_no_source_line():
    launch = vector_multiply(lines={("", 0): Counts(warp_instructions=1)})
    assert "source" not in profile_report.text(launch)


def test_equal_launches_share_a_column_and_up_to_four_stand_side_by_side():
    small = vector_multiply(blocks=2, threads=64)
    text = profile_report.text(Session([vector_multiply(), small, small]))
    assert values(text, "global load requests")[:2] == [f"65{THIN}536", "8"]
    assert "vector_multiply (\N{MULTIPLICATION SIGN} 2)" in text
    assert text.count("in Nsight Compute") == 1
    five = Session([vector_multiply(blocks=b, threads=64) for b in (1, 2, 3, 4, 5)])
    assert profile_report.text(five).count("in Nsight Compute") == 5
    assert profile_report.html(five).count("in Nsight Compute") == 5
    assert profile_report.text(Session(five.launches[:4])).count("in Nsight Compute") == 1


def test_an_empty_profile_says_so():
    assert profile_report.text(Session([])) == profile_report.EMPTY
    assert profile_report.EMPTY in profile_report.html(Session([]))


def parse(html: str) -> ET.Element:
    return ET.fromstring(html)


def test_html_is_well_formed_escaped_and_short():
    nasty = '<script>alert("&")</script>'
    launch = vector_multiply(kernel=nasty, gpu_seconds=1.0, gpu_name=nasty)
    launch.lines = {(nasty, line): counts for (_, line), counts in launch.lines.items()}
    launch.lines["other.cu", 1] = Counts(warp_instructions=1)
    launch.sources = {nasty: "\n".join([nasty] * 5)}
    html = profile_report.html(launch)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4
    root = parse(html)
    assert nasty in [cell.text for cell in root.iter("th")]
    assert nasty in [cell.text for cell in root.iter("td")]
    assert len(profile_report.html(vector_multiply())) < 5000


def test_tables_have_captions_and_their_headers_say_that_they_are_of_columns():
    root = parse(profile_report.html(vector_multiply()))
    assert [one.text for one in root.iter("caption")] == ["Counters by launch", "vector_multiply by source line"]
    assert {one.get("scope") for one in root.iter("th")} == {"col"}


def test_html_takes_its_colours_from_the_page():
    html = profile_report.html(vector_multiply())
    assert "color:inherit" in html
    assert "#" not in html
    assert "rgb" not in html
    marked = [cell.text for cell in parse(html).iter("td") if "h" in cell.get("class", "").split()]
    assert marked == [f"262{THIN}144", f"393{THIN}216"]


def test_html_and_text_show_the_same_cells():
    launch = vector_multiply()
    text = profile_report.text(launch)
    cells = [cell.text for cell in parse(profile_report.html(launch)).iter("td") if cell.text]
    assert len(cells) > 50
    assert all(cell.strip() in text for cell in cells)
