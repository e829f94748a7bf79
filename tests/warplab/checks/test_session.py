"""The surroundings of a check: where seeds and device come from."""

from __future__ import annotations

from tests.support.kernel_checks import INDEX, PRODUCT, RIGHT, cuda_kernel, failure
from warplab import checks
from warplab.simulator import Device


def test_seeds_and_device_of_a_session():
    from warplab.checks import session

    device, drawn = Device(), iter([7, 8])
    with session.using(session.Session(lambda: next(drawn), device)):
        wrong = cuda_kernel(INDEX + "if (i < n) c[i] = 1;")
        assert failure(wrong, PRODUCT).where.endswith("seed 7")
        assert failure(wrong, PRODUCT).where.endswith("seed 8")
    assert device.launches > 0
    before = device.launches
    checks.kernel(RIGHT, PRODUCT, sizes=[4])
    assert device.launches == before
