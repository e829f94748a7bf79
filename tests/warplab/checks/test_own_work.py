"""`own_work`: what a notebook cell may not take from the course, and what it may."""

import ast
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.core.error import InputRejected
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from warplab import checks, cuda, profile
from warplab.checks.own_work import _MARK, _OwnWork, from_course, packages, run_for_predictions

GIVEN = "kernels.lab.answer_checks"
RING = "The answers of an exercise are your own work, and kernels.lab.ring is the course's."


def taken(code):
    return list(from_course(ast.parse(code)))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import kernels.lab.ring as r", "kernels.lab.ring"),
        ("from kernels.lab.ring import ring", "kernels.lab.ring"),
        ("from kernels.lab import ring", "kernels.lab"),
        ("def f():\n    from kernels.lab.ring import ring\n    return ring", "kernels.lab.ring"),
        ("importlib.import_module('kernels.lab.ring')", "kernels.lab.ring"),
        ("exec('from kernels.lab.ring import ring')", "kernels.lab.ring"),
        ("exec('import math\\nfrom kernels.lab.ring import ring\\n')", "kernels.lab.ring"),
        ("sys.modules['kernels.lab.ring']", "kernels.lab.ring"),
        ("open('../../kernels/lab/ring.py').read()", "../../kernels/lab/ring.py"),
        ("get_ipython().run_line_magic('run', '../kernels/lab/ring.py')", "../kernels/lab/ring.py"),
        ("get_ipython().system('cat kernels/lab/ring.py')", "kernels/lab/ring.py"),
        ("magic('cuda', '', 'int x;\\n#include \"../kernels/lab/k.cu\"\\n')", "../kernels/lab/k.cu"),
        ("magic('cuda', '-I../kernels/lab', '#include \"k.cu\"')", "-I../kernels/lab"),
    ],
)
def test_what_comes_from_the_course_is_found(code, found):
    assert taken(code) == [found]


@pytest.mark.parametrize(
    "code",
    [
        "import numpy as np\nfrom warplab import checks",
        "kernels = 3\nkernels += 1",
        "def f():\n    'As in kernels.lab.ring.'\n    return 1",
        "# from kernels.lab import ring",
        "print('two kernels run')",
        "from my_kernels.ring import x",
        "magic('cuda', '', 'int x; // as kernels/lab/k.cu\\n')",
    ],
)
def test_other_code_is_left_alone(code):
    assert taken(code) == []


KERNEL = cuda.jit(lambda a: None)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("prediction = {'x': counted(product)}", ["product"]),
        ("def counted(): product[1, 1]()\nprediction = {}\nprediction['x'] = counted()", ["product"]),
        ("with profile() as p: pass\nprediction.update(x=p.counts)", ["profile"]),
        ("@cuda.jit\ndef mine(): pass\nprediction = 1", ["cuda"]),
        ("prediction = {'x': np.ceil(64 / 8), 'y': sum(range(3))}", []),
        ("checks.predictions(prediction, counted(product))", []),
        ("product[1, 1](a)", []),
        ("def mean(product):\n    profile = sum(product)\n    return profile\nprediction = {'x': mean([1, 3])}", []),
        ("prediction = {'x': sum(product for product in (1, 2))}", []),
        ("prediction = [lambda: [profile() for cuda in 'x']]", ["profile"]),
        ("prediction = cuda\nreturn", []),  # a cell that does not compile does not run
    ],
)
def test_predictions_that_a_run_gives_are_found(code, found):
    names = {"product": KERNEL, "profile": profile, "cuda": cuda, "checks": checks, "np": np, "prediction": {}}
    assert list(run_for_predictions(ast.parse(code), names)) == found


@pytest.fixture
def cell():
    """A function that runs a cell and returns "" or "ErrorClass: message"."""
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config, colors="nocolor")
    shell.reset(new_session=False)

    def run(source):
        result = shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        return "" if error is None else f"{type(error).__name__}: {error}"

    yield run
    shell.reset(new_session=False)


def test_a_cell_that_takes_from_the_course_is_refused():
    with pytest.raises(InputRejected, match=RING):
        _OwnWork(SimpleNamespace(user_ns={_MARK: frozenset()})).visit(ast.parse("from kernels.lab.ring import ring"))


def test_a_refused_cell_does_not_run(cell):
    assert cell(f"from warplab import checks\nchecks.own_work({GIVEN!r})") == ""
    assert cell("x = 1\nfrom kernels.lab.ring import ring").startswith(f"NotYourOwn: {RING}\n  look at ")
    assert cell("x") == "NameError: name 'x' is not defined"
    assert cell("x = 2") == cell("x") == ""
    refused = cell("import warplab\n") or cell("prediction = warplab.profile")
    assert refused.startswith("NotYourOwn: A prediction comes before the run, but this cell uses warplab.\n  look at ")


def test_an_application_is_the_course_s_own_work_too(tmp_path):
    for folder, file in (("page", "lab.py"), ("docs", "labs.md"), ("another", "lab.py")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).touch()
    assert packages(tmp_path) == ["kernels", "another", "page"]


def test_each_package_is_refused():
    for package in packages():
        assert taken(f"from {package}.lab.ring import ring") == [f"{package}.lab.ring"]
        assert taken(f"open('../{package}/lab/ring.py')") == [f"../{package}/lab/ring.py"]
