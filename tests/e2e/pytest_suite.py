# SPDX-License-Identifier: MIT
"""Tests for the plugin of pytest, clean ones and others; pytest.test says how each ends."""
import ctypes
import logging
import os
import threading
import unittest

import pytest

runtime = ctypes.CDLL("libcudart.so.13")
MIB = 1 << 20
kept = []
cache = {}


class Buffer:
    def __init__(self, size=MIB):
        self.place = ctypes.c_void_p()
        code = runtime.cudaMalloc(ctypes.byref(self.place), ctypes.c_size_t(size))
        if code:
            raise MemoryError(f"cudaMalloc returns {code}")

    def __del__(self, free=runtime.cudaFree):
        if self.place.value:
            free(self.place)


def keep(size=MIB):
    kept.append(Buffer(size))


@pytest.fixture(scope="module")
def table():
    buffers = [Buffer(3 * MIB)]
    yield buffers
    buffers.clear()


@pytest.fixture(scope="class")
def wide():
    yield (buffers := [Buffer(3 * MIB)])
    buffers.clear()


@pytest.fixture
def own():
    return Buffer()


@pytest.fixture
def keeps_at_end():
    yield
    keep()


# ---- leaks ----

@pytest.mark.cuwarden_leaks
def test_clean(own, table):
    Buffer()


@pytest.mark.cuwarden_leaks
def test_leak(own):
    keep()


@pytest.mark.cuwarden_leaks
def test_leak_of_fixture(keeps_at_end):
    pass


@pytest.mark.cuwarden_leaks
@pytest.mark.parametrize("count", [0, 2, pytest.param(3, marks=pytest.mark.cuwarden_leaks(False))])
def test_parameter(count):
    for _ in range(count):
        keep()


@pytest.mark.cuwarden_leaks
def test_cycle():
    ring = [Buffer()]
    ring.append(ring)


@pytest.mark.cuwarden_leaks
def test_late_fixture(request):
    request.getfixturevalue("wide")


@pytest.mark.cuwarden_leaks(tolerance="2M")
@pytest.mark.parametrize("size", [2 * MIB, 2 * MIB + 1])
def test_tolerance(size):
    keep(size)


@pytest.mark.cuwarden_leaks(warmup=1)
def test_warm():
    cache.setdefault("warm", Buffer())


@pytest.mark.cuwarden_leaks
def test_cold():
    cache.setdefault("cold", Buffer())


@pytest.mark.cuwarden_leaks(warmup=2)
def test_leaks_always():
    keep()


@pytest.mark.cuwarden_leaks(warmup=2)
def test_fails_second(own):
    cache["runs"] = cache.get("runs", 0) + 1
    assert cache["runs"] != 2


@pytest.mark.cuwarden_leaks
def test_thread():
    thread = threading.Thread(target=keep)
    thread.start()
    thread.join()


@pytest.mark.cuwarden_leaks
def test_child():
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.cuwarden_leaks
def test_logs(own):
    logging.warning("it has %s and %s", own, Buffer())


@pytest.mark.cuwarden_leaks(warmup=1)
def test_tells_once(record_property):
    record_property("told", "1")
    print("told")


@pytest.mark.cuwarden_leaks
def test_not_checked_if_failed():
    keep()
    raise ValueError("its own")


@pytest.mark.cuwarden_leaks
def test_skips():
    keep()
    pytest.skip("midway")


@pytest.mark.cuwarden_leaks
@pytest.mark.xfail(reason="known")
def test_known():
    keep()


@pytest.mark.cuwarden_leaks
@pytest.mark.xfail(reason="known", strict=True)
def test_known_strict():
    keep()


@pytest.mark.cuwarden_leaks
@pytest.mark.xfail(reason="known", strict=True)
def test_known_no_more():
    pass


@pytest.mark.cuwarden_leaks
class TestMethods:
    def test_self(self, wide):
        self.buffer = Buffer()

    @pytest.mark.cuwarden_leaks(False)
    def test_off(self):
        keep()

    def test_wide_holds(self, wide):
        wide.append(Buffer())


@pytest.mark.cuwarden_leaks
class TestUnittest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = Buffer()

    @classmethod
    def tearDownClass(cls):
        del cls.table

    def test_clean(self):
        self.buffer = Buffer()

    def test_leak(self):
        keep()


# ---- limits ----

@pytest.mark.cuwarden_limit("8M")
def test_within(table, own):
    Buffer(7 * MIB)


@pytest.mark.cuwarden_limit("8M")
def test_beyond(table, own):
    Buffer(8 * MIB)


@pytest.mark.cuwarden_limit("8M")
def test_expects_it():
    with pytest.raises(MemoryError):
        Buffer(9 * MIB)


@pytest.mark.cuwarden_limit("2M")
def test_beyond_soon_after():
    Buffer(5 * MIB)


def test_no_limit():
    Buffer(64 * MIB)


# ---- growth ----

@pytest.mark.cuwarden_growth(3)
def test_grows(own):
    keep()


@pytest.mark.cuwarden_growth(3)
def test_level():
    cache.setdefault("level", Buffer())


@pytest.mark.cuwarden_growth(3)
def test_grows_once():
    cache["once"] = cache.get("once", 0) + 1
    if cache["once"] == 2:
        keep()


@pytest.mark.cuwarden_growth(3, tolerance="2M")
def test_grows_little():
    keep()


# ---- figures ----

def test_figures(cuwarden_memory, own):
    before = cuwarden_memory.stats(0).live_bytes
    buffer = Buffer()
    assert cuwarden_memory.stats(0).live_bytes == before + MIB
    assert (cuwarden_memory.allocations, cuwarden_memory.allocated_bytes, cuwarden_memory.live_bytes) == (2, 2 * MIB, 2 * MIB)
    del buffer
    assert cuwarden_memory.live_bytes == MIB and [block.bytes for block in cuwarden_memory.leaks()] == [MIB]
