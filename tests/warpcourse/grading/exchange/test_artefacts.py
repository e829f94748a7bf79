"""Plain data between processes that do not trust each other, and what stands for a student's names."""

from __future__ import annotations

import base64
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from warpcourse.grading.exchange import artefacts, numba_types
from warpcourse.grading.exchange.artefacts import ArtefactError, ArtefactLimits
from warpcourse.grading.judge import stand_ins
from warpcourse.grading.student import agent
from warplab import checks
from warplab.compile.nvrtc import compile_cuda

STRUCTURE = np.dtype({"names": ["x", "n"], "formats": ["<f4", ("<i2", (3,))], "offsets": [0, 8], "itemsize": 16})
DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", ">f4", ">i8"]

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary()
    | st_numpy.arrays(st.sampled_from(DTYPES).map(np.dtype), st_numpy.array_shapes(min_dims=0, min_side=0))
    | st_numpy.from_dtype(np.dtype("f4")),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text("ab") | st.integers(), inner),
    max_leaves=20,
)


def there_and_back(value, **options):
    return artefacts.decode(artefacts.loads(json.dumps(artefacts.encode(value, **options))))


def same(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, float):
        return math.isnan(b) if math.isnan(a) else a.hex() == b.hex()
    return a == b


@given(plain)
def test_plain_data_comes_back_as_it_was(value):
    assert same(there_and_back(value), value)


def test_arrays_come_back_as_they_were():
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    back = there_and_back([fortran, fortran[:, ::2], np.ones(3, STRUCTURE), np.zeros((0, 4), "i2")])
    assert back[0].flags.f_contiguous
    assert not back[0].flags.c_contiguous
    assert np.array_equal(back[1], fortran[:, ::2])
    assert back[2].dtype == STRUCTURE
    assert back[3].shape == (0, 4)
    assert all(array.flags.writeable and array.flags.owndata for array in back)
    assert there_and_back(np.ones(2, STRUCTURE)[0]) == np.ones(2, STRUCTURE)[0]


def test_device_arrays_come_back_on_the_device():
    from warplab import cp, cuda

    values = np.arange(5, dtype=np.float32)
    numba, cupy = there_and_back([cuda.to_device(values), cp.asarray(values)])
    assert np.array_equal(numba.copy_to_host(), values)
    assert np.array_equal(cp.asnumpy(cupy), values)


class OwnList(list):
    pass


class EqualsEverything:
    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (EqualsEverything(), "a EqualsEverything cannot be handed over"),
        (OwnList([1]), "a OwnList cannot"),
        (np.ma.masked_array([1.0]), "a MaskedArray cannot"),
        (np.array([print], object), "an array of object cannot"),
        (np.array(["a"]), "an array of <U1 cannot"),
        (np.longdouble(1), "an array of"),
        ({1, 2}, "a set cannot"),
        (lambda: 1, "a function cannot"),
        (range(3), "a range cannot"),
        (1 << 50_000, "an integer of more than"),
    ],
    ids=range(10),
)
def test_what_cannot_be_handed_over(value, message):
    with pytest.raises(ArtefactError, match=message):
        artefacts.encode([value])


def test_limits_hold_on_both_sides():
    small = ArtefactLimits(bytes=1000, items=50, depth=3, text=4000)
    deep = [[[[[]]]]]
    for value in (np.zeros(1001, np.int8), "x" * 1001, [0] * 51, deep, [b"1" * 600, b"2" * 600]):
        with pytest.raises(ArtefactError):
            artefacts.encode(value, small)
        with pytest.raises(ArtefactError):
            artefacts.decode(artefacts.encode(value), small)
    with pytest.raises(ArtefactError, match="more than 4,000 characters"):
        artefacts.loads("[" * 5000, small)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


HOSTILE = [
    1,
    1.5,
    {},
    {"a": 1},
    [],
    [1],
    [[]],
    ["x"],
    ["value", 1],
    ["__class__", 1],
    ["_numbers", "<f4", [], "C", ""],
    ["i"],
    ["i", 1],
    ["i", "1", "2"],
    ["i", "0x10"],
    ["i", "1_0"],
    ["i", "٣"],
    ["i", "9" * 100_000],
    ["f", "one"],
    ["f", "0x1p" + "9" * 100_000],
    ["f", 1.0],
    ["c", "0x1p+0"],
    ["b", "~~~~"],
    ["b", [1]],
    ["d", 1],
    ["d", ["a"]],
    ["d", [["l"], None]],  # a list is no key
    ["d", [["a", "<f4", [1], "C", b64(b"1234")], None]],
    ["n", "<f4", b64(b"12345678")],
    ["n", "O", b64(b"12345678")],
    ["a", "<f4", [2], "C", b64(b"1234")],
    ["a", "<f4", [-1], "C", ""],
    ["a", "<f4", [1 << 60], "C", ""],
    ["a", "<f4", [1 << 40, 1 << 40, 0], "A", ""],
    ["a", "<f8", [0, 1 << 47, 1 << 47], "C", ""],
    ["a", "<f8", [0, 1 << 62], "F", ""],
    ["g", "cuda", ["a", "<f8", [1 << 47, 0, 1 << 47], "C", ""]],
    ["a", ["v", 8, ["x", 0, "<f4", [0, 1 << 47, 1 << 47]]], [1], "C", b64(b"12345678")],
    ["a", "<f4", [True], "C", b64(b"1234")],
    ["a", "<f4", [0] * 40, "C", ""],
    ["a", "<f4", "1", "C", b64(b"1234")],
    ["a", "|O", [1], "C", b64(b"12345678")],
    ["a", "<U2", [1], "C", b64(b"12345678")],
    ["a", "|V8", [1], "C", b64(b"12345678")],
    ["a", "<M8[s]", [1], "C", b64(b"12345678")],
    ["a", "f4,O", [1], "C", b64(b"12345678")],
    ["a", "|b1", [1], "C", b64(b"\2")],
    ["a", ["v", 8, ["x", 0, "|O", []]], [1], "C", b64(b"12345678")],
    ["a", ["v", 8, ["x", 6, "<f4", []]], [1], "C", b64(b"12345678")],
    ["a", ["v", 8, ["x", -4, "<f4", []]], [1], "C", b64(b"12345678")],
    ["a", ["v", 1 << 40, ["x", 0, "<f4", []]], [0], "C", ""],
    ["a", ["v", 8, ["x", 0, "<f4", []], ["x", 4, "<f4", []]], [1], "C", b64(b"12345678")],
    ["a", ["v", 8, ["x", 0, "|b1", []]], [1], "C", b64(b"\7" + b"1234567")],
    ["a", ["v", 8, ["x", 0, ["v", 8, ["y", 0, ["v", 8, ["z", 0, ["v", 8, ["w", 0, ["v", 8]]]]]]]]], [0], "C", ""],
    ["g", "os", ["a", "<f4", [1], "C", b64(b"1234")]],
    ["g", "cuda", ["i", "1"]],
]


@pytest.mark.parametrize("data", HOSTILE, ids=lambda data: json.dumps(data)[:40])
def test_hostile_data_is_refused(data):
    for wrapped in (data, ["l", data], ["d", ["a", data]]):
        with pytest.raises(ArtefactError):
            artefacts.decode(artefacts.loads(json.dumps(wrapped)))


@pytest.mark.parametrize("text", ["", "[", "nul", "NaN", "[Infinity]", "[" * 100_000, "1" * 100_000, 5, b"[]", None])
def test_hostile_text_is_refused(text):
    with pytest.raises(ArtefactError):
        artefacts.loads(text)


def test_text_that_no_file_could_hold_is_mended():
    assert artefacts.decode(artefacts.loads('"a\\ud800b"')) == "a?b"


# -- types of arguments --------------------------------------------------------------------------------------


def test_numba_types_come_back_as_they_were():
    from numba.cuda import types
    from numba.cuda.np.numpy_support import from_dtype

    kinds = [
        types.boolean,
        types.int64,
        types.float16,
        types.complex64,
        types.Array(types.float32, 1, "C"),
        types.Array(types.int8, 3, "F", readonly=True),
        types.Array(types.boolean, 2, "A"),
        types.UniTuple(types.int64, 3),
        types.Tuple([types.int32, types.float64]),
        from_dtype(STRUCTURE),
    ]
    for kind in kinds:
        assert numba_types.decode(json.loads(json.dumps(numba_types.encode(kind)))) == kind
    with pytest.raises(ArtefactError):
        numba_types.encode(types.unicode_type)
    for hostile in (
        "none",
        "pyobject",
        ["array"],
        ["tuple"] * 100,
        ["record", "O"],
        ["array", "x", 1, "C", True, True],
    ):
        with pytest.raises(ArtefactError):
            numba_types.decode(hostile)


# -- agent and stand-ins -------------------------------------------------------------------------------------


class Talk:
    """The agent's answers about a namespace, through JSON, and how many requests there were."""

    def __init__(self, namespace: dict) -> None:
        self.namespace, self.requests = namespace, 0
        self.notebook = stand_ins.Notebook(self.ask)

    def ask(self, wishes):
        self.requests += 1
        return json.loads(agent.respond(json.dumps({"do": wishes}), self.namespace))["done"]

    def fetch(self, name: str):
        return self.notebook.fetch([name]).get(name)


def lying(**answer) -> object:
    """The stand-in for `x` when the process says `answer` of it."""
    return stand_ins.Notebook(lambda wishes: [answer] * len(wishes)).fetch(["x"]).get("x")


def test_values_are_fresh_copies():
    talk = Talk({"a": np.arange(3), "n": 7, "nested": {"k": [1, (2.5, None)]}})
    first = talk.fetch("a")
    first[0] = 99
    assert talk.namespace["a"][0] == 0
    assert talk.fetch("a")[0] == 0
    assert talk.fetch("n") == 7
    assert talk.fetch("nested") == {"k": [1, (2.5, None)]}
    assert talk.notebook.fetch(["missing", "n"]) == {"n": 7}


def test_functions_answer_where_they_are():
    def spoil(x):
        x[:] = 0
        return x

    def fail(x):
        raise KeyError(x)

    class OwnError(ValueError):
        pass

    def own(x):
        raise OwnError("a\ud800b")

    talk = Talk({"spoil": spoil, "fail": fail, "own": own, "double": lambda x: 2 * x, "leave": lambda: exit(3)})
    x = np.ones(3)
    assert np.array_equal(talk.fetch("spoil")(x), np.zeros(3))
    assert np.array_equal(x, np.ones(3))
    with pytest.raises(KeyError, match="'a'"):
        talk.fetch("fail")("a")
    with pytest.raises(ValueError, match=r"a\?b") as caught:
        talk.fetch("own")(1)
    assert type(caught.value).__name__ == "OwnError"
    with pytest.raises(Exception, match="3"):
        talk.fetch("leave")()
    assert talk.fetch("double")(x=4) == 8


def test_a_table_of_examples_is_one_request():
    talk = Talk({"double": lambda x: 2 * x})
    double = talk.fetch("double")
    checks.examples(double, [({"x": float(k)}, 2.0 * k) for k in range(50)])
    assert talk.requests == 2
    with pytest.raises(checks.CheckFailed, match="returns the wrong value") as caught:
        checks.function(double, lambda x: 3 * x, lambda rng: {"x": float(rng.uniform(1, 2))})
    assert caught.value.kind == "wrong result"


def test_empty_and_failing_functions_are_told_as_in_a_notebook():
    def blank(x):
        """To be written."""

    def fail(x):
        return 1 / 0

    talk = Talk({"blank": blank, "fail": fail, "number": 3})
    for name, message in (
        ("blank", "blank is not written yet: it returns nothing."),
        ("fail", "fail raises ZeroDivisionError: division by zero"),
        ("number", "A function is expected here."),
    ):
        messages = []
        for function in (talk.fetch(name), talk.namespace[name]):
            with pytest.raises(checks.CheckFailed) as caught:
                checks.examples(function, [({"x": 1.0}, 1.0)])
            messages.append((str(caught.value), caught.value.kind))
        (there, kind), (here, same) = messages
        # The line of the learner's code, which a notebook adds, is not known in the judge's process.
        assert here == there or here.startswith(f"{there}\n  look at   line ")
        assert kind == same
        assert message in there


PRODUCT = checks.elementwise(np.multiply, ("a", "b"), "c")
PRODUCT_N = checks.elementwise(np.multiply, ("a", "b"), "c", length="n")
CUDA = 'extern "C" __global__ void f(const float* a, const float* b, float* c, int n) { %s }'
RIGHT = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) c[i] = a[i] * b[i];"


def kernels() -> dict:
    from warplab import cp, cuda

    @cuda.jit
    def right(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] * b[i]

    @cuda.jit
    def unguarded(a, b, c):
        i = cuda.grid(1)
        c[i] = a[i] * b[i]

    @cuda.jit
    def untyped(a, b, c):
        c[0] = unknown_name  # noqa: F821

    @cuda.jit("void(float32[:], float32[:], float32[:])")
    def explicit(a, b, c):
        i = cuda.grid(1)
        if i < c.size:
            c[i] = a[i] * b[i]

    @cuda.jit
    def blank(a, b, c):
        """To be written."""

    @cuda.jit
    def other_arguments(a, b):
        pass

    def on_the_host(a, b, c):
        c[:] = a * b

    return {
        "right": right,
        "unguarded": unguarded,
        "untyped": untyped,
        "explicit": explicit,
        "blank": blank,
        "other_arguments": other_arguments,
        "on_the_host": on_the_host,
        "f": cp.RawKernel(CUDA % RIGHT, "f"),
        "race": cp.RawKernel(CUDA % "c[0] = threadIdx.x;", "f"),
        "double_pointers": cp.RawKernel((CUDA % RIGHT).replace("float* c", "double* c"), "f"),
        "broken": cp.RawKernel(CUDA % "this is no C++", "f"),
        "number": 5,
    }


def message_of(kernel, case) -> tuple[str, str, str]:
    with pytest.raises(checks.CheckFailed) as caught:
        checks.kernel(kernel, case, language="Numba" if case is PRODUCT else "CUDA C++", seed=1)
    return re.sub("0x[0-9a-f]+", "ADDRESS", str(caught.value)), caught.value.kind, caught.value.line


def test_checks_say_of_a_kernel_what_they_say_in_a_notebook():
    namespace = kernels()
    talk = Talk(namespace)
    for name in ("right", "explicit"):
        checks.kernel(talk.fetch(name), PRODUCT, language="Numba")
    checks.kernel(talk.fetch("f"), PRODUCT_N, language="CUDA C++")
    kinds = {}
    for name in ("unguarded", "blank", "other_arguments", "on_the_host", "f"):
        here, there = (message_of(source, PRODUCT) for source in (namespace[name], talk.fetch(name)))
        assert there == here
        kinds[name] = here[1]
    for name in ("race", "double_pointers", "broken", "right"):
        here, there = (message_of(source, PRODUCT_N) for source in (namespace[name], talk.fetch(name)))
        assert there == here
        kinds[name] = here[1]
    # What Numba could not compile is told with the learner's line in a notebook; the judge has Numba's words.
    here, there = (message_of(source, PRODUCT) for source in (namespace["untyped"], talk.fetch("untyped")))
    assert here[1] == there[1] == "compile"
    assert here[0].splitlines()[0] == there[0].splitlines()[0] == "untyped does not compile."
    assert "unknown_name" in here[0]
    assert "unknown_name" in there[0]
    assert kinds["unguarded"] == "outside"
    assert kinds["on_the_host"] == "no kernel"
    assert kinds["right"] == kinds["f"] == "wrong language"
    assert message_of(talk.fetch("number"), PRODUCT)[1] == "no kernel"


def test_ptx_is_fetched_once_and_translated_once():
    talk = Talk(kernels())
    for _ in range(3):  # as in three test cells
        names = talk.notebook.fetch(["right", "f"])
        checks.kernel(names["right"], PRODUCT)
        checks.kernel(names["f"], PRODUCT_N)
    assert talk.requests == 4  # one a cell, and one for the types of the first launch
    assert len(talk.notebook._programs) == 2
    assert sorted(talk.notebook.kernels) == ["f", "right(float32[::1], float32[::1], float32[::1])"]
    assert all(".entry" in ptx for ptx in talk.notebook.kernels.values())


def test_a_test_can_launch_a_kernel_itself():
    from warplab import cp, cuda, profile

    talk = Talk(kernels())
    a = np.arange(8, dtype=np.float32)
    out = cuda.device_array(8, np.float32)
    with profile() as launches:
        talk.fetch("right")[1, 8](cuda.to_device(a), cuda.to_device(a), out)
    assert np.array_equal(out.copy_to_host(), a * a)
    assert launches[0].counts.global_load_bytes == 64
    b, c = cp.asarray(a), cp.zeros(8, np.float32)
    talk.fetch("f")((1,), (8,), (b, b, c, np.int32(8)))
    assert np.array_equal(cp.asnumpy(c), a * a)
    with pytest.raises(ValueError, match="a launch is written right"):
        talk.fetch("right")(a, a, a)
    with pytest.raises(TypeError, match=r"f\(grid, block, args\)"):
        talk.fetch("f")[1, 8]


def test_modules_and_their_names_are_the_judges_own():
    talk = Talk({"np": np, "testing": np.testing, "os": __import__("os"), "checks": checks, "fake": type(np)("numpy")})
    assert talk.fetch("np") is np
    assert talk.fetch("testing") is np.testing
    assert talk.fetch("checks") is checks
    assert isinstance(talk.fetch("os"), stand_ins.Opaque)
    assert talk.fetch("fake") is np  # whatever calls itself NumPy there, here it is NumPy
    assert isinstance(lying(kind="module", name="os"), stand_ins.Opaque)
    assert isinstance(lying(kind="module", name="warpcourse.grading.judge.execute"), stand_ins.Opaque)


USES = [
    lambda x: x == 1,
    lambda x: x != 1,
    lambda x: x < 1,
    lambda x: x + 1,
    lambda x: 1 - x,
    lambda x: np.float32(1) * x,
    lambda x: bool(x),
    lambda x: x[0],
    lambda x: list(x),
    lambda x: len(x),
    lambda x: x(),
    lambda x: x.anything,
    lambda x: abs(x),
    lambda x: float(x),
    lambda x: 1 in x,
    lambda x: f"{x}",
    lambda x: hash(x),
    lambda x: np.asarray(x),
    lambda x: np.testing.assert_allclose(x, 1.0),
    lambda x: np.allclose(x, 1.0),
]


@pytest.mark.parametrize("number", range(len(USES)))
def test_an_object_cannot_be_used(number):
    talk = Talk({"x": EqualsEverything(), "f": lambda: EqualsEverything()})
    for stand_in in (talk.fetch("x"), talk.fetch("f")()):
        with pytest.raises(checks.CheckFailed, match="EqualsEverything, which a test cannot take from the notebook"):
            USES[number](stand_in)


PTX = compile_cuda(CUDA % RIGHT)
KERNEL = {"kind": "kernel", "language": "CUDA C++", "name": "f", "code": "", "signature": None}


@pytest.mark.parametrize(
    "answer",
    [
        {"kind": "anything"},
        {"kind": "value"},
        {"kind": "value", "value": {"a": 1}},
        {"kind": "function", "name": 5},
        {"kind": "kernel"},
        {"kind": "kernel", "language": 7, "name": [], "parameters": "abc"},
        {"kind": "kernel", "language": "Numba", "parameters": ["a b"]},
        {"kind": "kernel", "language": "Numba", "parameters": ["a"] * 1000},
        {"kind": "kernel", "language": "Numba", "parameters": ["a", "b", "c"], "signatures": [["object"]]},
        {"kind": "kernel", "language": "Numba", "parameters": ["a", "b", "c"], "compiled": {"x": 1}},
        KERNEL,
        KERNEL | {"compiled": None},
        KERNEL | {"compiled": {"kind": "ptx"}},
        KERNEL | {"compiled": {"kind": "ptx", "ptx": 5, "entry": "f", "sources": {}}},
        KERNEL | {"compiled": {"kind": "ptx", "ptx": "no PTX", "entry": "f", "sources": {}}},
        KERNEL | {"compiled": {"kind": "ptx", "ptx": PTX, "entry": "g", "sources": {}}},
        KERNEL | {"compiled": {"kind": "ptx", "ptx": PTX, "entry": ["f"], "sources": 3}},
        KERNEL | {"compiled": {"kind": "ptx", "ptx": "x" * (stand_ins.MAX_PTX + 1), "entry": "f", "sources": {}}},
        KERNEL | {"compiled": {"kind": "raised", "classes": ["SystemExit", "BaseException"], "message": 5}},
        KERNEL | {"compiled": {"kind": "raised", "classes": ["KeyboardInterrupt"], "message": "x"}},
        KERNEL | {"compiled": {"kind": "raised", "classes": ["UnicodeDecodeError"], "message": "x"}},
        KERNEL | {"compiled": {"kind": "raised", "classes": "abc"}},
        KERNEL | {"signature": {"name": "f", "parameters": [["a"]]}, "compiled": {"kind": "ptx"}},
        KERNEL | {"signature": {"name": "f", "parameters": [["a", "a", True, "O", 1]]}},
    ],
)
def test_a_process_that_lies_gets_no_kernel_accepted(answer):
    with pytest.raises(checks.CheckFailed):
        checks.kernel(lying(**answer), PRODUCT_N)


def test_a_process_that_lies_about_a_signature_gains_nothing():
    """Sizes of arguments are PTX's; what the declaration claims is used for messages only."""
    good = {"kind": "ptx", "ptx": PTX, "entry": "f", "sources": {"kernel.cu": "\ud800" * 10, 5: 6}}
    checks.kernel(lying(**KERNEL, compiled=good), PRODUCT_N)
    claim = [["x", "x", True, "<f8", 1]] * 4
    with pytest.raises(checks.CheckFailed, match="cannot be launched"):
        checks.kernel(lying(**KERNEL | {"signature": {"name": "f", "parameters": claim}}, compiled=good), PRODUCT_N)


@pytest.mark.parametrize("answer", [{"kind": "results"}, {"kind": "results", "results": [1, 2]}, {"kind": "odd"}])
def test_a_function_that_gives_no_answer_fails(answer):
    replies = iter([{"kind": "function", "name": "x"}, answer, answer])
    function = stand_ins.Notebook(lambda wishes: [next(replies)]).fetch(["x"])["x"]
    with pytest.raises(checks.CheckFailed, match="x gave no answer that could be read"):
        function(1)
    with pytest.raises(checks.CheckFailed):
        checks.examples(function, [({"x": 1.0}, 1.0)])


def test_blank_is_the_only_wrong_claim_that_costs_points_only():
    with pytest.raises(checks.CheckFailed, match="not written yet"):
        checks.kernel(lying(kind="kernel", language="Numba", name="f", parameters=["a"], blank=True), PRODUCT)


def test_keys_that_all_have_one_hash_are_refused():
    """45,000 of them take a minute in each dict: as many comparisons as half the square of their number."""
    for keys in ([k * (2**61 - 1) for k in range(500)], [(k * (2**61 - 1), 0) for k in range(500)]):
        text = ["d", *([artefacts.encode(key), None] for key in keys)]
        with pytest.raises(ArtefactError, match="too much alike"):
            artefacts.decode(text)
    for honest in (range(20_000), range(-1000, 1000), [k << 40 for k in range(2_000)], [k / 2 for k in range(2_000)]):
        assert artefacts.decode(artefacts.encode(dict.fromkeys(honest))) == dict.fromkeys(honest)


def test_accents_without_end_are_cut():
    """A browser takes more than 25 s for 200,000 of them on one letter."""
    for mark in ("\u0301", "\u0323\u0301", "\u0e33", "\u0301\x1b[m"):
        text = artefacts.clean_text(f"a{mark * 1000}b")
        assert text.startswith(f"a{mark}")
        assert len(text) <= 2 + 64 * len(mark)
        assert text.endswith("b")
    for honest in (
        "Zo\u0308e",
        "ก\u0e33" * 500,
        "\x1b[31mred\x1b[0m" * 500,
        "\U0001f469\u200d\U0001f4bb" * 100,
        "व्या" * 100,
    ):
        assert artefacts.clean_text(honest) == honest
