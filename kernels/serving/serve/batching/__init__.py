"""The rule by which a server forms batches, in virtual time and under asyncio, and the theory of its queue."""

from kernels.serving.serve.batching.batcher import Limits
from kernels.serving.serve.batching.queueing import long_run
