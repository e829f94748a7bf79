"""Lab 09's plan files: what is saved comes back, and everything else is refused. `fuzz_plans` loads 10,000."""

import json
import pickle

import numpy as np
import pytest

from kernels.fusion import digits, fuzz_plans, interpret, network, plan, plan_file
from kernels.fusion.engine import Engine
from kernels.fusion.plan_file import PlanFileError

SHARE = 450  # of the files that `python -m kernels.fusion.fuzz_plans` loads: 30 of each kind


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


def test_filters_are_kept_in_their_precision(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    filters = {node.name: node.weights["filters"].size for node in example.graph.nodes if "filters" in node.weights}
    others = sum(
        values.size for node in example.graph.nodes for name, values in node.weights.items() if name != "filters"
    )
    bytes_ = filters["first"] + filters["third"] + 2 * filters["second"] + 4 * filters["classes"] + 4 * others
    assert bytes_ <= len(weights) < bytes_ + 16 * 20  # and gaps
    assert b"pickle" not in text


def test_each_kind_of_damage_has_its_own_error(example, tmp_path):
    data = plan_file.to_bytes(example)
    text, weights = plan_file.parts(data)
    for damaged, message in (
        (b"", "is no plan: it does not begin as one"),
        (pickle.dumps([1, 2]), "is no plan"),
        (data[:40], "is cut short after 40 bytes"),
        (data[:-1], "copy it again"),
        (data + b"x", "copy it again"),
        (data[:16] + b"\x02" + data[17:], "has version 2, and this program reads 1"),
        (data[:-5] + bytes([data[-5] ^ 1]) + data[-4:], "is damaged: its checksum"),
        (plan_file.sealed(b"{}", weights), "the plan must be a record of name, device"),
        (plan_file.sealed(text + b"]", weights), "its text is no JSON"),
        (plan_file.sealed(text.replace(b'"batch":1', b'"batch":0'), weights), "batch must be a whole number from 1"),
        (plan_file.sealed(text.replace(b'"batch":1', b'"batch":1e400'), weights), "batch must be a whole number"),
        (plan_file.sealed(text.replace(b'"batch":1', b'"batch":NaN'), weights), "holds NaN, which is no number"),
        (plan_file.sealed(text.replace(b'"batch":1', b'"batch":1,"batch":1'), weights), "says something twice"),
        (plan_file.sealed(text.replace(b'"op":"softmax"', b'"op":"system"'), weights), "no operator 'system'"),
        (plan_file.sealed(text, weights + bytes(16)), "of which arrays take"),
        (plan_file.sealed(text, b"\xff" * len(weights)), "not finite"),
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
        plan_file.from_bytes(plan_file.sealed(text.replace(b'"tactic":"softmax"', b'"tactic":"softer"'), weights))
    with pytest.raises(plan.PlanError, match="cannot run by the tactic 'pool': it runs max_pool"):
        plan_file.from_bytes(plan_file.sealed(text.replace(b'"tactic":"softmax"', b'"tactic":"pool"'), weights))


def test_tensors_that_share_memory_while_alive_are_refused(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    value = json.loads(text)
    wide = next(placed for placed in value["memory"] if placed["tensor"] == "wide")
    assert wide["offset"] != example.memory.offset("q")
    wide["offset"] = example.memory.offset("q")
    with pytest.raises(plan.PlanError, match="share memory, both alive"):
        plan_file.from_bytes(plan_file.sealed(json.dumps(value).encode(), weights))


def test_a_plan_for_another_device_warns(example):
    text, weights = plan_file.parts(plan_file.to_bytes(example))
    other = text.replace(f'"device":"{example.device}"'.encode(), b'"device":"Tesla P4"')
    with pytest.warns(UserWarning, match=r"was built for Tesla P4 and runs on .* build it again here"):
        plan_file.from_bytes(plan_file.sealed(other, weights))


def test_damaged_and_tampered_files_never_crash_and_never_load_wrong():
    outcome = fuzz_plans.fuzz(SHARE, run_every=5)
    assert not outcome.failures
    assert sum(outcome.refused.values()) + sum(outcome.loaded.values()) == SHARE
    assert set(outcome.refused) == {*fuzz_plans.DAMAGE, *fuzz_plans.TAMPERING}
    assert not set(outcome.loaded) & set(fuzz_plans.DAMAGE)
    assert outcome.ran >= 1


def test_the_fuzz_finds_a_loader_that_does_not_check(monkeypatch):
    monkeypatch.setattr(
        fuzz_plans, "load", lambda data: plan_file._read(plan_file._json(plan_file.parts(data)[0]), b"")
    )
    assert fuzz_plans.fuzz(0).failures == []
    monkeypatch.setattr(fuzz_plans, "load", lambda _: fuzz_plans.example())
    wrong = fuzz_plans.fuzz(8).failures
    assert len(wrong) == 8
    assert all("a damaged file was loaded" in failure for failure in wrong)


def test_the_command_says_what_came_of_the_files(capsys):
    assert fuzz_plans.main(["--files", "30", "--seed", "3"]) == 0
    assert "30 files, seed 3: " in capsys.readouterr().out
