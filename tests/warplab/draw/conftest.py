import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def no_figure_left_open():
    yield
    assert plt.get_fignums() == []
