"""Notebooks that use TensorFlow: their processes, their values as arrays, and a judge that never imports it.

One zygote imports TensorFlow; the judge of these tests is this process, which must not.
"""

from __future__ import annotations

import ast
import sys

import nbformat
import pytest

from tests.support.grading_harness import WIDE, Cells
from warpcourse.grading.frameworks import TENSORFLOW
from warpcourse.grading.judge import framework_cells
from warpcourse.grading.judge.cells import TrustedCell
from warpcourse.grading.judge.judge import trusted_cells
from warpcourse.grading.sandbox.kernel_manager import Zygotes
from warpcourse.grading.sandbox.limits import SubmissionLimits
from warpcourse.paths import COURSE

IMPORT = "import tensorflow as tf\nimport numpy as np\nfrom warplab import checks, cp, cuda"


@pytest.fixture(scope="module")
def tensorflow_zygotes(zygotes):
    """One that has TensorFlow, in the sandbox that is there."""
    with Zygotes(zygotes.sandbox, warmth="tensorflow") as found:
        yield found


def notebook() -> Cells:
    return Cells().locked("tensorflow", IMPORT)


# -- which cells ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("import tensorflow as tf", True),
        ("import tensorflow.keras.layers", True),
        ("from keras import layers", True),
        ("def f():\n    import tensorflow", True),
        ("%matplotlib inline\nimport tensorflow", True),
        ("# import tensorflow", False),
        ("text = 'import tensorflow'", False),
        ("from .tensorflow import x", False),
        ("import tensorflow_like", False),
        ("import tensorflow as", False),
    ],
)
def test_an_exercise_uses_tensorflow_if_a_given_cell_imports_it(source, wanted):
    assert (framework_cells.framework_of({"other": "import numpy", "setup": source}) is TENSORFLOW) is wanted
    assert (framework_cells.framework_of({"setup": "import numpy"}, {"answer": source}) is TENSORFLOW) is wanted


def test_the_judge_leaves_what_needs_tensorflow_to_the_student():
    first = ast.parse(
        "STEPS = 3\ndef loss(x):\n    return helper(x)\nclass Net(tf.Module):\n    pass\nnet = Net()\nRATE = 1"
    )
    second = ast.parse("import numpy as np\nimport tensorflow as tf\ndef helper(x):\n    return tf.square(x)")
    assert framework_cells.left_to_student([first, second]) == ({"tf": TENSORFLOW}, {"loss", "helper", "Net", "net"})
    assert ast.unparse(first) == "STEPS = 3\nRATE = 1"
    assert ast.unparse(second) == "import numpy as np"


def test_a_local_name_is_no_module():
    tree = ast.parse("import tensorflow as tf\ndef f(tf):\n    return tf + 1")
    assert framework_cells.left_to_student([tree]) == ({"tf": TENSORFLOW}, set())
    assert ast.unparse(tree).startswith("def f(tf)")


def test_no_test_cell_of_an_exercise_needs_tensorflow():
    """The tests of the labs run in one process that has it; the grading's judge would refuse the whole exercise."""
    for path in sorted((COURSE / "solutions").glob("*/*.ipynb")):
        tests, setup = trusted_cells(nbformat.read(path, as_version=4))
        cells = [TrustedCell(name, source) for name, source in setup.items()]
        modules, _ = framework_cells.left_to_student(cell.tree for cell in cells)
        for name, source in tests.items():
            test = TrustedCell(name, source)
            assert not modules.keys() & test.names, (path.name, name)
            assert framework_cells.imported(test.tree) is None, (path.name, name)


def test_a_test_that_needs_tensorflow_is_the_instructors_mistake(tensorflow_zygotes):
    for source in ("assert tf.reduce_sum(f(2)) == 4", "import tensorflow\nassert f(2) == 4"):
        cells = notebook().student("def f(x):\n    return 2 * x").test("asks", source)
        with pytest.raises(ValueError, match=r"'asks' uses .*compare NumPy arrays"):
            run(cells, tensorflow_zygotes)


# -- values ---------------------------------------------------------------------------------------------------------


def run(cells: Cells, zygotes: Zygotes):
    """Grade a notebook while this process, the judge, cannot import TensorFlow."""
    with pytest.MonkeyPatch.context() as patch:
        for name in TENSORFLOW.modules:
            patch.setitem(sys.modules, name, None)
        return cells.run(zygotes, WIDE.for_framework(TENSORFLOW))


def test_tensors_reach_tests_as_arrays(tensorflow_zygotes):
    """Eager tensors, variables, IndexedSlices, in containers too; a graph, XLA and a gradient run in the sandbox."""
    answer = """
@tf.function
def double(x):
    return 2 * x
@tf.function(jit_compile=True)
def fused(x):
    return tf.reduce_sum(tf.tanh(x) * 2)
def several(x):
    v = tf.Variable(x)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(v, [1, 1, 0]) * 3)
    layer = tf.keras.layers.Dense(2, use_bias=False, kernel_initializer='ones')
    layer(tf.ones((1, 3)))
    return {'variable': v, 'slices': tape.gradient(y, v), 'both': (tf.constant(1.5), [None, layer.kernel])}
weights = tf.Variable([[1.0, 2.0]])
def data(n):
    return list(tf.data.Dataset.range(n).map(lambda i: i * i, num_parallel_calls=tf.data.AUTOTUNE))
def through_numpy(x):
    return tf.numpy_function(lambda a: a + 1, [x], tf.float32)
"""
    test = """
x = np.array([1, 2, 3], np.float32)
got = double(x)
assert type(got) is np.ndarray and got.dtype == np.float32, type(got)
np.testing.assert_array_equal(got, 2 * x)
np.testing.assert_allclose(fused(x), 2 * np.tanh(x).sum(), rtol=1e-6)
found = several(x)
np.testing.assert_array_equal(found['variable'], x)
np.testing.assert_array_equal(found['slices'], [3, 6, 0])
scalar, (nothing, kernel) = found['both']
assert scalar == 1.5 and nothing is None
np.testing.assert_array_equal(kernel, np.ones((3, 2)))
np.testing.assert_array_equal(weights, [[1, 2]])
assert [int(i) for i in data(4)] == [0, 1, 4, 9]
np.testing.assert_array_equal(through_numpy(x), x + 1)
"""
    graded = run(notebook().student(answer).test("values", test), tensorflow_zygotes)
    assert graded.failed == {}
    assert graded.ended is None


def test_what_has_no_value_is_told(tensorflow_zygotes):
    """A symbolic tensor, text and bfloat16: the student learns which."""
    answer = """
kept = []
@tf.function
def trace(x):
    kept.append(x)
    return x
trace(tf.constant(1.0))
def symbolic():
    return kept[0]
def text():
    return tf.constant('text')
def brain():
    return tf.ones(2, tf.bfloat16)
"""
    cells = notebook().student(answer)
    for name in ("symbolic", "text", "brain"):
        cells.test(name, f"assert {name}()[0] == 1")
    graded = run(cells, tensorflow_zygotes)
    assert set(graded.failed) == {"symbolic", "text", "brain"}
    assert "SymbolicTensor" in graded.failed["symbolic"]
    assert "bfloat16" in graded.failed["brain"]


def test_setup_runs_in_part_on_each_side(tensorflow_zygotes):
    """What needs TensorFlow is the student's process's, everything else is here."""
    setup = IMPORT + "\nSCALE = 3\nclass Net(tf.Module):\n    pass\ndef total(x):\n    return tf.reduce_sum(x)"
    cells = Cells().locked("tensorflow", setup).student("net = Net()\ndef answer(x):\n    return SCALE * total(x)")
    graded = run(cells.test("both", "assert answer(np.ones(4)) == 4 * SCALE"), tensorflow_zygotes)
    assert graded.failed == {}


def test_kernels_and_tensorflow_in_one_notebook(tensorflow_zygotes):
    """A kernel of the student's is judged as ever, beside TensorFlow and inside it."""
    answer = """
@cuda.jit
def twice(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = 2 * x[i]
def inside(x):
    def forward(a):
        out = cuda.to_device(np.empty_like(a))
        twice[1, 32](cuda.to_device(a), out)
        return out.copy_to_host()
    return tf.numpy_function(forward, [tf.constant(x)], tf.float32)
"""
    cells = notebook().student(answer)
    cells.test("kernel", "checks.kernel(twice, checks.elementwise(lambda x: 2 * x, ('x',), 'y'), language='Numba')")
    cells.test("inside", "np.testing.assert_array_equal(inside(np.ones(5, np.float32)), np.full(5, 2))")
    assert run(cells, tensorflow_zygotes).failed == {}


def test_submissions_share_nothing(tensorflow_zygotes):
    """Each has TensorFlow as imported: what one changes, the next does not see."""
    first = notebook().student("tf.square = lambda x: 7\ntf.config.threading.set_inter_op_parallelism_threads(1)")
    run(first.test("first", "assert 1"), tensorflow_zygotes)
    second = notebook().student("def f(x):\n    return tf.square(x)").test("second", "assert f(3.0) == 9")
    assert run(second, tensorflow_zygotes).failed == {}


def test_one_supply_serves_both_kinds(zygotes):
    """Judges take what a notebook needs, in any order."""
    for warmth in ("tensorflow", ""):
        taken = zygotes.take(SubmissionLimits(), warmth)
        assert taken.warmth == (warmth or "course")


def test_limits():
    limits = SubmissionLimits(memory_bytes=1 << 30, processes=10)
    wider = limits.for_framework(TENSORFLOW)
    assert (wider.processes, wider.processors, wider.memory_bytes) == (74, 2, 1 << 30)
    assert (wider.wall_seconds, wider.cpu_seconds) == (limits.wall_seconds, limits.cpu_seconds)


GIVEN = """import tensorflow as tf


def doubled(x):
    return (2 * inner(tf.constant(x))).numpy()


def launch(x):
    return x"""
DOUBLED = "assert doubled(3.0) == 8.0 and launch(1) == 1"


def test_locked_functions_in_the_students_process_are_those_of_the_instructor(tensorflow_zygotes):
    """An answer could replace them by ones that give what the tests compare with."""
    forged = "def doubled(x):\n    return 8.0\n\n\nlaunch = tf = None\ndel __builtins__.sum\n\n\n"
    forged += "def inner(x):\n    return x{}"
    for inner, fails in ((" + 1", set()), ("", {"one"})):
        cells = notebook().locked("given", GIVEN).answer("inner", forged.format(inner), "def inner(x):\n    pass")
        assert cells.test("one", DOUBLED).run(tensorflow_zygotes).failed.keys() == fails


def test_definitions_of_a_locked_cell_run_again_alone():
    source = "import tensorflow as tf\nprint('once')\nx = 1\n%matplotlib inline\n@tf.function\ndef f():\n    pass\nf()"
    assert framework_cells.definitions(source) == "import tensorflow as tf\n\n@tf.function\ndef f():\n    pass"
