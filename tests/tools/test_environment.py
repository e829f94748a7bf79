"""Both pyproject.toml, the pinned sets, the layers on top of them and the environment files say the same."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib

import pytest
import yaml
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import warplab
from warpcourse import doctor
from warpcourse.paths import COURSE

ENGINE, PROJECT = (
    tomllib.loads((COURSE / file).read_text())["project"] for file in ("pyproject.toml", "warpcourse/pyproject.toml")
)
SETS = {"cpu": "requirements.txt", "gpu": "requirements-gpu.txt"}
SMALL = "requirements-small.txt"  # of `make lab` without a GPU, for labs 00 to 06, 10 and 13
# What `make setup-cluster` and `make test` add to a learner's set, in this order.
LAYERS = {"cluster": "requirements-cluster.txt", "dev": "requirements-dev.txt"}
PINNED = SETS | LAYERS | {"small": SMALL, "book": "requirements-book.txt"}
CONDA = {"cpu": "environment.yml", "gpu": "environment-gpu.yml"}
FILES = ["pyproject.toml", "warpcourse/pyproject.toml", *CONDA.values(), *PINNED.values()]
# What the course runs on: `make setup` refuses others.
PYTHONS, MACHINES = ("3.11", "3.12", "3.13", "3.14"), ("x86_64", "aarch64")
USUAL = {"python_version": "3.11", "python_full_version": "3.11.0", "platform_machine": "x86_64"}


def pins(kind: str, machine: dict[str, str] = USUAL) -> dict[str, str]:
    """{name: version} of a pinned set on a machine, each line of which must be NAME==VERSION, perhaps with a marker."""
    found, environment = {}, {**default_environment(), **machine}
    for line in (COURSE / PINNED[kind]).read_text().splitlines():
        if line.strip() and not line.strip().startswith("#"):
            match = re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)(?: ; (.+))?", line)
            assert match, f"{PINNED[kind]}: {line!r} is not NAME==VERSION or NAME==VERSION ; MARKER"
            if match.group(3) and not Marker(match.group(3)).evaluate(environment):
                continue
            name = canonicalize_name(match.group(1))
            assert name not in found, f"{PINNED[kind]} holds {name} twice"
            found[name] = match.group(2)
    return found


def with_layers(kind: str, *layers: str, machine: dict[str, str] = USUAL) -> dict[str, str]:
    """Pins of a learner's set and of layers on it, which must hold nothing twice."""
    found = pins(kind, machine)
    for layer in layers:
        added = pins(layer, machine)
        assert not found.keys() & added.keys(), f"{LAYERS[layer]} repeats what is below it; run make pins"
        found |= added
    return found


def declared(*extras: str, project: dict = PROJECT) -> list[Requirement]:
    """What a project asks for on the machine that `pins` is about, without and with extras; its own extras resolved."""
    texts = [*project["dependencies"], *(text for one in extras for text in project["optional-dependencies"][one])]
    found = []
    for requirement in map(Requirement, texts):
        if requirement.marker and not requirement.marker.evaluate({**default_environment(), **USUAL}):
            continue
        if requirement.name == "warplab":
            found += declared(*requirement.extras, project=ENGINE)
        elif requirement.name == "warpcourse":
            found += declared(*requirement.extras)
        else:
            found.append(requirement)
    return found


@pytest.mark.parametrize("kind", SETS)
def test_declared_dependencies_are_pinned_within_their_range(kind):
    base = declared(kind)
    pinned, everything = pins(kind), with_layers(kind, *LAYERS)
    assert len(base) > 30
    for requirement in base + declared(*LAYERS):
        version = (pinned if requirement in base else everything).get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} is not pinned; run make pins"
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}; run make pins"


@pytest.mark.parametrize("kind", SETS)
def test_a_learner_gets_neither_a_cluster_nor_the_tests_tools(kind):
    others = {"dask", "distributed", "pytest", "pytest-xdist", "hypothesis", "ruff", "mypy", "import-linter"}
    assert not others & pins(kind).keys()
    assert {"dask", "distributed"} <= pins("cluster").keys()
    assert others <= with_layers(kind, *LAYERS).keys()


def test_base_set_has_what_the_course_promises():
    names = {canonicalize_name(requirement.name) for requirement in declared("labs")}
    assert names >= {"jupyterlab", "nbgrader", "ipywidgets", "matplotlib", "numba-cuda", "cupy-cuda13x", "scikit-learn"}
    for kind in SETS:
        assert set(pins(kind)) >= {"nvidia-cuda-nvrtc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-cccl"}


def test_the_small_set_is_a_part_of_the_other_without_what_only_some_labs_need():
    small, whole = pins("small"), pins("cpu")
    assert small.items() < whole.items()
    needed = {canonicalize_name(requirement.name) for requirement in declared()}
    assert needed <= small.keys()
    beyond = {canonicalize_name(requirement.name) for requirement in declared("labs", "cpu")} - needed
    assert beyond >= {"tensorflow-cpu", "onnx", "fastapi", "voila", "cupy-cuda13x"}
    assert not beyond & small.keys() - {"jsonschema", "prometheus-client"}  # JupyterLab's own needs
    assert "nvidia-nvjitlink" not in small


def test_the_book_s_set_agrees_with_all_others():
    book, others = pins("book"), with_layers("cpu", *LAYERS)
    assert {name: book[name] for name in book.keys() & others.keys() if book[name] != others[name]} == {}
    assert not book.keys() & pins("small").keys()
    for requirement in declared("book"):
        name = canonicalize_name(requirement.name)
        assert requirement.specifier.contains((book | pins("small"))[name]), f"{requirement}; run make pins"


def test_the_sets_agree_on_what_they_share():
    cpu, gpu = pins("cpu"), pins("gpu")
    assert {name: cpu[name] for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]} == {}
    assert cpu.keys() - gpu.keys() == {"tensorflow-cpu"}
    assert gpu.keys() - cpu.keys() >= {"tensorflow", "nvidia-cudnn-frontend"}


@pytest.mark.parametrize("kind", SETS)
def test_compilers_and_headers_are_of_cuda_13_0(kind):
    """A driver for CUDA 13.0 refuses the PTX of newer compilers."""
    pinned = pins(kind)
    for name in ("cuda-toolkit", "nvidia-cuda-nvrtc", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-crt"):
        assert pinned[name].startswith("13.0."), f"{name} {pinned[name]}"


@pytest.mark.parametrize("kind", SETS)
def test_no_two_packages_that_overwrite_each_other(kind):
    """cuDNN and NCCL install into the same directories whichever CUDA they are built for."""
    pinned = set(pins(kind))
    for library in ("cudnn", "nccl"):
        builds = {name for name in pinned if re.fullmatch(rf"nvidia-{library}(-jit)?(-cu\d+)?", name)}
        assert len(builds) == (1 if kind == "gpu" else 0), builds
    assert len(pinned & {"tensorflow", "tensorflow-cpu"}) == 1
    assert all(len(pinned & set(pair)) < 2 for pair in doctor.RIVALS)


@pytest.mark.parametrize("layers", [(), ("cluster",), ("cluster", "dev")])
def test_pinned_set_is_closed(layers):
    """Every dependency of every installed pin is pinned too: uv installs what the files name and nothing else."""
    kind = "gpu" if doctor.pinned_set(doctor.installed_packages()) == SETS["gpu"] else "cpu"
    pinned, examined = with_layers(kind, *layers, machine={}), 0
    for name in pinned:
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            version = pinned.get(canonicalize_name(requirement.name))
            assert version, f"{name} needs {requirement}"
            assert requirement.specifier.contains(version, prereleases=True), (
                f"{name} needs {requirement}, not {version}"
            )
            examined += 1
    assert examined > 200


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("machine", MACHINES)
def test_what_lacks_wheels_somewhere_is_left_out_there(kind, python, machine):
    """TensorFlow has none for Python 3.14, tensorflow-cpu none for ARM, LoadGen none for either."""
    where = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
    pinned = pins(kind, where)
    intel, old = machine == "x86_64", python != "3.14"
    cpu = ({"tensorflow-cpu"} if intel else {"tensorflow"}) if old else set()
    expected = cpu if kind == "cpu" else {"tensorflow"} if old else set()
    assert {"tensorflow", "tensorflow-cpu"} & pinned.keys() == expected
    assert ("mlcommons-loadgen" in pinned) == (intel and old)
    assert pinned.keys() >= {"numba-cuda", "nvidia-cuda-nvrtc", "nbgrader", "onnxruntime", "scipy"}
    assert not pinned.keys() & {"colorama", "pywin32", "pywinpty", "appnope"}


@pytest.mark.parametrize("kind", SETS)
def test_conda_environment_is_the_pinned_set(kind):
    text = (COURSE / CONDA[kind]).read_text()
    environment = yaml.safe_load(text)
    *packages, last = environment["dependencies"]
    assert last == {"pip": [f"-r {SETS[kind]}", "-e ."]}
    python, pip = (Requirement(text.replace(" ", "")) for text in packages)
    assert (python.name, pip.name) == ("python", "pip")
    assert python.specifier == SpecifierSet(PROJECT["requires-python"])
    assert all(file in text for file in LAYERS.values())
    name = environment["name"]
    assert f"conda env create -f {CONDA[kind]} && conda activate {name} && python -m warplab lab" in text
    assert text.endswith(f"\n# Next: conda activate {name} && python -m warplab lab\n")


def test_the_wheels_are_of_one_version():
    """The course's package takes the engine's version, and asks for an engine of it.

    CITATION.cff names the latest release of CHANGELOG.md. What comes after that has a version of its own, of a release
    that is being developed.
    """
    (engine,) = (Requirement(text) for text in PROJECT["dependencies"] if text.startswith("warplab["))
    assert engine.specifier.contains(warplab.__version__)
    assert "version" in ENGINE["dynamic"]
    assert "version" in PROJECT["dynamic"]
    first, *others = re.findall(r"^## (.*)$", (COURSE / "CHANGELOG.md").read_text(), re.M)
    unreleased = first.startswith("Unreleased")
    release, date = (others[0] if unreleased else first).split(", ")
    citation = yaml.safe_load((COURSE / "CITATION.cff").read_text())
    assert (citation["version"], str(citation["date-released"])) == (release, date)
    version = Version(warplab.__version__)
    if unreleased:
        assert first == f"Unreleased, as {version}"
        assert version.is_devrelease
        assert version > Version(release)
    else:
        assert str(version) == release


def test_range_of_pythons_is_the_same_everywhere():
    namespace: dict = {"__name__": "bootstrap", "__file__": str(COURSE / "tools" / "bootstrap.py")}
    exec((COURSE / "tools" / "bootstrap.py").read_text(), namespace)
    assert (namespace["OLDEST"], namespace["NEWEST"]) == (doctor.OLDEST_PYTHON, doctor.NEWEST_PYTHON)
    supported = SpecifierSet(PROJECT["requires-python"])
    inside = [f"3.{minor}" for minor in range(8, 20) if supported.contains(f"3.{minor}.0")]
    oldest, newest = (".".join(map(str, version)) for version in (doctor.OLDEST_PYTHON, doctor.NEWEST_PYTHON))
    assert (inside[0], inside[-1]) == (oldest, newest)
    assert tuple(inside) == PYTHONS
    assert all(minor in namespace["RANGE"] for minor in inside)
    assert SpecifierSet(ENGINE["requires-python"]).contains(f"{newest}.0")


@pytest.mark.parametrize("file", FILES)
def test_no_address_hash_or_machine_path(file):
    text = (COURSE / file).read_text()
    for sign in (
        "://",
        "--index",
        "--extra-index",
        "--find-links",
        "--hash",
        "sha256",
        " @ ",
        "/home/",
        "/root",
        "/tmp",
    ):
        assert sign not in text, f"{file} holds {sign}"
    assert not re.search(r"\b[\w-]+\.(org|com|io|net|dev)\b", text)


@pytest.mark.parametrize("kind", PINNED)
def test_header_names_the_command_that_compiles_it(kind):
    assert "make pins" in (COURSE / PINNED[kind]).read_text().splitlines()[1]
    assert "\npins:" in (COURSE / "Makefile").read_text()
