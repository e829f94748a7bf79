"""The page of public programs says what was recorded; nothing here needs the published programs."""

from __future__ import annotations

import json

import pytest

from evidence.public_programs import run as public_programs
from evidence.public_programs.samples import Code, Findings, Program, by_source


def test_the_page_is_up_to_date():
    record = json.loads(public_programs.RECORD.read_text(encoding="utf-8"))
    page = public_programs.PAGE.read_text(encoding="utf-8")
    assert page == public_programs.page(record), "run: python -m evidence.public_programs.run --page"


def test_the_record_is_of_the_programs_that_there_are():
    record = json.loads(public_programs.RECORD.read_text(encoding="utf-8"))
    recorded = {source: [p["name"] for p in of_it["programs"]] for source, of_it in record["sources"].items()}
    assert recorded == {source: [p.name for p in programs] for source, programs in by_source().items()}
    assert all(len(of_it["commit"]) == 40 for of_it in record["sources"].values())
    for of_it in record["sources"].values():
        for program in of_it["programs"]:
            for item in program["found"]:
                if item["kind"] == "reported":
                    assert (program["name"], item["kernel"]) in public_programs.READ


SUM = """
__global__ void sum(float* out, const float* in) {
    __shared__ float s[64];
    s[threadIdx.x] = in[threadIdx.x];
    BARRIER;
    out[threadIdx.x] = s[63 - threadIdx.x];
}
int main() { return 0; }
"""


@pytest.mark.parametrize(("barrier", "kinds"), [("__syncthreads()", []), ("", ["reported"]), ("x", ["fails"])])
def test_a_program_is_cut_out_run_and_judged(barrier, kinds, monkeypatch):
    from warplab.dropin import cupy as cp

    def run(code: Code) -> None:
        data, out = cp.arange(64, dtype="f4"), cp.zeros(64, "f4")
        code.kernel("sum")((1,), (64,), (out, data))
        assert out.get().tolist() == data.get()[::-1].tolist()

    monkeypatch.setattr(public_programs, "_git", lambda *arguments: SUM)
    program = Program("someone/something", "sum", ("sum.cu",), "sum", run, f"#define BARRIER {barrier}")
    found = public_programs._run(program, "nowhere")
    assert [item["kind"] for item in found] == kinds
    if kinds == ["reported"]:
        assert found[0]["error"] == "DataRace"
        record = {"date": "2026-01-01", "sources": {"someone/something": {"commit": "0" * 40, "date": "2026-01-01"}}}
        record["sources"]["someone/something"]["programs"] = [{"name": "sum", "kernels": "sum", "found": found}]
        page = public_programs.page(record)
        assert "0 of the 1 programs" in page
        assert "**sum** (`sum`, someone/something), DataRace: race:" in page


def test_findings_of_several_kernels():
    found = Findings([("a", ValueError("one\ntwo")), ("b", AssertionError(""))])
    assert str(found) == "a: one; b: "
