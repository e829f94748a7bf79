"""Leaves a process and a thread behind to do the work after the clock has stopped; the kernels do nothing."""

import subprocess
import sys
import threading
import time

from numba import cuda  # noqa: F401

subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()

# KERNELS
