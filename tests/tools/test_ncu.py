"""The simulator's counters against those that Nsight Compute read on a GPU (`make compare-ncu`)."""

import json
import shutil

import pytest

from tools import ncu, ncu_page
from warplab.hardware import backend
from warplab.paths import COURSE

# A lab whose kernels no machine with ncu has run yet lacks the file; `make compare-ncu` on one writes it.
TOPICS = [topic for topic in ncu.topics() if (COURSE / "kernels" / topic / "ncu.json").exists()]
RECORDED = {topic: ncu.recording(topic) for topic in TOPICS}


@pytest.fixture(scope="module")
def results():
    return {topic: (RECORDED[topic], ncu.compare(topic, RECORDED[topic])) for topic in TOPICS}


def failing(comparisons):
    return [c for c in comparisons if not c.holds]


@pytest.mark.parametrize("topic", TOPICS)
def test_counters_are_those_of_the_hardware(topic, results):
    _, comparisons = results[topic]
    assert ncu.unrecorded(topic, RECORDED[topic]) == ([], [])
    assert len(comparisons) == len(ncu.launches(topic)) * (len(ncu.COMPARED) + 1)
    assert not failing(comparisons), ncu.text(failing(comparisons))


@pytest.mark.parametrize("topic", sorted(set(ncu.topics()) - set(TOPICS)))
def test_a_lab_that_is_not_recorded_yet_can_be(topic):
    """That the simulator runs every launch, without a word of its checks."""
    for launch in ncu.launches(topic):
        assert ncu.simulated(launch)[ncu.EFFICIENCY] > 0
    pytest.skip(f"kernels/{topic}/ncu.json does not exist: run `make compare-ncu` on a machine with a GPU")


def test_at_least_thirty_kernels_are_compared():
    kernels = {ncu_kernel(launch) for topic in TOPICS for launch in ncu.launches(topic)}
    assert len(kernels) >= 30


def ncu_kernel(launch):
    from warplab.launch.kernel_source import source_of

    return source_of(launch.kernel()).name


def test_equal_means_equal(results):
    """Requests, sectors and wavefronts have no tolerance but on the launches that say why; nearly all say nothing."""
    every = [c for _, comparisons in results.values() for c in comparisons if c.counter in ncu.EQUAL]
    unequal = [c for c in every if not c.equal]
    assert all(len(c.difference.reason) > 40 for c in unequal)
    # The metric of the bytes leaves out copies to shared memory, of which there are many launches.
    unequal = [c for c in unequal if (c.counter, c.ncu) != ("global_load_bytes", 0)]
    assert len({c.launch for c in unequal}) <= 30 < 300 < len({c.launch for c in every})
    shared = {c.launch for c in unequal if c.counter.startswith("shared")}
    # See launches.py of memory_access, warp_divergence, matmul and tensor_core. In lab 05 step 4 leaves copies out by a
    # predicate, and step 3 copies zeros where tiles are not whole.
    tensor = {launch for launch in shared if launch.startswith("mma_")}
    assert all(launch.startswith("mma_stages") or "128 × 128 × 64" not in launch for launch in tensor)
    shared -= tensor
    assert shared == {
        *("prefix sum of 8192", "prefix sum of 8007", "cuda_select_pipelined<float, 12>, one block"),
        *(f"tuned 128 × 128, {shape}" for shape in ("128 × 128 × 32", "130 × 132 × 20", "65 × 131 × 37")),
        *(f"tuned 64 × 64, {shape}" for shape in ("128 × 128 × 32", "130 × 132 × 20")),
    }


def test_branches_are_those_of_the_hardware_but_for_the_launches_that_say_why(results):
    for topic in ("counters", "vector_multiply"):
        _, comparisons = results[topic]
        branches = [c for c in comparisons if c.counter in ncu.BRANCHES]
        assert len({c.launch for c in branches if c.ncu}) > (200 if topic == "counters" else 0)
        unequal = [c for c in branches if not c.equal]
        assert all(c.difference is not None for c in unequal)
        assert len({c.launch for c in unequal}) <= 9


def test_the_page_is_the_one_of_these_recordings(results):
    assert ncu_page.PAGE.read_text() == ncu_page.document(results)
    page = ncu_page.PAGE.read_text()
    for recorded in RECORDED.values():
        assert f"{recorded['device']}, ncu {recorded['ncu']}, {recorded['date']}" in page
    assert "0 differ by more than is allowed." in page


def test_the_recording_keeps_its_form():
    for topic in TOPICS:
        assert ncu.as_json(RECORDED[topic]) == (COURSE / "kernels" / topic / "ncu.json").read_text()
        assert json.loads(ncu.as_json(RECORDED[topic])) == RECORDED[topic]


def test_ncu_output_is_read():
    names = ncu.metrics()
    metrics = list(dict.fromkeys(" + ".join(names.values()).split(" + ")))
    header = ",".join(f'"{metric}"' for metric in ["ID", "Kernel Name", *metrics])
    units = ",".join(["", "", *["inst"] * len(metrics)])
    values = ",".join(f'"{value}"' for value in ["0", "k", "1,048,579", *range(2, len(metrics) + 1)])
    (row,) = ncu.parse(f"==PROF== Connected\n{header}\n{units}\n{values}\n")
    number = dict(zip(metrics, [1048579, *range(2, len(metrics) + 1)], strict=True))
    assert row == {name: sum(number[m] for m in metric.split(" + ")) for name, metric in names.items()}
    assert row["global_load_requests"] == 1048579
    assert any(" + " in metric for metric in names.values())


def test_ncu_output_without_a_table_is_an_error():
    with pytest.raises(RuntimeError, match="==ERROR== no permission"):
        ncu.parse("==ERROR== no permission\n")


@pytest.mark.parametrize(
    ("counter", "hardware", "simulator", "within", "holds"),
    [
        ("global_load_sectors", 100, 100, None, True),
        ("global_load_sectors", 100, 101, None, False),
        ("global_load_sectors", 100, 104, 0.05, True),
        ("global_load_sectors", 100, 94, 0.05, False),
        ("global_load_sectors", 0, 1, 0.05, False),
        ("warp_efficiency", 0.5, 0.519, None, True),
        ("warp_efficiency", 0.5, 0.479, None, False),
        ("warp_efficiency", 0.1, 0.06, 0.05, True),
        ("branches", 100, 200, None, True),
        ("branches", 100, 200, 0.5, False),
    ],
)
def test_what_holds(counter, hardware, simulator, within, holds):
    difference = None if within is None else ncu.Difference(counter, within, "because")
    comparison = ncu.Comparison("launch", counter, hardware, simulator, difference)
    assert comparison.holds is holds
    assert ("yes" if holds else "NO") in ncu.text([comparison])


def test_a_difference_is_shown_on_the_page(results):
    topic = "vector_multiply"
    recorded, comparisons = results[topic]
    changed = [ncu.Comparison(c.launch, c.counter, c.ncu, c.simulator + 1) for c in comparisons]
    page = ncu_page.document({topic: (recorded, changed)})
    assert "65538 / **65539**" in page
    judged = sum(c.counter not in ncu.BRANCHES for c in changed)
    assert f"{judged} differ by more than is allowed." in page


def test_a_recording_of_other_launches_is_refused():
    with pytest.raises(ValueError, match="does not hold the launch 'numba_scalar"):
        ncu.compare("vector_multiply", RECORDED["vector_multiply"] | {"launches": {}})


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute (ncu) is not installed")
@pytest.mark.parametrize("topic", ncu.topics())
def test_ncu_counts_what_the_simulator_counts(topic):
    assert backend.name() == "gpu", f"this test reads a GPU's counters; {backend.reason()}"
    comparisons = ncu.compare(topic, ncu.measured(topic))
    assert len(comparisons) == len(ncu.launches(topic)) * (len(ncu.COMPARED) + 1)
    assert not failing(comparisons), ncu.text(failing(comparisons))
