"""The report of a session as files: JSON, JUnit's XML, SARIF 2.1.0."""

import inspect
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from warplab import simulator
from warplab.running.collected import Report

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def as_json(report: Report, what: str, exit_code: int) -> str:
    """Return the whole report, as `collected` describes it."""
    return json.dumps({"program": what, "exit_code": exit_code, **report}, indent=1) + "\n"


def as_junit(report: Report, what: str, exit_code: int) -> str:
    """Return one test case per kernel, which fails by the kernel's first defect that is not suppressed."""
    suite = ElementTree.Element("testsuite", name=f"warplab run {what}")
    defects = [defect for defect in report["defects"] if not defect["suppressed"]]
    names = dict.fromkeys((kernel["kernel"], kernel["file"]) for kernel in report["kernels"])
    names.update(dict.fromkeys((d["kernel"], d["kernel_file"]) for d in defects))
    alike = Counter(name for name, _ in names)
    failures = 0
    for name, file in names:
        path = _relative(file)
        title = f"{name} ({path})" if alike[name] > 1 else name or "launch"
        case = ElementTree.SubElement(suite, "testcase", name=title, classname=what, file=path)
        own = [defect for defect in defects if (defect["kernel"], defect["kernel_file"]) == (name, file)]
        failures += bool(own)
        for defect in own[:1]:
            case.set("line", str(defect["line"]))
            failure = ElementTree.SubElement(case, "failure", type=defect["error"], message=defect["what"])
            failure.text = "\n\n".join(_clean(d["message"]) for d in own)
    suite.set("tests", str(len(names)))
    suite.set("failures", str(failures))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    for element in suites.iter():
        element.attrib.update({name: _clean(value) for name, value in element.attrib.items()})
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def as_sarif(report: Report, what: str, exit_code: int) -> str:
    """Return the defects as results of one run, each at its kernel's line: what code scanning and editors show."""
    errors = sorted({defect["error"] for defect in report["defects"]})
    rules = [{"id": name, "shortDescription": {"text": _meaning(name)}} for name in errors]
    results = [_result(defect, errors.index(defect["error"]), what) for defect in report["defects"]]
    driver = {"name": "Warp Lab", "rules": rules}
    invocation = {"executionSuccessful": exit_code in (0, 1), "exitCode": exit_code}
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "results": results,
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(defect: Report, rule: int, what: str) -> dict[str, Any]:
    launched = defect["launched_at"] and _location(*defect["launched_at"])
    at = _location(defect["path"], defect["line"]) if os.path.isabs(defect["path"]) and defect["line"] else launched
    at = at or _location(what, 1)  # GitHub refuses a file in which one result has no place
    result: dict[str, Any] = {
        "ruleId": defect["error"],
        "ruleIndex": rule,
        "level": "note" if defect["suppressed"] else "error",  # GitHub reads no suppressions
        "message": {"text": defect["message"]},
        "locations": [at],
        # The same defect keeps its number when lines move.
        "partialFingerprints": {"warplab/v1": f"{defect['error']}:{defect['kernel']}:{defect['source']}"},
    }
    if launched and at is not launched:
        result["relatedLocations"] = [{**launched, "message": {"text": "launched here"}}]
    if defect["suppressed"]:
        result["suppressions"] = [{"kind": "external"}]
    return result


def _location(path: str, line: int) -> dict[str, Any]:
    relative = _relative(path)
    below = not os.path.isabs(relative)
    uri = {"uri": quote(relative), "uriBaseId": "%SRCROOT%"} if below else {"uri": Path(path).as_uri()}
    return {"physicalLocation": {"artifactLocation": uri, "region": {"startLine": line}}}


def _relative(path: str) -> str:
    """Return a path as hosts of repositories want it, from the repository's folder, or from here where there is none;
    `path` itself if it is not below."""
    here = Path.cwd()
    root = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    relative = os.path.relpath(path, root) if os.path.isabs(path) else path
    return path if relative.startswith("..") else Path(relative).as_posix()


def _meaning(name: str) -> str:
    found = inspect.getdoc(getattr(simulator, name, None)) or name
    return found.partition("\n\n")[0].replace("\n", " ")


def _clean(text: str) -> str:
    """Leave out what XML 1.0 cannot hold."""
    return "".join(c for c in text if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd")


FORMATS: dict[str, Callable[[Report, str, int], str]] = {"json": as_json, "junit": as_junit, "sarif": as_sarif}


def write(path: str, text: str) -> str:
    """Write a file, in a new folder where there is none yet. Return what is wrong, in a sentence, or nothing."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        return f"cannot be written to {path}: {error.strerror}"
    return ""
