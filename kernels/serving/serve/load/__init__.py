"""A service under load: open and closed loops, what was measured, what the queueing model says, and their pictures."""

from kernels.serving.serve.load.generator import InProcess, offer
