"""A lab's benchmark as a command: what it measures, records and prints, and what a failure leaves."""

import json
import subprocess
import sys

import pytest

from warpcourse.bench import random_inputs, timing
from warpcourse.bench.benchmark import Benchmark, Table, correct
from warpcourse.bench.lab import labs
from warpcourse.bench.recordings import Recordings
from warplab.hardware import backend

MACHINE = {"device": "Some GPU", "gpus": 1, "date": "2001-02-03"}
BENCHMARKS = [lab for lab in labs() if lab.benchmark]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """make(**measurements): a benchmark of these functions, with a table for those whose name begins with "table"."""
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(random_inputs, "seed_cupy", lambda: None)
    monkeypatch.setattr(timing, "machine", lambda gpus=1: MACHINE)
    monkeypatch.setattr(timing, "empty_launch", lambda: {"seconds": 2.34567e-6})
    (tmp_path / "kernels" / "topic").mkdir(parents=True)

    def make(**measurements):
        tables = {
            key: Table(lambda value, key=key: f"{key}: {value['gbps']}", lambda value: {"gbps": value["gbps"]})
            for key in measurements
            if key.startswith("table")
        }
        return Benchmark(Recordings("kernels.topic", course=tmp_path), measurements, tables)

    return make


def value(gbps, right=True):
    return lambda: {"gbps": gbps, "rows": [{"correct": right}]}


def fail():
    raise ValueError("too little memory")


def last(capsys):
    out, err = capsys.readouterr()
    return json.loads(out.splitlines()[-1]), out, err


def test_tables_are_measured_and_nothing_is_written(made, capsys):
    benchmark = made(table=value(1.23456), more=fail)
    assert benchmark.main([]) == 0
    line, out, _ = last(capsys)
    assert line == {"benchmark": "topic", "figures": {"correct": True, "table": {"gbps": 1.235}}} | {
        key: MACHINE[key] for key in ("device", "date")
    }
    assert "table: 1.235\nan empty launch: 2.35 µs\n" in out
    assert not benchmark.recordings.path.exists()


def test_record_measures_and_writes_everything(made, capsys):
    benchmark = made(table=value(1.0), more=lambda: 2)
    assert benchmark.main(["--record"]) == 0
    assert benchmark.recordings.values() == {"table": {"gbps": 1.0, "rows": [{"correct": True}]}, "more": 2}
    assert benchmark.recordings.load()["more"].machine == MACHINE | {"empty_seconds": 2.346e-6}


def test_only_the_keys_asked_for_are_measured(made, capsys):
    benchmark = made(table_a=value(1.0), table_b=fail, more=lambda: 2)
    assert benchmark.main(["--record", "--only", "table_a", "--only", "more"]) == 0
    assert list(benchmark.recordings.values()) == ["table_a", "more"]
    assert benchmark.main(["--record", "--only", "more"]) == 0
    assert list(benchmark.recordings.values()) == ["table_a", "more"], "what was recorded before stays"


def test_an_unknown_key_is_refused_with_those_there_are(made, capsys):
    with pytest.raises(SystemExit) as end:
        made(table=fail).main(["--only", "tabel"])
    assert end.value.code == 2
    assert "invalid choice: 'tabel' (choose from" in capsys.readouterr().err


def test_a_failing_measurement_loses_nothing(made, capsys):
    benchmark = made(table_a=value(1.0), table_b=fail, table_c=value(3.0))
    benchmark.recordings.write("table_b", "before", MACHINE)
    assert benchmark.main(["--record"]) == 1
    assert set(benchmark.recordings.values()) == {"table_a", "table_b", "table_c"}
    assert benchmark.recordings.values()["table_b"] == "before"
    line, out, err = last(capsys)
    assert line["figures"]["failed"] == ["table_b"]
    assert "table_c: 3.0" in out
    assert "ValueError: too little memory" in err
    assert "python -m kernels.topic.benchmark --record --only table_b" in err


def test_a_wrong_output_gives_code_1(made, capsys):
    assert made(table=value(1.0, right=False)).main([]) == 1
    assert last(capsys)[0]["figures"]["correct"] is False


def test_too_few_gpus_give_code_2(made, capsys, monkeypatch):
    benchmark = made(table=fail)
    benchmark.recordings.gpus = 4
    monkeypatch.setattr(timing, "gpu_count", lambda: 1)
    with pytest.raises(SystemExit) as end:
        benchmark.main([])
    assert end.value.code == timing.NO_GPU
    assert "needs 4 GPUs; this machine has 1" in capsys.readouterr().err


def test_correct_looks_everywhere():
    assert correct({"rows": [{"correct": True}], "n": 3, "name": "x"})
    assert not correct([{"a": {"correct": True}}, {"a": [{"correct": False}]}])


@pytest.mark.parametrize("lab", BENCHMARKS, ids=lambda lab: lab.slug)
def test_a_labs_benchmark_shows_what_was_recorded(lab):
    module = lab.module(lab.benchmark)
    benchmark, values = module.BENCHMARK, lab.recordings.values()
    assert benchmark.recordings.path == lab.recordings.path
    assert benchmark.recordings.gpus == lab.gpus
    assert set(benchmark.tables) <= set(benchmark.measurements)
    if values:
        assert " NO\n" not in benchmark.text(values) + "\n"
        summary = benchmark.summary(values)
        assert summary["correct"] is True
        assert json.loads(json.dumps(summary)) == summary


@pytest.mark.parametrize("lab", BENCHMARKS, ids=lambda lab: lab.slug)
def test_without_a_gpu_a_benchmark_says_so_and_ends_with_code_2(lab, monkeypatch, capsys):
    monkeypatch.setenv("WARPLAB_BACKEND", "simulator")
    for arguments in ([], ["--record"]):
        with pytest.raises(SystemExit) as end:
            lab.module(lab.benchmark).BENCHMARK.main(arguments)
        out, err = capsys.readouterr()
        assert end.value.code == timing.NO_GPU
        assert "needs an NVIDIA GPU" in err
        assert out == ""


def test_a_benchmark_is_a_command():
    lab = next(iter(BENCHMARKS), None)
    if lab is None:
        return
    command = [sys.executable, "-m", f"{lab.package}.{lab.benchmark}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--only KEY" in done.stdout


def test_every_measurement_begins_with_the_same_numbers(made):
    seen = []
    for _ in range(2):
        random_inputs.restart()
        seen.append(random_inputs.generator().random(3).tolist())
        random_inputs.generator().random(5)
    assert seen[0] == seen[1] != random_inputs.generator().random(3).tolist()
