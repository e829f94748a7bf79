"""Lab 09's plans for a server: batches of any size, from plans built here and from files."""

import numpy as np
import pytest

from kernels.fusion import plan, served
from kernels.fusion.graph import interpret
from kernels.fusion.graph.build import Builder
from kernels.fusion.plan import PlanError, plan_file
from kernels.fusion.served import Served
from kernels.fusion.trained import digits
from kernels.fusion.trained.network import OUTPUT, trained_graph

from . import fuzz_plans


@pytest.fixture(scope="module")
def network():
    return served.trained([4, 1])


def test_any_number_of_samples_is_answered_in_order(network):
    images = digits.split()[2].images[:7]
    expected = interpret.run(trained_graph(), images)[OUTPUT]
    assert (network.shape, network.answer_shape, network.batches) == ((1, 8, 8), (10,), (1, 4))
    for count in (1, 2, 4, 5, 7):
        np.testing.assert_allclose(network.predict(images[:count]), expected[:count], atol=1e-6)
    assert network.name.startswith("googlenet_digits, plans for 1, 4 on ")


def test_a_batch_goes_to_the_smallest_plan_that_holds_it(network):
    assert network.parts(1) == [(1, 1)]
    assert network.parts(2) == [(2, 4)]
    assert network.parts(4) == [(4, 4)]
    assert network.parts(9) == [(4, 4), (4, 4), (1, 1)]


def test_other_shapes_are_refused(network):
    for shape in ((2, 8, 8), (0, 1, 8, 8), (1, 8, 8, 1)):
        with pytest.raises(ValueError, match=r"it must be \(samples, \*\(1, 8, 8\)\)"):
            network.predict(np.zeros(shape, np.float32))


def test_plans_come_from_files(tmp_path):
    example = fuzz_plans.example()
    paths = [tmp_path / "1.plan", tmp_path / "3.plan"]
    plan_file.save(example, paths[0])
    plan_file.save(plan.build(example.graph, 3), paths[1])
    found = served.from_files([str(path) for path in paths])
    x = np.random.default_rng(2).random((4, *found.shape), np.float32)
    one_by_one = [served.from_files(paths[0]).predict(sample[None]) for sample in x]
    np.testing.assert_allclose(found.predict(x), np.concatenate(one_by_one), atol=1e-5)
    with pytest.raises(PlanError, match="are for the same batch: give each batch once"):
        served.from_files([paths[0], paths[0]])
    paths[1].write_bytes(paths[1].read_bytes()[:-7])
    with pytest.raises(PlanError, match=r"3.plan is cut short or damaged .*: copy it again"):
        served.from_files(paths)
    with pytest.raises(FileNotFoundError):
        served.from_files(tmp_path / "none.plan")


def test_what_is_not_one_network_is_refused():
    with pytest.raises(PlanError, match="there is no plan to serve"):
        Served([])
    with pytest.raises(PlanError, match="are of different networks"):
        Served([fuzz_plans.example(), plan.build(trained_graph(), 2)])
    two = Builder("two")
    x = two.input("x", (3,))
    with pytest.raises(PlanError, match="two has 1 inputs and 2 outputs; a server takes one of each"):
        Served([plan.build(two.graph(two.add("relu", "y", [x]), two.add("softmax", "z", [x])))])
    for batches in ([0], [1, "2"], [True]):
        with pytest.raises(ValueError, match="each must be a whole number, 1 or more"):
            served.trained(batches)
