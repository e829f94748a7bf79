"""What NVIDIA's driver reports, from a library that stands in for it."""

from __future__ import annotations

import ctypes

import pytest

from tests.support.machines import GOOD, NOTHING
from warplab.hardware import driver


class FakeLibrary:
    """libcuda with one H100, whose calls answer as `status` says."""

    def __init__(self, version=13000, **status):
        self.version, self.status = version, status

    def cuDriverGetVersion(self, out):
        out._obj.value = self.version
        return 0

    def cuInit(self, flags):
        return self.status.get("cuInit", 0)

    def cuDeviceGetCount(self, out):
        out._obj.value = 1
        return self.status.get("cuDeviceGetCount", 0)

    def cuDeviceGet(self, out, index):
        out._obj.value = index
        return 0

    def cuDeviceGetName(self, buffer, size, device):
        buffer.value = b"NVIDIA H100 80GB HBM3"
        return 0

    def cuDeviceTotalMem_v2(self, out, device):
        out._obj.value = 80 * 2**30
        return 0

    def cuDeviceGetAttribute(self, out, attribute, device):
        out._obj.value = {75: 9, 76: 0}[attribute]
        return 0

    def cuGetErrorString(self, status, out):
        out._obj.value = b"system has unsupported display driver / cuda driver combination"
        return 0


@pytest.fixture
def library(monkeypatch):
    """library(libcuda or None, kernel module's version): what driver.query() finds."""

    def pretend(fake, module=None, cards=0):
        def load(name):
            if fake is None:
                raise OSError(name)
            return fake

        monkeypatch.setattr(ctypes, "CDLL", load)
        monkeypatch.setattr(driver, "module_version", lambda: module)
        monkeypatch.setattr(driver, "nvidia_cards", lambda: cards)
        return driver.query.__wrapped__()

    return pretend


def test_driver_and_gpu_are_read(library):
    assert library(FakeLibrary(), "580.95.05") == GOOD


def test_no_driver(library):
    assert library(None) == NOTHING


def test_gpu_without_driver(library):
    found = library(None, cards=1)
    assert "has an NVIDIA GPU but no driver" in found.problem
    assert "branch 580" in found.advice


def test_container_without_the_drivers_library(library):
    found = library(None, "580.95.05")
    assert "libcuda.so.1 is missing" in found.problem
    assert "--gpus all" in found.advice


def test_driver_without_gpu(library):
    assert library(FakeLibrary(cuInit=100)).problem == "the NVIDIA driver finds no GPU"


def test_broken_driver_keeps_its_own_words(library):
    found = library(FakeLibrary(cuInit=803))
    assert "cuInit with error 803: system has unsupported display driver" in found.problem
    assert found.cuda == (13, 0)
