"""Topologies: routes, which edges a schedule shares, and what that costs."""

import pytest

from kernels.collectives import topology
from kernels.collectives.recursive import recursive_doubling_all_reduce
from kernels.collectives.ring import ring_all_reduce, ring_broadcast
from kernels.collectives.schedule import ScheduleError, check_schedule
from kernels.collectives.topology import DGX1_LINKS, NVLINK_2


def one_way_ring(gpus: int, bandwidth: float) -> topology.Topology:
    """Return GPUs of which each can send to the next alone."""
    edges = {(topology.gpu(i), topology.gpu((i + 1) % gpus)): bandwidth for i in range(gpus)}
    return topology.Topology("one-way ring", gpus, edges)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_on_a_one_way_ring_nothing_is_shared(gpus):
    wires = one_way_ring(gpus, 12e9)
    for schedule in (ring_broadcast(gpus, 8), ring_all_reduce(gpus, gpus)):
        check_schedule(schedule, wires.links() if gpus == 2 else {(i, (i + 1) % gpus) for i in range(gpus)})
        assert topology.shared(wires, schedule) == {}


def test_gpus_do_not_forward():
    wires = one_way_ring(4, 1e9)
    assert wires.links() == {(0, 1), (1, 2), (2, 3), (3, 0)}
    with pytest.raises(ValueError, match="no way leads from GPU 0 to GPU 2"):
        wires.route(0, 2)
    with pytest.raises(ScheduleError, match="there is no link from rank 1 to rank 0"):
        check_schedule(recursive_doubling_all_reduce(4), wires.links())


@pytest.mark.parametrize("gpus", [4, 8])
@pytest.mark.parametrize("root", [0, 3])
def test_a_pcie_tree_runs_as_a_ring_at_the_speed_of_a_link(gpus, root):
    """The talks' claim: a ring over the leaves in order uses each direction of each edge once, so nothing is shared."""
    tree = topology.pcie_tree(gpus)
    order = topology.leaves(tree)
    uses = topology.ring_edges(tree, order)
    assert set(uses) == set(tree.edges)
    assert set(uses.values()) == {1}
    schedule = ring_broadcast(gpus, 16, root, order)
    check_schedule(schedule, tree.links())
    assert schedule.steps == 16 + gpus - 2
    assert topology.shared(tree, schedule) == {}


def test_another_order_of_the_same_gpus_shares_the_edges_above():
    tree = topology.pcie_tree(4)
    uses = topology.ring_edges(tree, [0, 2, 1, 3])
    assert uses["switch 0", "CPU 0"] == uses["CPU 0", "switch 1"] == 2
    schedule = ring_broadcast(4, 64, 0, [0, 2, 1, 3])
    assert topology.shared(tree, schedule) == {("switch 0", "CPU 0"): 2, ("CPU 0", "switch 1"): 2}


def test_partners_far_apart_share_the_top_of_a_tree():
    tree = topology.pcie_tree(8)
    assert topology.shared(tree, recursive_doubling_all_reduce(8))["CPU 0", "CPU 1"] == 4


def test_routes_are_the_shortest():
    tree = topology.pcie_tree(8)
    assert tree.route(0, 1) == (("GPU 0", "switch 0"), ("switch 0", "GPU 1"))
    assert [len(tree.route(0, other)) for other in range(1, 8)] == [2, 4, 4, 5, 5, 5, 5]
    for a in range(8):
        for b in range(8):
            if a != b:
                assert tree.route(a, b) == tuple((y, x) for x, y in reversed(tree.route(b, a)))


# --- NVLink --------------------------------------------------------------------------------------------------------


def test_every_gpu_of_a_dgx_1_has_six_links_to_four_others():
    for gpu in range(8):
        counts = [count for pair, count in DGX1_LINKS.items() if gpu in pair]
        assert (sum(counts), len(counts)) == (6, 4)
    mesh = topology.cube_mesh()
    assert len(mesh.links()) == 32
    assert mesh.edges["GPU 0", "GPU 3"] == 2 * NVLINK_2


@pytest.mark.parametrize(("links", "rings"), [(DGX1_LINKS, 3), (dict.fromkeys(DGX1_LINKS, 1), 2)])
def test_a_cube_mesh_has_as_many_disjoint_rings_as_its_links_allow(links, rings):
    """Each in both directions: six rings with V100, four with P100."""
    found = topology.disjoint_rings(links)
    assert len(found) == rings
    left = dict(links)
    for ring in found:
        assert sorted(ring) == list(range(8))
        for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
            pair = (min(a, b), max(a, b))
            assert left[pair] > 0
            left[pair] -= 1
    assert rings == sum(links.values()) // 8  # no ring more fits: each takes 8 links


def test_all_rings_of_a_dgx_1_run_at_once_on_links_of_their_own():
    used = {}
    for ring in topology.disjoint_rings():
        for order in (ring, ring[::-1]):
            for edge, uses in topology.ring_edges(topology.cube_mesh(), order).items():
                used[edge] = used.get(edge, 0) + uses
    assert all(uses * NVLINK_2 <= topology.cube_mesh().edges[edge] for edge, uses in used.items())
    assert sum(used.values()) == 6 * 8


def test_a_broadcast_along_a_ring_of_the_mesh_is_possible_and_one_in_order_is_not():
    mesh = topology.cube_mesh()
    check_schedule(ring_broadcast(8, 4, 0, topology.disjoint_rings()[0]), mesh.links())
    with pytest.raises(ScheduleError, match="there is no link from rank 3 to rank 4"):
        check_schedule(ring_all_reduce(8, 8), mesh.links())


def test_a_mesh_of_p100_has_slower_links():
    mesh = topology.cube_mesh(dict.fromkeys(DGX1_LINKS, 1), 20e9)
    assert set(mesh.edges.values()) == {20e9}


def test_behind_a_switch_any_order_is_a_ring():
    switch = topology.nodes_on_infiniband(nodes=1, per_node=4, inside=395e9)
    assert topology.shared(switch, ring_all_reduce(4, 4)) == {}
    assert topology.shared(switch, recursive_doubling_all_reduce(4)) == {}


# --- Several nodes -------------------------------------------------------------------------------------------------


def test_a_ring_across_nodes_goes_into_each_node_once():
    two = topology.nodes_on_infiniband(2, 4, cards=4)
    assert two.route(0, 1) == (("GPU 0", "NVSwitch 0"), ("NVSwitch 0", "GPU 1"))
    assert [b for _, b in two.route(3, 4)] == ["card 0.3", "InfiniBand", "card 1.0", "GPU 4"]


def test_what_is_not_described_is_refused():
    with pytest.raises(ValueError, match="a PCIe tree of 4 or 8 GPUs is described here, not of 6"):
        topology.pcie_tree(6)
    with pytest.raises(ValueError, match="2 nodes of 4 GPUs and 5 cards"):
        topology.nodes_on_infiniband(2, 4, cards=5)
    with pytest.raises(ValueError, match="NVLink cube mesh of 8 GPUs is no tree"):
        topology.leaves(topology.cube_mesh())
