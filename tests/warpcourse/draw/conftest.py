from tests.warplab.draw.conftest import no_figure_left_open  # noqa: F401
