"""Symmetric windows of NCCL without a GPU: stand-ins for the library and for CuPy tell what would be asked of them."""

import contextlib
import ctypes
import os
import types

import pytest

from kernels.collectives import measurements, nccl_window
from kernels.collectives.benchmark import BENCHMARK
from kernels.collectives.nccl_window import NoWindow, symmetric
from warpcourse.bench.timing import Timing

N, HOST, DEVICE = 1024, 0, 2


class Library:
    """Gives memory at 4096, 8192, ... and a window beside each; `fails`: the function that does not work."""

    def __init__(self, fails=""):
        self.fails, self.calls = fails, []

    def ncclMemAlloc(self, address, nbytes):
        self.calls.append(("ncclMemAlloc", nbytes))
        address._obj.value = 4096 * len(self.calls)
        return 2 * (self.fails == "ncclMemAlloc")

    def ncclCommWindowRegister(self, communicator, address, nbytes, window, flag):
        self.calls.append((communicator, address.value, nbytes, flag))
        window._obj.value = address.value + 1
        return 5 * (self.fails == "ncclCommWindowRegister")

    def ncclGetErrorString(self, status):
        return f"status {status}".encode()

    def ncclGetLastError(self, communicator):
        return b"no space \n"


@pytest.fixture
def asked(monkeypatch):
    """Return a function that asks for windows on two ranks: of a library, and of where its windows lie."""
    groups = []
    api = types.SimpleNamespace(
        groupStart=lambda: groups.append("start"), groupEnd=lambda: groups.append("end"), get_version=lambda: 22809
    )
    monkeypatch.setattr(nccl_window, "library", lambda: api)
    monkeypatch.setattr(nccl_window, "version", lambda: "2.28.9")

    def ask(library, lies=DEVICE):
        monkeypatch.setattr(nccl_window, "_loaded", lambda: library)
        runtime = types.SimpleNamespace(pointerGetAttributes=lambda window: types.SimpleNamespace(type=lies))
        cupy = types.SimpleNamespace(
            cuda=types.SimpleNamespace(
                runtime=runtime, UnownedMemory=lambda *given: given, MemoryPointer=lambda memory, offset: memory
            ),
            ndarray=lambda shape, dtype, memory: (shape, memory[:2]),
        )
        ranks = types.SimpleNamespace(devices=[0, 1], cupy=cupy, on=lambda rank: contextlib.nullcontext())
        communicators = [types.SimpleNamespace(comm=70), types.SimpleNamespace(comm=71)]
        try:
            return symmetric(types.SimpleNamespace(ranks=ranks, communicators=communicators), N)
        finally:
            assert groups in ([], ["start", "end"])  # never left open

    return ask


def test_all_ranks_register_what_nccl_gave_them(asked):
    library = Library()
    assert asked(library) == [((N,), (4096, 4 * N)), ((N,), (8192, 4 * N))]
    assert library.calls[2:] == [(70, 4096, 4 * N, 1), (71, 8192, 4 * N, 1)]


def test_a_registration_of_each_rank_alone_is_no_window(asked):
    with pytest.raises(NoWindow, match=r"NCCL 2\.28\.9 registered the buffers for each rank alone"):
        asked(Library(), lies=HOST)


@pytest.mark.parametrize(("name", "status"), [("ncclMemAlloc", 2), ("ncclCommWindowRegister", 5)])
def test_what_fails_says_so_in_nccls_words(asked, name, status):
    with pytest.raises(NoWindow, match=f"^{name}: status {status}; no space$"):
        asked(Library(fails=name))


def test_only_a_library_that_is_loaded_and_has_windows_is_taken(monkeypatch):
    modes = []

    def older(name, mode):
        modes.append(mode)
        return types.SimpleNamespace()  # has none of these functions

    monkeypatch.setattr(ctypes, "CDLL", older)
    with pytest.raises(NoWindow, match=r"symmetric windows came with NCCL 2\.27; here: .*ncclMemAlloc"):
        nccl_window._loaded()
    assert modes[0] & os.RTLD_NOLOAD


def test_where_no_window_is_to_be_had_its_rows_are_left_out_with_the_reason(monkeypatch):
    def fails(ranks):
        raise RuntimeError("NCCL_ERROR_INTERNAL_ERROR: internal error")

    monkeypatch.setattr(measurements, "Nccl", fails)
    *nothing, lack = measurements._window(None, 4096)
    assert nothing == [None, []]
    assert lack == {"no_window": "RuntimeError: NCCL_ERROR_INTERNAL_ERROR: internal error"}
    row = {"bytes": 4096, "correct": True} | measurements._spread(Timing.of([1e-6, 2e-6, 4e-6]))
    rows = [row | {"engine": engine, "graph": graph} for engine in ("one-shot", "NCCL") for graph in (False, True)]
    run = {"ranks": 2, "nccl": "2.28.9", "calls": 20, "rows": rows}
    text = BENCHMARK.tables["small_messages"].text({"runs": [run | lack]})
    assert "no symmetric window: RuntimeError: NCCL_ERROR_INTERNAL_ERROR" in text
    assert text.count("2 (1 to 4)") == 4  # a median with its spread
