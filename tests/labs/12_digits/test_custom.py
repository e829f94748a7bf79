"""Networks of users: what honest code gets, and what hostile code does not."""

import copy
import dataclasses
import json
import os
import socket
from pathlib import Path

import pytest

from digits.files import DigitsError
from digits.networks import configuration, custom, sandboxed
from warpcourse.paths import COURSE

IMAGE, CLASSES = (8, 8, 1), 10
QUICK = dataclasses.replace(sandboxed.LIMITS, cpu_seconds=2, wall_seconds=60, memory_bytes=400 << 20, processes=20)


@pytest.fixture(autouse=True)
def _sandbox(request):
    """Without bubblewrap a test marked `sandbox` is skipped, or fails where WARPLAB_REQUIRE_SANDBOX=1 says so."""
    if request.node.get_closest_marker("sandbox") and (why := custom.unavailable()):
        (pytest.fail if os.environ.get("WARPLAB_REQUIRE_SANDBOX") == "1" else pytest.skip)(why)


def plain():
    """A small network, as `configure` describes it."""
    no = {f"{what}_{kind}": None for what in ("kernel", "bias") for kind in ("regularizer", "constraint")}
    fresh = {"kernel_initializer": {"kind": "HeNormal"}, "bias_initializer": {"kind": "Zeros"}, "use_bias": True}
    convolution = {
        "filters": 4, "kernel_size": [3, 3], "strides": [1, 1], "padding": "same", "dilation_rate": [1, 1],
        "groups": 1, "activation": "relu", "activity_regularizer": None, **no, **fresh,
    }  # fmt: skip
    return {
        "layers": [
            {"name": "image", "kind": "InputLayer", "inputs": [], "settings": {"shape": [8, 8, 1]}},
            {"name": "conv", "kind": "Conv2D", "inputs": ["image"], "settings": convolution},
            {"name": "flat", "kind": "Flatten", "inputs": ["conv"], "settings": {}},
            {
                "name": "classes",
                "kind": "Dense",
                "inputs": ["flat"],
                "settings": {"units": 10, "activation": "softmax", **no, **fresh},
            },
        ]
    }


def changed(path, value):
    """The small network with one thing changed; `path`: keys and indices."""
    network = copy.deepcopy(plain())
    place = network
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return network


# -- what is let through ----------------------------------------------------------------------------------------------


def test_a_configuration_that_is_right_is_kept_as_it_is():
    assert configuration.check(plain(), IMAGE, CLASSES) == plain()


FIRST, CONV, DENSE = ("layers", 0), ("layers", 1), ("layers", 3)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*CONV, "kind"), "Lambda", "cannot be used here"),
        ((*CONV, "kind"), "StringLookup", "cannot be used here"),
        ((*CONV, "kind"), "TFSMLayer", "cannot be used here"),
        ((*CONV, "kind"), "__class__", "cannot be used here"),
        ((*CONV, "kind"), ["Conv2D"], "cannot be used here"),
        ((*CONV, "kind"), "InputLayer", "the input is the first layer"),
        ((*FIRST, "kind"), "Flatten", "the input is the first layer"),
        ((*CONV, "name"), "../../x", "odd name"),
        ((*CONV, "name"), "<script>", "odd name"),
        ((*CONV, "name"), "image", "Two layers are named"),
        ((*CONV, "inputs"), ["classes"], "no layer before it"),
        ((*CONV, "inputs"), [["image"]], "no layer before it"),
        ((*CONV, "inputs"), [], "reads 0 layers"),
        ((*CONV, "inputs"), ["image", "image"], "reads 2 layers"),
        ((*CONV, "settings", "vocabulary"), "/etc/passwd", "must have the settings"),
        ((*CONV, "settings", "filters"), 10**9, "whole number"),
        ((*CONV, "settings", "filters"), 0, "whole number"),
        ((*CONV, "settings", "filters"), True, "whole number"),
        ((*CONV, "settings", "filters"), 4.0, "whole number"),
        ((*CONV, "settings", "kernel_size"), [3, 3, 3], "two whole numbers"),
        ((*CONV, "settings", "kernel_size"), [[3], 3], "whole number"),
        ((*CONV, "settings", "kernel_size"), 3, "two whole numbers"),
        ((*CONV, "settings", "padding"), "/etc/passwd", "same, valid"),
        ((*CONV, "settings", "activation"), "os.system", "possible are"),
        ((*CONV, "settings", "activation"), {"module": "os", "class_name": "system"}, "possible are"),
        ((*CONV, "settings", "activation"), None, "possible are"),
        ((*CONV, "settings", "use_bias"), 1, "true or false"),
        ((*CONV, "settings", "kernel_initializer"), {"kind": "get_file"}, "cannot be this one"),
        ((*CONV, "settings", "kernel_initializer"), {"kind": "HeNormal", "path": "x"}, "cannot be this one"),
        ((*CONV, "settings", "kernel_initializer"), {"kind": "Constant", "value": float("nan")}, "number"),
        ((*CONV, "settings", "kernel_initializer"), {"kind": "Constant", "value": "1"}, "number"),
        ((*CONV, "settings", "kernel_initializer"), "HeNormal", "cannot be this one"),
        ((*FIRST, "settings", "shape"), [8, 8, 3], "takes images of"),
        ((*DENSE, "settings", "units"), 9, "one probability for each class"),
        ((*DENSE, "settings", "activation"), "linear", "one probability for each class"),
        ((*DENSE, "inputs"), ["image"], "No layer reads 'flat'"),
        ((*CONV, "module"), "os", "not described by"),
        (("layers",), [], "2 to 500 layers"),
        (("layers",), "x", "2 to 500 layers"),
        (("layers", 1), None, "not described by"),
        (("compile_config",), {}, "2 to 500 layers"),
    ],
)
def test_everything_else_is_refused_with_a_reason(path, value, said):
    with pytest.raises(configuration.ConfigurationError, match=said):
        configuration.check(changed(path, value), IMAGE, CLASSES)
    with pytest.raises(custom.CustomNetworkError, match=said):
        custom.build(IMAGE, CLASSES, {"configuration": changed(path, value)})


@pytest.mark.parametrize("given", [None, [], 3, "x", {"layers": {}}, {"layers": [[]] * 3}])
def test_what_is_no_configuration_is_refused(given):
    with pytest.raises(configuration.ConfigurationError):
        configuration.check(given, IMAGE, CLASSES)


def test_code_that_was_not_checked_builds_nothing():
    with pytest.raises(custom.CustomNetworkError, match="Check it in the panel"):
        custom.build(IMAGE, CLASSES, {"source": custom.EXAMPLE})


# -- without the sandbox nothing runs ----------------------------------------------------------------------------------


def test_without_confirmation_nothing_runs(monkeypatch):
    monkeypatch.setattr(sandboxed, "run", lambda *_: pytest.fail("it ran"))
    with pytest.raises(custom.CustomNetworkError, match="confirm"):
        custom.configure(custom.EXAMPLE, IMAGE, CLASSES, confirmed=False)


def test_without_bubblewrap_it_is_refused_with_what_to_install(monkeypatch):
    from warpcourse.grading.sandbox.isolation import LimitsOnly

    monkeypatch.setattr(sandboxed, "find", lambda: LimitsOnly("bubblewrap is not installed"))
    with pytest.raises(DigitsError, match="sudo apt install bubblewrap"):
        custom.configure(custom.EXAMPLE, IMAGE, CLASSES, confirmed=True)


# -- hostile code ------------------------------------------------------------------------------------------------------


def refusal(source, limits=QUICK):
    with pytest.raises(custom.CustomNetworkError) as caught:
        custom.configure(source, IMAGE, CLASSES, confirmed=True, limits=limits)
    return str(caught.value)


@pytest.mark.sandbox
def test_it_sees_no_file_of_the_user(tmp_path):
    """Not what lies beside the interpreter in the home folder, nor the course's other parts, nor a file in /tmp."""
    (tmp_path / "secret").write_text("secret")
    home = Path.home()
    hidden = [tmp_path / "secret", *(COURSE / name for name in ("solutions", "tests", "digits", ".git", "README.md"))]
    hidden += [path for path in home.iterdir() if path.is_file()] if os.access(home, os.R_OK) else []
    assert "Line 2: SystemExit: []" in refusal(
        f"import os\nraise SystemExit(repr([p for p in {list(map(str, hidden))} if os.path.lexists(p)]))"
    )


@pytest.mark.sandbox
def test_it_sees_no_variable_of_the_environment(monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "a secret")
    assert "SystemExit: None" in refusal("import os\nraise SystemExit(repr(os.environ.get('MY_TOKEN')))")


@pytest.mark.sandbox
def test_it_reaches_no_network():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        said = refusal(
            "import socket\n"
            f"try: socket.create_connection({listener.getsockname()!r}, 2); found = 'connected'\n"
            "except OSError as error: found = 'refused'\nraise SystemExit(found)"
        )
    assert "refused" in said
    assert "connected" not in said


@pytest.mark.sandbox
def test_a_fork_bomb_ends():
    said = refusal("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n")
    assert "processor time" in said or "longer than" in said


@pytest.mark.sandbox
def test_an_endless_loop_ends():
    assert "endless loop" in refusal("while True: pass")


@pytest.mark.sandbox
def test_a_loop_of_sleep_ends():
    limits = dataclasses.replace(QUICK, wall_seconds=2)
    assert "longer than 2 seconds" in refusal("import time\nwhile True: time.sleep(1)", limits)


@pytest.mark.sandbox
def test_it_is_ended_when_the_user_asks():
    with pytest.raises(custom.CustomNetworkError, match="as you asked"):
        custom.configure("while True: pass", IMAGE, CLASSES, confirmed=True, limits=QUICK, cancelled=lambda: True)


@pytest.mark.sandbox
def test_a_missing_file_is_explained_by_the_sandbox():
    assert "none of your files" in refusal("open('/etc/passwd')")


@pytest.mark.sandbox
def test_memory_is_limited():
    said = refusal("held = []\nwhile True: held.append(bytearray(16 << 20))")
    assert "MemoryError" in said or "MiB of memory" in said


ANSWER = "import os, sys, json\nout = int(sys.argv[1])\n"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while True: os.write(out, b'[' * 65536)", "more than 2 MiB"),
        ("os.write(out, b'[' * 100_000); os._exit(0)", "no description of a network"),
        ("os.write(out, b'{\"configuration\": NaN}'); os._exit(0)", "no description of a network"),
        ("os.write(out, b'1' * 10_000); os._exit(0)", "no description of a network"),
        ("os.write(out, b'\\xff\\xfe'); os._exit(0)", "no description of a network"),
        ("os.write(out, b'{}'); os._exit(0)", "2 to 500 layers"),
        ("os._exit(0)", "without an answer"),
        ("os.kill(os.getpid(), 9)", "without an answer"),
        ("os.write(out, b'{\"error\": [[]]}'); os._exit(0)", "Your code failed"),
    ],
)
def test_an_answer_of_its_own_making_is_not_believed(code, said):
    assert said in refusal(ANSWER + code)


@pytest.mark.sandbox
def test_a_forged_configuration_is_checked():
    forged = json.dumps({"configuration": changed((*CONV, "kind"), "Lambda")})
    said = refusal(f"{ANSWER}os.write(out, {forged.encode()!r}); os._exit(0)")
    assert "'conv' is a Lambda" in said


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1", "no function network"),
        ("def network(image, classes)\n    pass", "Line 1: SyntaxError"),
        ("import os\n\n1 / 0", "Line 3: ZeroDivisionError"),
    ],
)
def test_mistakes_are_told_with_their_line(source, said):
    assert said in refusal(source, sandboxed.LIMITS)


@pytest.mark.sandbox
def test_the_example_comes_out_as_plain_data():
    found = custom.configure(custom.EXAMPLE, IMAGE, CLASSES, confirmed=True)
    kinds = [layer["kind"] for layer in found["layers"]]
    assert kinds[:3] == ["InputLayer", "Conv2D", "MaxPooling2D"]
    assert found["layers"][-1]["settings"]["units"] == CLASSES


def test_code_of_any_length_is_refused():
    assert "characters" in refusal("#" * 200_000)
