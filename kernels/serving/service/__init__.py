"""An engine behind HTTP: `python -m kernels.serving.service` starts it, `start` does so in a process of its own."""

from kernels.serving.service.process import start
from kernels.serving.service.server import ServiceError
