"""An engine behind HTTP: `python -m kernels.serving.serve` starts it, `start` does so in a process of its own."""

from kernels.serving.serve.service.process import start
from kernels.serving.serve.service.server import ServiceError
