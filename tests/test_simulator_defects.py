"""Each class of mistake: the defective kernel is reported with its place, the mended one runs silently."""

import pytest
from defects import DEFECTS, Defect

from warplab import simulator


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda d: d.name)
def test_reported_and_mended(defect: Defect):
    with pytest.raises(defect.error) as caught:
        defect.run(right=False)
    assert type(caught.value) is defect.error
    if defect.error is not simulator.InvalidLaunch:
        assert "in kernel kernel" in str(caught.value)
        assert caught.value.line is not None
    defect.run(right=True)
