"""Lab 09's plan files: what is saved comes back, and everything else is refused. `fuzz_plans` loads 10,000."""

import json
import pickle

import numpy as np
import pytest
from safetensors import numpy as safetensors
from safetensors import safe_open

from kernels.fusion import plan
from kernels.fusion.graph import Graph, interpret
from kernels.fusion.graph.build import Builder
from kernels.fusion.passes.optimise import fuse
from kernels.fusion.plan import plan_file
from kernels.fusion.plan.engine import Engine
from kernels.fusion.plan.plan_file import PlanFileError
from kernels.fusion.trained import digits, network
from tests.support.random_inputs import generator

from . import fuzz_plans

SHARE = 510  # of the files that `python -m tests.labs.09_fusion.fuzz_plans` loads: 30 of each kind


@pytest.fixture(scope="module")
def example():
    return fuzz_plans.example()


def test_a_plan_comes_back_as_it_was(example, tmp_path):
    path = tmp_path / "example.plan"
    plan_file.save(example, path)
    found = plan_file.load(path)
    assert found.choices == example.choices
    assert found.memory == example.memory
    assert (found.batch, found.device) == (example.batch, example.device)
    assert list(found.graph.tensors.values()) == list(example.graph.tensors.values())
    assert [node.name for node in found.graph.nodes] == [node.name for node in example.graph.nodes]
    assert plan_file.to_bytes(found) == path.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["example.plan"]
    x = np.ones((1, 4, 6, 6), np.float32)
    assert Engine(found).run(x).tobytes() == Engine(example).run(x).tobytes()


def test_the_trained_network_in_a_plan(tmp_path):
    graph, images = network.trained_graph(), digits.split()[2].images[:2]
    plan_file.save(plan.build(graph), tmp_path / "a.plan")
    found = plan_file.load(tmp_path / "a.plan")
    assert found.graph == graph  # float32 weights come back to the bit
    np.testing.assert_allclose(Engine(found).run(images), interpret.run(graph, images)[network.OUTPUT], atol=1e-6)


def test_shapes_and_functions_in_a_plan(tmp_path):
    made = fuzz_plans.shapes()
    plan_file.save(made, tmp_path / "a.plan")
    found = plan_file.load(tmp_path / "a.plan")
    assert found.graph == made.graph
    x = generator().standard_normal((1, 4, 5, 6)).astype(np.float32)
    np.testing.assert_allclose(Engine(found).run(x), interpret.run(made.graph, x)["y"], rtol=1e-4, atol=1e-5)


def branches_of(names: list[str], bias: float = 0.0) -> Graph:
    builder = Builder("branches")
    x = builder.input("x", (4, 5, 5))
    for name in names:
        builder.add("conv", name, [x], {"filters": np.ones((2, 4, 1, 1)), "bias": np.full(2, bias)})
    return fuse(builder.graph(*names))


def test_plans_of_networks_with_long_names_are_loaded(tmp_path):
    """Four names of 52 characters, joined by horizontal fusion, and one of 210."""
    for names in ([f"googlenet/mixed_5b/inception/branch_{i}/conv2d_1x1_{i:02}" for i in range(4)], ["x" * 210]):
        made = plan.build(branches_of(names))
        plan_file.save(made, tmp_path / "a.plan")
        assert plan_file.load(tmp_path / "a.plan").choices == made.choices


def test_a_mask_may_hold_infinity(tmp_path):
    builder = Builder("mask")
    mask = builder.add("constant", "mask", [], {"value": [0, -np.inf, 0]})
    graph = builder.graph(builder.add("add", "y", [builder.input("x", (3,)), mask]))
    plan_file.save(plan.build(graph), tmp_path / "a.plan")
    found = Engine(plan_file.load(tmp_path / "a.plan")).run(np.float32([[1, 2, 3]]))
    assert found.tolist() == [[1, -np.inf, 3]]


@pytest.mark.parametrize(
    ("names", "bias", "message"),
    [
        (["layer"], np.inf, "'layer': its 'bias' hold numbers that are not finite"),
        (["layer"], np.nan, "'layer': its 'bias' hold numbers that are not finite"),
        (["x" * 501], 0, r"is not of type 'name' \(1 to 500 printable characters\)"),
        (["two\nlines"], 0, "is not of type 'name'"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(names, bias, message, tmp_path):
    (tmp_path / "a.plan").write_bytes(b"a plan of yesterday")
    with pytest.raises(plan.PlanError, match=f"{message}.*Mend the network, and build the plan again"):
        plan_file.save(plan.build(branches_of(names, bias)), tmp_path / "a.plan")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.plan", b"a plan of yesterday")]


def test_filters_are_kept_in_their_precision(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    kept = {name: array.dtype for name, array in weights.items()}
    assert kept.pop("first/filters") == kept.pop("third/filters") == np.int8
    assert kept.pop("second/filters") == np.float16
    assert set(kept.values()) == {np.dtype(np.float32)}
    held = {f"{node.name}/{name}": array.shape for node in example.graph.nodes for name, array in node.weights.items()}
    assert {name: array.shape for name, array in weights.items()} == held
    assert "pickle" not in text


def test_a_plan_is_a_file_of_safetensors(example, tmp_path):
    plan_file.save(example, tmp_path / "a.plan")
    with safe_open(tmp_path / "a.plan", "np") as file:
        assert "first/filters" in file.keys()  # noqa: SIM118 (safe_open is no dict)
        assert list(file.metadata()) == ["warplab plan 2"]


def test_each_kind_of_damage_has_its_own_error(example, tmp_path):
    data = plan_file.to_bytes(example)
    text, weights = plan_file.parts(data)
    ones = {name: np.full_like(array, -1) for name, array in weights.items()}
    nan = weights | {"first/bias": weights["first/bias"] * np.nan}
    double = weights | {"first/bias": weights["first/bias"].astype(np.float64)}
    for damaged, message in (
        (b"", "is no plan: it does not begin as one"),
        (pickle.dumps([1, 2]), "is no plan"),
        (data[:40], "is cut short or damaged .*: copy it again"),
        (data[:-1], "is cut short or damaged .*: copy it again"),
        (data + b"x", "is cut short or damaged .*: copy it again"),
        (safetensors.save({"a": np.ones(3)}), "is no plan of version 2"),
        (data.replace(b"warplab plan 2", b"warplab plan 3"), "is no plan of version 2, which this program reads"),
        (b"\x89WARPLAB-PLAN\r\n\x1a" + bytes(100), "has version 1, and this program reads 2: build and save the plan"),
        (data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "is damaged: its checksum"),
        (b"\xff" * 8 + data[8:], "is cut short or damaged .*: copy it again"),
        (
            plan_file.joined(text.replace('"inputs":["logits"]', '"inputs":["y"]'), weights),
            "reads 'y', of whose 5 channels 0 are",
        ),
        (
            plan_file.joined(text.replace('"shape":[8,6,6]', '"shape":[8,1048576,6]'), weights),
            "makes .* and writes into",
        ),
        (plan_file.joined("{}", weights), "in its plan: 'name' is a required property"),
        (plan_file.joined(text + "]", weights), "its text is no JSON"),
        (
            plan_file.joined(text.replace('"batch":1', '"batch":0'), weights),
            "plan batch: 0 is less than the minimum of 1",
        ),
        (plan_file.joined(text.replace('"batch":1', '"batch":1.0'), weights), "1.0 is not of type 'whole number'"),
        (plan_file.joined(text.replace('"batch":1', '"batch":1e400'), weights), "batch: inf is not of type 'whole"),
        (plan_file.joined(text.replace('"batch":1', '"batch":NaN'), weights), "holds NaN, which is no number"),
        (plan_file.joined(text.replace('"batch":1', '"batch":1,"batch":1'), weights), "says something twice"),
        (plan_file.joined(text.replace('"op":"softmax"', '"op":"system"'), weights), "no operator 'system'"),
        (plan_file.joined(text, weights | {"none/bias": np.ones(3)}), "it has weights of 'none', and no such layer"),
        (plan_file.joined(text, nan), "layer 'first': its 'bias' hold numbers that are not finite"),
        (plan_file.joined(text, double), "its 'bias' are float64, which its precision does not have"),
        (plan_file.joined(text, ones), "needs filters, and a scale above 0 for each"),
    ):
        path = tmp_path / "a.plan"
        path.write_bytes(damaged)
        with pytest.raises(PlanFileError, match=message):
            plan_file.load(path)
    with pytest.raises(FileNotFoundError):
        plan_file.load(tmp_path / "none.plan")


def test_a_tactic_that_this_program_lacks_is_named(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    with pytest.raises(plan.PlanError, match="layer 'softmax': there is no tactic 'softer'"):
        plan_file.from_bytes(plan_file.joined(text.replace('"tactic":"softmax"', '"tactic":"softer"'), weights))
    with pytest.raises(plan.PlanError, match="cannot run by the tactic 'pool': it runs max_pool"):
        plan_file.from_bytes(plan_file.joined(text.replace('"tactic":"softmax"', '"tactic":"pool"'), weights))


def test_tensors_that_share_memory_while_alive_are_refused(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    value = json.loads(text)
    wide = next(placed for placed in value["memory"] if placed["tensor"] == "wide")
    assert wide["offset"] != example.memory.offset("q")
    wide["offset"] = example.memory.offset("q")
    with pytest.raises(
        plan.PlanError, match=r"^the file cannot run here: .* share memory, both alive.*; build the plan"
    ):
        plan_file.from_bytes(plan_file.joined(json.dumps(value), weights))


def test_a_plan_for_another_device_warns(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    other = text.replace(f'"device":"{example.device}"', '"device":"Tesla P4"')
    with pytest.warns(UserWarning, match=r"was built for Tesla P4 and runs on .* build it again here"):
        plan_file.from_bytes(plan_file.joined(other, weights))


def test_damaged_and_tampered_files_never_crash_and_never_load_wrong():
    outcome = fuzz_plans.fuzz(SHARE, run_every=5)
    assert not outcome.failures
    assert sum(outcome.refused.values()) + sum(outcome.loaded.values()) == SHARE
    assert set(outcome.refused) == {*fuzz_plans.DAMAGE, *fuzz_plans.TAMPERING}
    assert not set(outcome.loaded) & set(fuzz_plans.DAMAGE)
    assert outcome.ran >= 10


def test_the_fuzz_finds_an_engine_that_computes_another_graph(monkeypatch):
    monkeypatch.setattr(fuzz_plans, "Engine", lambda _: Engine(fuzz_plans.example()))
    assert any("another result" in failure for failure in fuzz_plans.fuzz(300).failures)


def test_the_fuzz_finds_a_loader_that_does_not_check(monkeypatch):
    monkeypatch.setattr(fuzz_plans, "load", lambda data: plan_file._read(plan_file._json(plan_file.parts(data)[0]), {}))
    assert fuzz_plans.fuzz(0).failures == []
    monkeypatch.setattr(fuzz_plans, "load", lambda _: fuzz_plans.example())
    wrong = fuzz_plans.fuzz(8).failures
    assert len(wrong) == 8
    assert all("a damaged file was loaded" in failure for failure in wrong)


def test_the_command_says_what_came_of_the_files(capsys):
    assert fuzz_plans.main(["--files", "30", "--seed", "3"]) == 0
    assert "30 files, seed 3: " in capsys.readouterr().out
