"""Which tests `make test` runs, chosen by what each took."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.support import run_record, tiers
from warpcourse.paths import COURSE

FILE = {"test_sweep": {"f::test_sweep[a]": 2.0, "f::test_sweep[b]": 0.5, "f::test_sweep[c]": 1.0}}


def test_cases_run_cheapest_first_until_the_share_is_used():
    assert tiers.beyond(1.5, {"f": FILE}, ()) == {"f::test_sweep[a]"}
    assert tiers.beyond(1.0, {"f": FILE}, ()) == {"f::test_sweep[a]", "f::test_sweep[c]"}
    assert tiers.beyond(3.5, {"f": FILE}, ()) == set()


def test_a_file_keeps_its_cheapest_test_and_what_is_marked_stays():
    costs = {"f": {**FILE, "test_long": {"f::test_long": 9.0}}, "g": {"test_only": {"g::test_only": 7.0}}}
    assert tiers.beyond(0.1, costs, ()) == {"f::test_sweep[a]", "f::test_sweep[c]", "f::test_long"}
    assert tiers.beyond(0.1, costs, {("f", "test_long")}) == {f"f::test_sweep[{case}]" for case in "abc"}


def test_the_share_is_the_largest_that_fits_the_budget():
    costs = {f"f{i}": {"test": {f"f{i}::test[{j}]": 1.0 for j in range(100)}} for i in range(100)}
    share = tiers.largest_share(costs, ())
    left = 10_000 - len(tiers.beyond(share, costs, ()))
    assert tiers.BUDGET - 100 <= left <= tiers.BUDGET  # with the next larger share each file takes a case more


def test_what_tests_share_leaves_less_for_each():
    costs = {f"f{i}": {"test": {f"f{i}::test[{j}]": 1.0 for j in range(100)}} for i in range(100)}
    share = tiers.largest_share(costs, (), shared=tiers.BUDGET / 2)
    left = 10_000 - len(tiers.beyond(share, costs, ()))
    assert tiers.BUDGET / 2 - 100 <= left <= tiers.BUDGET / 2


def test_what_cannot_fit_the_budget_is_told():
    costs = {
        "f": {"test_a": {"f::test_a": tiers.BUDGET}, "test_b": {"f::test_b": 1.0}},
        "g": {"test": {"g::test": 1.0}},
    }
    with pytest.raises(
        ValueError, match=rf"takes {tiers.BUDGET + 1:.0f} s .* marked `always` take {tiers.BUDGET:.0f} of"
    ):
        tiers.largest_share(costs, {("f", "test_a")})


def test_long_tests_begin_each_workers_part():
    costs, first = [1, 1, 50, 1, 20, 1, 30, 1, 1], [False] * 8 + [True]
    order = tiers.arrange(costs, first, 3)
    assert sorted(order) == list(range(9))
    assert order == [8, 4, 0, 2, 1, 3, 6, 5, 7]  # what is first, and 20 s; 50 s; 30 s


def test_durations_are_written_and_read(monkeypatch, tmp_path):
    monkeypatch.setattr(tiers, "DURATIONS", tmp_path / "durations.json")
    assert tiers.read() == (float("inf"), {})
    took = {f"tests/f.py::test_sweep[{case}]": (seconds, "", 0.0) for case, seconds in {"a": 2.04, "b": 0.02}.items()}
    took |= {"tests/f.py::TestA::test_small": (0.01, "", 3.0), "tests/f.py::test_by_hand": (9.0, "thorough", 0.0)}
    run_record.write_durations(took)
    share, seconds = tiers.read()
    assert share > 2.06
    known = {"test_by_hand": {"": 9.0}, "test_sweep": {"a": 2.0, "": 0.02}, "": {"": 0.01, "all": 14.1, "shared": 3.0}}
    assert json.loads(json.dumps(seconds)) == {"tests/f.py": known}
    assert tiers.cost(seconds, "tests/f.py::test_sweep[a]") == 2.0
    assert tiers.cost(seconds, "tests/f.py::test_sweep[new]") == 0.02
    assert tiers.cost(seconds, "tests/f.py::test_new") == 0.01
    assert tiers.cost_of_file(seconds, "tests/f.py") == 14.1
    assert tiers.shared_of_file(seconds, "tests/f.py") == 3.0
    assert tiers.cost(seconds, "tests/g.py::test_new") == 0.0


def test_a_record_names_tests_that_are_there():
    """What is renamed runs in `make test` until `make test-all` records it; a lab may be deleted."""
    _, seconds = tiers.read()
    gone = [file for file in seconds if not (tiers.TESTS.parent / file).exists()]
    assert len(gone) <= len(seconds) / 2


def test_the_time_left_is_by_cost_and_the_rate_of_the_last_minutes(monkeypatch):
    now, lines = [0.0], []
    monkeypatch.setattr(run_record.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(tiers, "read", lambda: (1.0, {}))
    monkeypatch.setattr(tiers, "cost", lambda known, nodeid: 10.0)
    run = run_record.Run(SimpleNamespace(getoption=lambda name: "test"))
    monkeypatch.setattr(run, "_say", lines.append)
    run._starts([f"tests/f.py::test[{i}]" for i in range(100)])
    for seconds, left in [(300, 950), (600, 850), (900, 500), (960, 400), (1020, 300)]:
        now[0], run.left = seconds, left
        run._progress()
    found = [re.search(r"some (.*) min left", line) for line in lines[1:]]
    # 100 of 850 in 300 s; 350 in 300 s; 450 in 360 s; in 420 s, since the line before the last three minutes, 550.
    assert [one and float(one[1]) for one in found] == [None, 42, 7, 5, 4]


def test_each_stage_of_a_run_adds_what_the_earlier_found(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = tensorflow\n    thorough\n    always\n")
    (tmp_path / "test_some.py").write_text(
        "import pytest\n\n@pytest.mark.tensorflow\ndef test_one():\n    assert False\n\ndef test_two():\n    pass\n"
    )
    (tmp_path / "test_more.py").write_text("def test_three():\n    pass\n")
    figures = {}
    stages = {1: ["-m", "tensorflow"], 2: ["-m", "not tensorflow", "test_some.py"], 3: ["test_more.py"]}
    for stage, chosen in stages.items():
        command = [sys.executable, "-m", "pytest", "-p", "tests.support.run_record", "-p", "tests.support.verdicts"]
        command += ["--target=test", f"--stage={stage}/3", *chosen]
        ran = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(COURSE)}, capture_output=True)
        assert ran.returncode == (1 if stage == 1 else 0), ran.stdout.decode()
        figures[stage] = json.loads(ran.stdout.splitlines()[-1])
    assert (figures[1]["passed"], figures[1]["failed"]) == (0, 1)
    assert (figures[2]["passed"], figures[2]["failed"]) == (1, 1)
    assert (figures[3]["passed"], figures[3]["failed"]) == (2, 1)
    assert figures[3]["processor_seconds"] >= figures[2]["processor_seconds"] >= figures[1]["processor_seconds"]


def test_what_tests_import_and_leave_to_clean_up_is_their_files_cost(tmp_path):
    """Else the first pays the one, and the last the other, whichever they are; only files named get a new record."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = tensorflow\n    thorough\n    always\n")
    (tmp_path / "conftest.py").write_text(
        "import time\nfrom pathlib import Path\nimport pytest\nfrom tests.support import run_record, tiers\n"
        "tiers.DURATIONS = Path('durations.json')\n\n"
        "@pytest.fixture(autouse=True, scope='module')\ndef _clean():\n    yield\n    begun = time.process_time()\n"
        "    with run_record.shared():\n        while time.process_time() < begun + 0.5: pass\n"
    )
    busy = "import time\nbegun = time.process_time()\nwhile time.process_time() < begun + {}: pass\n"
    (tmp_path / "late.py").write_text("import later\n" + busy.format(0.5))
    (tmp_path / "later.py").write_text(busy.format(0.5))
    own = ("import late\n" + busy.format(0.3)).replace("\n", "\n    ")
    (tmp_path / "test_one.py").write_text(f"def test_first():\n    {own}\n\ndef test_second():\n    import late\n")
    known = {file: {"": {"": 7.0, "all": 7.0}} for file in ("test_one.py", "test_two.py")}
    (tmp_path / "durations.json").write_text(json.dumps({"share": 0.7, "seconds": known}))
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.run_record", "-p", "tests.support.verdicts"]
    command += ["--target=durations", "test_one.py"]
    path = os.pathsep.join([str(tmp_path), str(COURSE)])
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True)
    assert ran.returncode == 0, ran.stdout.decode()
    found = json.loads((tmp_path / "durations.json").read_text())
    assert (found["share"], found["seconds"]["test_two.py"]) == (0.7, known["test_two.py"])
    one = found["seconds"]["test_one.py"]
    assert 0.3 <= one["test_first"][""] < 0.8  # without the second that its imports take
    assert 1.5 <= one[""]["shared"] < 2.0
    assert one[""][""] < 0.3


def test_a_file_that_imports_tensorflow_as_it_is_read_fails(tmp_path):
    """It took 0.4 GB in each worker, also of those that ran none of its tests."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = tensorflow\n    thorough\n    always\n")
    (tmp_path / "tensorflow.py").write_text("")
    (tmp_path / "test_head.py").write_text("import tensorflow\n\ndef test_one():\n    pass\n")
    (tmp_path / "test_late.py").write_text("def test_two():\n    import tensorflow\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.run_record", "-p", "tests.support.verdicts"]
    path = os.pathsep.join([str(tmp_path), str(COURSE)])
    for files, code in {"test_head.py test_late.py": 2, "test_late.py": 0}.items():
        environment = os.environ | {"PYTHONPATH": path}
        ran = subprocess.run([*command, *files.split()], cwd=tmp_path, env=environment, capture_output=True)
        assert ran.returncode == code, ran.stdout.decode()
        assert (b"imports TensorFlow as it is read" in ran.stdout) == (code == 2)


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_is_whole_only_if_its_earlier_stages_were(tmp_path, killed):
    """Neither one that ended early, in a test file that cannot be imported, nor an earlier run's, if it was killed."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = .\nmarkers = tensorflow\n    thorough\n    always\n")
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\nfrom tests.support import run_record, tiers\n"
        "run_record.WHOLE_RUNS, tiers.DURATIONS = Path('whole.json'), Path('durations.json')\n"
        "run_record._git = lambda *words: 'abc' if words[0] == 'rev-parse' else ''\n"
    )
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    one = tmp_path / "test_one.py"

    def run(stage: str, body: str) -> bool:
        one.write_text(f"import os\nimport pytest\n\n@pytest.mark.tensorflow\ndef test_one():\n    pass\n\n{body}\n")
        command = [sys.executable, "-m", "pytest", "-p", "tests.support.run_record", "-p", "tests.support.verdicts"]
        command += [
            "--target=test-all",
            f"--stage={stage}",
            "-m",
            "tensorflow" if stage[0] == "1" else "not tensorflow",
        ]
        subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(COURSE)}, capture_output=True)
        return (tmp_path / "whole.json").exists()

    assert (run("1/2", ""), run("2/2", "")) == (False, True)
    (tmp_path / "whole.json").unlink()
    assert (run("1/2", "os._exit(1)" if killed else "1 / 0"), run("2/2", "")) == (False, False)
    assert (run("1/3", ""), run("3/3", "")) == (False, False)
