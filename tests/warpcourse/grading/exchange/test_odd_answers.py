"""Answers of a student's process: random ones, by the thousand, of the right form and of the wrong one.

WARPLAB_EXAMPLES=10000 tries as many of each kind.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os

from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpcourse.grading.exchange import artefacts, numba_types
from warpcourse.grading.exchange.artefacts import ArtefactError
from warpcourse.grading.judge import cells, stand_ins, verdicts


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from([*"ifcbltdnag", "<f4", "C", "cuda"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text("ad"), inner),
    max_leaves=30,
)


# Values of the right form whose parts are odd: sizes, types, orders, text that is no base64.
SIZES = st.sampled_from([0, 1, 2, 3, 7, 255, 1 << 16, 1 << 31, 1 << 40, 1 << 47, 1 << 62, 1 << 63, -1, True, 1.5, "1"])
SHAPES = st.lists(SIZES, max_size=5) | st.lists(SIZES, min_size=16, max_size=33) | JSON
NUMBERS = st.sampled_from(["<f4", "<f8", ">i2", "|b1", "<c16", "|u1", "<f16", "O", "V8", ""])
FIELDS = st.tuples(st.sampled_from(["x", "y", "", "\ud800", "a" * 300]), SIZES, NUMBERS, SHAPES).map(list)
DTYPES = NUMBERS | st.builds(lambda size, parts: ["v", size, *parts], SIZES, st.lists(FIELDS, max_size=3)) | JSON
DATA = st.sampled_from(["", b64(b"1234"), b64(bytes(8)), b64(bytes(64)), b64(b"\2" * 24), "~", "=", "a"]) | JSON
ARRAYS = st.builds(lambda *parts: ["a", *parts], DTYPES, SHAPES, st.sampled_from(["C", "F", "A", 1]), DATA)
TEXTS = st.sampled_from(["0", "-1", "1" * 4001, "0x1p9999", "nan", "inf", "\ud800", "x" * 300]) | JSON
VALUES = st.recursive(
    ARRAYS
    | st.builds(lambda library, array: ["g", library, array], st.sampled_from(["cuda", "cp", "os"]), ARRAYS)
    | st.builds(lambda dtype, content: ["n", dtype, content], DTYPES, DATA)
    | st.builds(lambda tag, text: [tag, text], st.sampled_from("ifb"), TEXTS)
    | st.builds(lambda real, imaginary: ["c", real, imaginary], TEXTS, TEXTS)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: ["l", *parts])
        | st.lists(st.lists(inner, min_size=2, max_size=2), max_size=2).map(lambda pairs: ["d", *pairs])
    ),
    max_leaves=4,
)
thousands = settings(max_examples=int(os.environ.get("WARPLAB_EXAMPLES", "1000")))


@thousands
@given(JSON | VALUES)
def test_whatever_comes_is_read_or_refused(data):
    for decode in (artefacts.decode, numba_types.decode):
        with contextlib.suppress(ArtefactError):
            decode(data)


TYPES = (
    st.sampled_from(["float32", "bool", "none"])
    | st.lists(JSON, max_size=4).map(lambda x: ["tuple", *x])
    | (
        st.builds(
            lambda *parts: ["array", *parts], NUMBERS, SIZES, st.sampled_from("CFAX"), st.booleans(), st.booleans()
        )
    )
    | DTYPES.map(lambda dtype: ["record", dtype])
)
KINDS = st.sampled_from(
    ["value", "function", "kernel", "module", "opaque", "missing", "results", "raised", "ptx", "odd"]
)
ANSWERS = st.fixed_dictionaries(
    {"kind": KINDS},
    optional={
        "value": VALUES,
        "name": TEXTS,
        "type": TEXTS,
        "why": TEXTS,
        "plain": JSON,
        "blank": JSON,
        "language": st.sampled_from(["Numba", "CUDA C++"]) | JSON,
        "parameters": st.lists(st.sampled_from(["a", "b", "x y", ""]), max_size=3) | JSON,
        "signatures": st.lists(st.lists(TYPES | JSON, max_size=3), max_size=3) | JSON,
        "compiled": st.lists(st.lists(TYPES | JSON, min_size=2, max_size=2), max_size=2) | JSON,
        "signature": st.fixed_dictionaries(
            {"name": TEXTS, "parameters": st.lists(st.tuples(TEXTS, TEXTS, JSON, DTYPES, SIZES).map(list), max_size=3)}
        )
        | JSON,
        "classes": st.lists(st.sampled_from(["ValueError", "SystemExit", "KeyError", "x", "a b", 5]), max_size=3)
        | JSON,
        "message": TEXTS,
        "code": JSON,
        "results": st.lists(
            st.fixed_dictionaries({"kind": KINDS}, optional={"value": VALUES, "classes": JSON}), max_size=2
        ),
    },
)


def kernel_of(kind) -> dict:
    """Return the description of a kernel with one explicit signature, of one argument."""
    return {"kind": "kernel", "language": "Numba", "parameters": ["a"], "signatures": [[kind]]}


def fields(*parts) -> list:
    return ["record", ["v", 16, *([name, 0, dtype, []] for name, dtype in parts)]]


@thousands
@given(ANSWERS)
# What Numba has no type for; then what it has one for, though no kernel takes it.
@example(kernel_of(["record", ">i2"]))
@example(kernel_of(["record", ">c16"]))
@example(kernel_of(["array", ["record", ">f4"], 1, "C", True, True]))
@example(kernel_of(["tuple", ["tuple", ["record", ">u8"]]]))
@example(kernel_of(fields(("x", ">f8"))))
@example(kernel_of(["array", ["array", "float32", 1, "C", True, True], 1, "C", True, True]))
@example(kernel_of(fields(("", "<c16"))))
@example(kernel_of(fields(("\ud800", "<i2"), ("if", "<f4"))))
@example(kernel_of(["array", ["tuple"], 1, "C", True, True]))
def test_whatever_a_process_says_costs_its_own_test_only(answer):
    """A test that takes the answer for a number, a function and a kernel fails, or passes; the grader does not fail."""
    runner = cells.CellRunner(1000, 1 << 30)
    notebook = stand_ins.Notebook(lambda wishes: [answer] * len(wishes))
    for use in ("x == 1", "x(1)", "x + 1", "checks.examples(x, [({'a': 1}, 2)])"):
        cell = cells.TrustedCell("test", f"from warplab import checks\nassert {use}")
        outcome = runner.run(cell, notebook.fetch(["x"]), 100.0)
        verdict = verdicts.verdict(outcome, cell.source)
        json.dumps([verdict.message, verdict.detail, *verdict.traceback]).encode()
        assert verdict.kind == "" or verdict.kind in verdicts.SENTENCES
    runner.close()


def test_of_a_description_nothing_stays_but_what_is_read():
    """Five descriptions of 46 MB each made gigabytes in the judge."""
    hoard = [[]] * 10_000
    program = {
        "kind": "ptx",
        "ptx": "x",
        "entry": "e",
        "sources": {"a": "b", "c": hoard},
        "classes": hoard,
        "more": hoard,
    }
    kernel = kernel_of("float32") | {"more": hoard, "code": "1", "compiled": [[["float32"], program]]}
    for language in ("Numba", "CUDA C++"):
        answers = [
            kernel | {"language": language, "compiled": program if language != "Numba" else kernel["compiled"]}
        ] * 2
        notebook = stand_ins.Notebook(lambda wishes, answers=answers: [answers.pop() | {"more": len(answers)}])
        taken = notebook.fetch(["x"])["x"]
        (kept,) = taken._warplab_source.programs.values()
        assert kept == {"kind": "ptx", "ptx": "x", "entry": "e", "sources": {"a": "b"}, "classes": []}
        assert len(taken._warplab_source.described) == 32
        assert notebook.fetch(["x"])["x"] is taken
        assert notebook.redefined == set()  # what nobody reads does not make it another kernel


def test_what_no_definition_can_mean_is_not_called_another_definition():
    """Of an agent that altered each answer, the note said that the student had defined the kernel again."""
    kernel = kernel_of("float32") | {"language": "CUDA C++", "code": "1", "signatures": None}
    first = kernel | {"compiled": {"kind": "ptx", "ptx": "x", "entry": "e", "sources": {}}}
    for later, odd in (
        ({"kind": "broken", "why": "no answer"}, True),
        ({"kind": "value", "value": ["?"]}, True),
        (first | {"compiled": first["compiled"] | {"ptx": "y"}}, True),
        (first | {"code": "2"}, False),
        ({"kind": "opaque", "type": "object"}, False),
        ({"kind": "missing"}, False),
        (first, None),
    ):
        answers = [later, first]
        notebook = stand_ins.Notebook(lambda wishes, answers=answers: [answers.pop()])
        notebook.fetch(["x"])
        notebook.fetch(["x"])
        assert (notebook.odd, notebook.redefined) == ({"x"} if odd else set(), {"x"} if odd is False else set()), later
