"""Lab 09's measurements as far as no GPU is needed: variants, ratios, and what is said where something is missing."""

import importlib.util
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from kernels.fusion import benchmark, tactics
from kernels.fusion.graph import interpret
from kernels.fusion.measured import others as measured_peers
from kernels.fusion.peers import on_cudnn, on_pytorch
from kernels.fusion.tactics.layer import layers
from kernels.fusion.trained import variants
from kernels.fusion.trained.network import trained_graph
from tests.support.random_inputs import generator
from warpcourse.bench import timing
from warplab.hardware import backend


def test_the_unfused_variant_computes_what_the_trained_network_does(capsys):
    graph = variants.variant(variants.UNFUSED)
    images = generator().uniform(0, 1, (2, 1, 8, 8))
    (name,) = graph.outputs
    assert np.array_equal(interpret.run(graph, images)[name], interpret.run(trained_graph(), images)[name])
    assert {node.op for node in graph.nodes} >= {"batch_norm", "relu", "concat", "add"}
    assert "dropout" not in {node.op for node in graph.nodes}
    assert "removed" not in capsys.readouterr().out  # what passes say
    with pytest.raises(ValueError, match="there is no variant 'int4'; choose one of unfused float32, float32"):
        variants.variant("int4")


def test_cudnn_gets_each_slice_of_a_horizontally_fused_cbr_by_itself():
    graph = variants.variant("float32")
    apart = measured_peers._one_slice_each(graph)
    assert max(len(node.outputs) for node in graph.nodes) == 3
    assert max(len(node.outputs) for node in apart.nodes) == 1
    images = generator().uniform(0, 1, (2, 1, 8, 8))
    (name,) = graph.outputs
    np.testing.assert_allclose(interpret.run(apart, images)[name], interpret.run(graph, images)[name], atol=1e-12)


def test_ratios_are_the_fastest_other_over_ours():
    def row(ours, precision, seconds, batch=1, correct=True):
        clocks = dict.fromkeys(measured_peers.CLOCKS, seconds)
        return {"ours": ours, "precision": precision, "batch": batch, "correct": correct, **clocks}

    rows = [
        row(True, "float32", 2.0),
        row(True, "int8", 1.0),
        row(False, "float32", 3.0),
        row(False, "float32", 1.0, correct=False),
        row(False, "float16", 2.5),
        row(True, "float32", 1.0, batch=128),
    ]
    found = measured_peers.ratios(rows)
    assert found["batch 1, float32"] == dict.fromkeys(("gpu", "latency", "steady"), 1.5)
    assert found["batch 1, any precision"]["latency"] == 2.5
    assert len(found) == 2  # nobody else at batch 128


@pytest.mark.skipif(backend.name() == "gpu", reason="says what happens without a GPU")
def test_without_a_gpu_nothing_is_measured(capsys):
    with pytest.raises(SystemExit) as stopped:
        benchmark.BENCHMARK.main([])
    assert stopped.value.code == timing.NO_GPU
    assert "needs an NVIDIA GPU" in capsys.readouterr().err
    (layer, *_) = [one for one in layers(variants.variant("float32"), 1) if one.node.op == "cbr"]
    assert on_cudnn.tactic().refuses(layer) == "cuDNN needs an NVIDIA GPU"
    assert "cudnn" not in {tactic.name for tactic in tactics.candidates(layer)}


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_without_pytorch_its_measurement_says_so():
    with pytest.raises(RuntimeError, match="torch is not installed"):
        on_pytorch.prepared(trained_graph(), np.zeros((1, 1, 8, 8), np.float32), "eager", "float32")


@pytest.mark.parametrize(
    ("shipped", "given", "taken"),
    [(True, {}, "theirs"), (True, {"TRITON_PTXAS_PATH": "mine"}, "mine"), (False, {}, None)],
)
def test_triton_takes_the_ptxas_of_inductors_workers(monkeypatch, tmp_path, shipped, given, taken):
    ptxas, seen = tmp_path / "bin/ptxas", []
    if shipped:
        ptxas.parent.mkdir()
        ptxas.touch()
    monkeypatch.setattr(os, "environ", dict(given))
    workers = SimpleNamespace(wait_pool_ready=lambda: seen.append(os.environ.get("TRITON_PTXAS_PATH")))
    monkeypatch.setitem(sys.modules, "torch._inductor.async_compile", SimpleNamespace(AsyncCompile=workers))
    on_pytorch._compile_in_parallel(SimpleNamespace(__file__=str(tmp_path / "__init__.py")))
    assert seen == [str(ptxas) if taken == "theirs" else taken]


@pytest.mark.gpu
def test_the_engine_beside_the_interpreter_and_the_clock():
    from kernels.fusion.measured import engine as measured_engine

    for kind in variants.KINDS:
        row = measured_engine.row(kind, 1, "CUDA graph")
        assert row["correct"], row
        assert row["accuracy"] >= 0.98
        assert row["launches"] < 20 or kind == variants.UNFUSED
