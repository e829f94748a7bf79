"""What the NVIDIA driver of this machine reports of itself and its GPUs, through its C library.

Needs no package and costs a millisecond where there is no driver. Names are those of the CUDA Driver API.
"""

import ctypes
import functools
import glob
import re
from dataclasses import dataclass

CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
CUDA_ERROR_NO_DEVICE = 100
NVIDIA_PCI_VENDOR = "0x10de"
PCI_DISPLAY_CLASS = "0x03"

LOOK_FOR_GPU = "If this machine has one, look at nvidia-smi and at CUDA_VISIBLE_DEVICES."
IN_A_CONTAINER = "In a container: start it with the NVIDIA Container Toolkit (docker run --gpus all)."


@dataclass(frozen=True)
class Gpu:
    name: str
    memory_bytes: int
    compute_capability: tuple[int, int]


@dataclass(frozen=True)
class Driver:
    """A driver. `version`: of its kernel module ("580.159.04"); `cuda`: the newest CUDA that it supports.

    `problem`: why no GPU can be used, None if one can; `advice`: what to do about it.
    """

    version: str | None = None
    cuda: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    advice: str = ""


class DriverError(RuntimeError):
    """A call of the driver failed; the message holds the call, the code and the driver's own words."""


@functools.cache
def query() -> Driver:
    """Return the driver of this machine, asked once per process."""
    version = module_version()
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return without_library(version)
    cuda = None
    try:
        cuda = cuda_version(library)
        status = library.cuInit(0)
        if status == CUDA_ERROR_NO_DEVICE:
            return Driver(version, cuda, problem="the NVIDIA driver finds no GPU", advice=LOOK_FOR_GPU)
        check(library, "cuInit", status)
        return Driver(version, cuda, gpus(library))
    except DriverError as error:
        return Driver(version, cuda, problem=str(error), advice="Look at nvidia-smi; a reboot helps after an update.")


def without_library(version: str | None) -> Driver:
    if version:
        return Driver(
            version,
            problem="the NVIDIA driver's library libcuda.so.1 is missing, although its kernel module is loaded",
            advice=IN_A_CONTAINER,
        )
    if nvidia_cards():
        return Driver(
            problem="this machine has an NVIDIA GPU but no driver for it (libcuda.so.1 not found)",
            advice="Install NVIDIA's driver, branch 580 or newer. " + IN_A_CONTAINER,
        )
    return Driver(problem="no NVIDIA driver (libcuda.so.1 not found)")


def module_version() -> str | None:
    """Return the version of the loaded kernel module, such as "580.159.04"."""
    try:
        with open("/proc/driver/nvidia/version") as file:
            found = re.search(r"\s(\d+\.\d+(?:\.\d+)*)\s", file.read())
    except OSError:
        return None
    return found.group(1) if found else None


def nvidia_cards() -> int:
    """Count NVIDIA's display devices on the PCI bus."""
    count = 0
    for folder in glob.glob("/sys/bus/pci/devices/*"):
        try:
            with open(folder + "/vendor") as vendor, open(folder + "/class") as kind:
                count += vendor.read().strip() == NVIDIA_PCI_VENDOR and kind.read().startswith(PCI_DISPLAY_CLASS)
        except OSError:
            continue
    return count


def cuda_version(library: ctypes.CDLL) -> tuple[int, int]:
    number = ctypes.c_int()
    check(library, "cuDriverGetVersion", library.cuDriverGetVersion(ctypes.byref(number)))
    return number.value // 1000, number.value % 1000 // 10


def gpus(library: ctypes.CDLL) -> tuple[Gpu, ...]:
    count = ctypes.c_int()
    check(library, "cuDeviceGetCount", library.cuDeviceGetCount(ctypes.byref(count)))
    return tuple(gpu(library, index) for index in range(count.value))


def gpu(library: ctypes.CDLL, index: int) -> Gpu:
    device, memory, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    check(library, "cuDeviceGet", library.cuDeviceGet(ctypes.byref(device), index))
    check(library, "cuDeviceGetName", library.cuDeviceGetName(name, len(name), device))
    check(library, "cuDeviceTotalMem", library.cuDeviceTotalMem_v2(ctypes.byref(memory), device))
    major, minor = ctypes.c_int(), ctypes.c_int()
    for value, attribute in (
        (major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        (minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
    ):
        status = library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        check(library, "cuDeviceGetAttribute", status)
    return Gpu(name.value.decode(), memory.value, (major.value, minor.value))


def check(library: ctypes.CDLL, call: str, status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        words = text.value.decode() if text.value else "no description"
        raise DriverError(f"the NVIDIA driver answers {call} with error {status}: {words}")
