"""A process that holds a CUDA context and does nothing, to count how many clients MPS takes.

    python -m kernels.serving.overlap.sharing.bare_client

It prints a line of JSON: `error`, the driver's name for what went wrong or "", and ends when its input does.
"""

import ctypes
import json
import sys


def create_context() -> str:
    """Create the first GPU's primary context; return the driver's name of the error, or ""."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no driver: libcuda.so.1 is not here"
    device, context = ctypes.c_int(), ctypes.c_void_p()
    calls = (
        lambda: driver.cuInit(0),
        lambda: driver.cuDeviceGet(ctypes.byref(device), 0),
        lambda: driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
    )
    for call in calls:
        if code := call():
            name = ctypes.c_char_p()
            driver.cuGetErrorName(code, ctypes.byref(name))
            return name.value.decode() if name.value else f"error {code}"
    return ""


if __name__ == "__main__":
    print(json.dumps({"error": create_context()}), flush=True)
    sys.stdin.read()
