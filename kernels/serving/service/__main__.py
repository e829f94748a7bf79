"""Serve an engine: `python -m kernels.serving.service --help`."""

import sys

from kernels.serving.service.application import main

if __name__ == "__main__":
    sys.exit(main())
