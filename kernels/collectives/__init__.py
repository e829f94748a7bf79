"""Lab 10, NCCL, rings, and training across GPUs.

A collective is a `Schedule`, a list of messages (schedule.py); ring.py, tree.py, recursive.py and
scatter_gather.py make them. Engines run them: interpreter.py in NumPy, on_virtual_devices.py, over_mpi.py, on_gpus.py;
relays.py has kernels that do without a schedule. model.py, topology.py and scaling_model.py predict times;
nccl.py is what ours is compared with; data_parallel.py trains. `recordings` holds what was measured on GPUs.
"""

from warpcourse.bench.recordings import Recordings

recordings = Recordings(__name__, gpus=2)

__all__ = ["recordings"]
