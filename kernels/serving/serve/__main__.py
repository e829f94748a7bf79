"""Serve an engine: `python -m kernels.serving.serve --help`."""

import sys

from kernels.serving.serve.service.application import main

if __name__ == "__main__":
    sys.exit(main())
