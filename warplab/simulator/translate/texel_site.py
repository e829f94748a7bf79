"""`TexelSite`: one texture or surface instruction, as `run.textures` needs it to serve it."""

from dataclasses import dataclass

from warplab.simulator.translate.block_writer import Site


@dataclass(eq=False)
class TexelSite(Site):
    """`geometry`: "1d", "2d", "3d", "a1d", "a2d" (layered), "cube" or "acube", "" for a query. `result`: dtype of a
    fetched value. `integer`: are the coordinates integers? `component`: the channel that is gathered.

    Of surfaces, `outside`: "trap", "clamp" or "zero", what becomes of coordinates outside; `formatted`: is it sust.p?
    """

    geometry: str = ""
    result: str = "f4"
    integer: bool = False
    component: int = 0
    outside: str = "trap"
    formatted: bool = False
