"""Special registers of PTX: the type of each, and what it holds. To add one, add a row to `REGISTERS`."""

from collections.abc import Callable

NUMBER_OF_SMS = 132  # of an H100 SXM

# Registers whose values stay the same while a chunk runs: dtype. `run.geometry` computes them.
SPECIAL = {
    **{f"%{name}.{axis}": "u4" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"},
    **{f"%lanemask_{order}": "u4" for order in ("eq", "le", "lt", "ge", "gt")},
    **dict.fromkeys(("%laneid", "%warpid", "%nwarpid"), "u4"),
}


def _of_clusters(name: str) -> Callable:
    return lambda chunk: chunk.geometry.of_clusters(name)


def _cluster_size(axis: int) -> Callable:
    return lambda chunk: chunk.geometry.cluster[axis]


def _clusters(axis: int) -> Callable:
    return lambda chunk: chunk.geometry.grid[axis] // chunk.geometry.cluster[axis]


# Special registers that are read when an instruction runs: dtype, value for a chunk.
# The clocks count the PTX instructions that the chunk of blocks has executed (a thread sees its own and those of the
# threads that ran before it), from launch to launch; %globaltimer also those that __nanosleep asks for. Neither is a
# GPU's time.
REGISTERS: dict[str, tuple[str, Callable]] = {
    "%clock": ("u4", lambda chunk: chunk.system.cycles & 0xFFFFFFFF),
    "%clock_hi": ("u4", lambda chunk: chunk.system.cycles >> 32),
    "%clock64": ("u8", lambda chunk: chunk.system.cycles),
    "%globaltimer": ("u8", lambda chunk: chunk.system.now),
    "%globaltimer_lo": ("u4", lambda chunk: chunk.system.now & 0xFFFFFFFF),
    "%globaltimer_hi": ("u4", lambda chunk: chunk.system.now >> 32),
    "%gridid": ("u8", lambda chunk: chunk.device.launches),
    "%nsmid": ("u4", lambda chunk: NUMBER_OF_SMS),
    "%smid": ("u4", lambda chunk: (chunk.first_block + chunk.block_of) % NUMBER_OF_SMS),
    "%dynamic_smem_size": ("u4", lambda chunk: chunk.dynamic_shared_bytes),
    "%total_smem_size": ("u4", lambda chunk: chunk.shared_stride),
    "%aggr_smem_size": ("u4", lambda chunk: chunk.own_shared_bytes + 1024),  # including what the system reserves
    "%is_explicit_cluster": ("b1", lambda chunk: chunk.explicit_cluster),  # else every block is one of its own
    "%cluster_ctarank": ("u4", _of_clusters("%cluster_ctarank")),
    "%cluster_nctarank": ("u4", lambda chunk: chunk.cluster_blocks),
    **{f"%cluster_ctaid.{axis}": ("u4", _of_clusters(f"%cluster_ctaid.{axis}")) for axis in "xyz"},
    **{f"%cluster_nctaid.{axis}": ("u4", _cluster_size(number)) for number, axis in enumerate("xyz")},
    **{f"%clusterid.{axis}": ("u4", _of_clusters(f"%clusterid.{axis}")) for axis in "xyz"},
    **{f"%nclusterid.{axis}": ("u4", _clusters(number)) for number, axis in enumerate("xyz")},
    **{f"%envreg{k}": ("u4", lambda chunk: 0) for k in range(32)},
    "%envreg1": ("u4", lambda chunk: (chunk.launch.workspace or 0) >> 32),
    "%envreg2": ("u4", lambda chunk: (chunk.launch.workspace or 0) & 0xFFFFFFFF),
    **{f"%pm{k}": ("u4", lambda chunk: 0) for k in range(8)},  # counters that only a profiler sets up
    **{f"%pm{k}_64": ("u8", lambda chunk: 0) for k in range(8)},
    "%current_graph_exec": ("u8", lambda chunk: 0),  # the kernel does not run in a graph
}
