# SPDX-License-Identifier: MIT
"""The Python package over the driver: it checks the answers itself.

The exit status is 0 with the library, 3 without.
"""
import copy
import ctypes
import pickle
import sys
import threading

import cuwarden
from cuwarden import Code, _table

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()


def use_device():
    driver.cuInit(0)
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0


def take(size):
    block = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)) == 0
    return block.value


def give(*blocks):
    for block in blocks:
        assert driver.cuMemFree_v2(ctypes.c_uint64(block)) == 0


def code_of(function, *arguments):
    """What it raises; 0: nothing."""
    try:
        function(*arguments)
    except cuwarden.Error as error:
        assert len(str(error)) > 10
        return error.code
    return 0


def check_account():
    with cuwarden.tag("outer"):
        with cuwarden.tag("größe"):
            inner = take(1000)
        outer = take(2000)
    try:
        with cuwarden.tag("raises"):
            raise KeyError
    except KeyError:
        none = take(3000)
    assert cuwarden.tag_stats("größe").live_bytes == 1000 and cuwarden.tag_stats("outer", 0).live_bytes == 2000
    assert cuwarden.tag_stats("").live_bytes == 3000
    stats = cuwarden.device_stats()
    assert (stats.allocations, stats.live_blocks, stats.backend) == (3, 3, "pool") and 0 < stats.efficiency <= 1
    assert cuwarden.device_stats(cuwarden.HOST).allocations == 0
    cuwarden.name_block(inner, "positions")
    block = cuwarden.find_block(inner)
    assert (block.bytes, block.tag, block.name, block.kind, block.device) == (1000, "größe", "positions", "device", 0)
    assert cuwarden.find_block(inner + 1) is None
    assert sorted(b.bytes for b in cuwarden.blocks()) == [1000, 2000, 3000]
    assert [b.bytes for b in cuwarden.blocks(tag="outer")] == [2000] and [b.bytes for b in cuwarden.blocks(tag="")] == [3000]
    assert cuwarden.blocks(older_than_ns=3600 * 10**9) == [] and cuwarden.blocks(device=cuwarden.HOST) == []
    give(inner, outer, none)


def check_budgets():
    cuwarden.set_budget("größe", 5000, cuwarden.BudgetHow.REFUSE)
    with cuwarden.tag("größe"):
        block = take(4000)
        refused = ctypes.c_uint64()
        assert driver.cuMemAlloc_v2(ctypes.byref(refused), ctypes.c_size_t(1001)) == 2
    assert cuwarden.budget("größe") == (5000, 4000, 4000, 1, 0, cuwarden.BudgetHow.REFUSE)
    cuwarden.set_budget("größe", None)
    assert cuwarden.budget("größe") is None and code_of(cuwarden.set_budget, "größe", None) == Code.NOT_FOUND
    assert code_of(cuwarden.set_budget, "", 1) == Code.INVALID
    give(block)


def check_leaks():
    mark = cuwarden.mark()
    kept = take(4000)
    leaks = cuwarden.leak_check(mark)
    assert leaks.blocks == 1 and leaks.bytes == 4000 and [b.bytes for b in leaks.found] == [4000]
    assert leaks.found[0].id >= mark and cuwarden.blocks(since=mark) != []
    give(kept)
    assert cuwarden.leak_check(mark).blocks == 0


def check_files():
    with cuwarden.recording("python.csv"):
        give(take(5000))
        assert code_of(cuwarden.recording("other.csv").__enter__) == Code.BUSY
    cuwarden.report("python.json")
    assert code_of(cuwarden.report, "/proc/none/x") == Code.SYSTEM


def check_misuse():
    assert code_of(cuwarden.tag_pop) == Code.UNBALANCED
    assert code_of(cuwarden.tag_push, "") == Code.INVALID
    assert code_of(cuwarden.device_stats, 63) == Code.NO_DEVICE
    assert code_of(cuwarden.tag_stats, "nobody") == Code.NOT_FOUND
    assert code_of(cuwarden.name_block, 0x1000, "x") == Code.NOT_FOUND


def check_control():
    seen = []
    assert cuwarden.pressure(1) is None and cuwarden.pressure().device == 0
    with cuwarden.on_pressure(lambda now, before: seen.append((now.level, before, now.use))):
        cuwarden.set_limit(100 << 20)
        give(take(90 << 20))
        driver.cuCtxSynchronize()
    assert seen and seen[0][:2] == (cuwarden.Level.HIGH, cuwarden.Level.LOW) and 0.9 <= seen[0][2] <= 1, seen
    cuwarden.set_limit(None)
    give(take(8 << 20))
    assert cuwarden.trim(cuwarden.Trim.CLEAR) > 0 and cuwarden.device_stats().idle_bytes == 0
    cuwarden.set_pool_max(64 << 20)
    cache, asked = [take(600 << 20)], []

    def give_up(device, size):
        asked.append((device, size))
        give(cache.pop())
        return True

    with cuwarden.on_out_of_memory(give_up):
        give(take(700 << 20))
    assert asked == [(0, 700 << 20)] and cache == []
    assert code_of(cuwarden.trim, cuwarden.Trim.CLEAR, 17) == Code.NO_DEVICE


def check_scopes():
    before = cuwarden.device_stats().live_blocks
    with cuwarden.scope("work") as freed:
        kept, given, _ = take(1000), take(2000), take(3000)
        cuwarden.keep(kept)
        give(given)
        with cuwarden.batch():
            give(*[take(100) for _ in range(20)])
    assert (freed.blocks, freed.bytes, freed.left_blocks) == (1, 3000, 0)
    assert cuwarden.device_stats().live_blocks == before + 1
    give(kept)
    assert code_of(cuwarden.keep, kept) == Code.NOT_FOUND


def check_buffers():
    before = cuwarden.device_stats().live_bytes
    with cuwarden.Buffer("grown", 4, 1000, is_copying=True) as grown:
        address = grown.ensure_capacity(1000)
        assert grown.state()[:7] == (grown.id, "grown", address, 4, 1000, 1024, 4096)
        assert driver.cuMemsetD32_v2(ctypes.c_uint64(address), 77, ctypes.c_size_t(1000)) == 0
        address = cuwarden.Buffer.find("grown", 4).ensure_capacity(100000)
        words = (ctypes.c_uint32 * 1000)()
        assert driver.cuMemcpyDtoH_v2(words, ctypes.c_uint64(address), ctypes.c_size_t(4000)) == 0
        assert list(words) == [77] * 1000 and grown.state().copied_bytes == 4000
        assert code_of(cuwarden.Buffer, "grown", 4) == Code.EXISTS
        assert code_of(cuwarden.Buffer.find, "grown", 8) == Code.WRONG_SIZE
        assert code_of(cuwarden.Buffer.find, "shrunk") == Code.NOT_FOUND
        assert code_of(grown.ensure_capacity, 1 << 62) == Code.TOO_LARGE
        grown.use(10)
        assert cuwarden.clean_buffers(3600 * 10**9) == 0 and cuwarden.clean_buffers(below=0.5) > 300000
        assert grown.state().utilisation == 1 and grown.shrink() == 0
    assert code_of(grown.end) == Code.NOT_FOUND
    with cuwarden.Buffer.preset(cuwarden.Preset.EDGES, "edges", 10) as edges:
        assert [b.name for b in cuwarden.buffers()] == ["edges"] and edges.state().is_in_place
        assert edges.state().capacity_bytes == 2 << 20 and edges.state().most_bytes == 2 << 30
        first = edges.ensure_capacity(10)
        assert edges.ensure_capacity(1000000) == first and edges.state().copies == 0
    assert cuwarden.device_stats().live_bytes == before and cuwarden.buffers() == []


def check_downloads():
    before = cuwarden.device_stats().transfers
    block = take(4000)
    stream, event = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0 and driver.cuEventCreate(ctypes.byref(event), 2) == 0
    with cuwarden.Download("frames", 4000) as frames:
        assert code_of(frames.wait) == Code.NOT_FOUND and code_of(frames.release) == Code.UNBALANCED
        for i in range(1, 5):
            assert driver.cuMemsetD32Async(ctypes.c_uint64(block), i, ctypes.c_size_t(1000), stream) == 0
            if i == 2:
                assert driver.cuEventRecord(event, stream) == 0
                frames.after(event=event.value)
            elif i == 3:
                frames.after(stream.value)
            assert frames.start(block, 4000, cuwarden.NO_STREAM if i in (2, 3) else stream.value) == i
            frames.before(stream.value)
            frame = frames.wait(i)
            assert frame.number == i and frame.data.cast("I").tolist() == [i] * 1000 and frame.data.readonly
        first = frame.data[:4]
        assert frames.start(block, 8) == 5
        assert any(frames.start(block, 8) is None for _ in range(100000))  # one that has come is replaced
        frames.release()
        try:
            assert frame.data[0] and False
        except ValueError:
            pass  # it has been taken away
        try:
            assert frames.end() and False
        except BufferError as error:
            assert "'frames' cannot end" in str(error)
        del first
        started = frames.state().started
        assert frames.state()[:5] == (frames.id, "frames", 4000, started, 4) and started >= 5
        assert code_of(frames.start, block, 4001) == Code.TOO_LARGE
        assert code_of(cuwarden.Download, "frames", 4000) == Code.EXISTS
        last = frames.wait(5)
    assert code_of(frames.end) == Code.NOT_FOUND and len(last) == 3
    assert cuwarden.device_stats().transfers == before + started
    assert driver.cuStreamDestroy_v2(stream) == 0 and driver.cuEventDestroy_v2(event) == 0
    give(block)


def in_thread():
    assert driver.cuCtxSetCurrent(context) == 0
    for i in range(200):
        with cuwarden.tag(f"thread {i % 3}"):
            block = take(1000)
            assert cuwarden.find_block(block).tag == f"thread {i % 3}"
            give(block)


def check_bridges():
    source, to = take(4000), take(4000)
    with cuwarden.Bridge("halo", 0, 0) as bridge:
        number, way = bridge.copy(to, source, 4000)
        bridge.wait(number)
        assert way == cuwarden.Way.LOCAL and bridge.state().bytes == 4000
        assert code_of(bridge.copy, to, source, 4001) == Code.TOO_LARGE
        assert bridge.copy(to, source, 4, cuwarden.NO_STREAM) == (number + 1, way)
    assert code_of(bridge.wait) == Code.NOT_FOUND
    give(source, to)


def check_prefetches():
    block = take(70000)
    content = bytes(i * 7 % 251 for i in range(70000))
    with open("weights", "wb") as file:
        file.write(content)
    with cuwarden.Prefetch("weights", chunk_bytes=4096) as prefetch:
        assert prefetch.start("weights", block, 70000) == 1 and prefetch.wait() == 70000
        got = (ctypes.c_ubyte * 70000)()
        assert driver.cuMemcpyDtoH_v2(got, ctypes.c_uint64(block), ctypes.c_size_t(70000)) == 0 and bytes(got) == content
        with open("weights", "rb") as file:
            number = prefetch.start(file.fileno(), block, 50, offset=69990, stream=cuwarden.NO_STREAM)
        prefetch.before()
        assert prefetch.wait(number) == 10 and prefetch.stage(number) == cuwarden.Stage.ARRIVED
        assert code_of(prefetch.start, "weights", block, 70001) == Code.TOO_LARGE
        prefetch.start("no such file", block, 1)
        assert code_of(prefetch.wait) == Code.SYSTEM
        prefetch.cancel()
        assert prefetch.state()[:8] == (prefetch.id, "weights", 4096, 3, 2, 1, 0, 70010)
    assert code_of(prefetch.wait) == Code.NOT_FOUND
    give(block)


def check_streams():
    Lane = cuwarden.Lane
    with cuwarden.Streams("stages", 0) as streams:
        streams.order(Lane.COMPUTE, Lane.IN)
        for lane in Lane:
            with streams.work(lane) as is_counted:
                assert is_counted
        with streams.work(Lane.OUT):
            assert code_of(streams.work(Lane.OUT).__enter__) == Code.UNBALANCED
        assert code_of(streams.order, Lane.IN, Lane.IN) == Code.INVALID
        stream, graph = ctypes.c_void_p(), ctypes.c_void_p()
        assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
        with streams.work(Lane.OUT):
            assert driver.cuStreamBeginCapture_v2(stream, 0) == 0  # by this very thread
        assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0
        assert driver.cuGraphDestroy(graph) == 0 and driver.cuStreamDestroy_v2(stream) == 0
        with streams.work(Lane.OUT) as is_counted:
            assert is_counted
        now = streams.state()
        assert len({now.compute, now.in_, now.out}) == 3 and now.name == "stages" and 0 <= now.compute_use <= 1
        streams.reset()
    assert code_of(streams.reset) == Code.NOT_FOUND


def check_places():
    device = cuwarden.pick_device(1000, "field")
    address, its = cuwarden.device_alloc(1000, "field")
    assert device == its == cuwarden.find_block(address).device and cuwarden.find_block(address).bytes == 1000
    give(address)
    assert code_of(cuwarden.pick_device, 1 << 60) == code_of(cuwarden.device_alloc, 1 << 60) == Code.OUT_OF_DEVICE
    assert code_of(cuwarden.pick_device, 1, "x" * 48) == Code.INVALID


def wrong(kind, text, call, *arguments, **words):
    try:
        call(*arguments, **words)
    except kind as error:
        assert text in str(error), error
    else:
        assert False, text


def check_arguments():
    """What ctypes would have made another number, or another name, of; the same without the library."""
    wrong(ValueError, "limit: -5 is not possible, 0 to", cuwarden.set_limit, -5)
    wrong(ValueError, "is not possible", cuwarden.set_pool_max, (1 << 64) + 7)
    wrong(ValueError, "is not possible", cuwarden.set_limit, 1 << 30, device=1 << 32)
    wrong(ValueError, "older_than_ns: -1 is not", cuwarden.blocks, older_than_ns=-1)
    wrong(ValueError, "most_bytes: -1 is not", cuwarden.Buffer, "x", 4, most_bytes=-1)
    wrong(ValueError, "is not possible", cuwarden.keep, -4096)
    wrong(ValueError, r"tag_push: 'a\x00b' has a NUL in it", cuwarden.tag_push, "a\0b")
    wrong(ValueError, r"tag: 'a\x00b' has a NUL in it", cuwarden.blocks, tag="a\0b")
    wrong(TypeError, "limit: 1.5 is no whole number", cuwarden.set_limit, 1.5)
    wrong(TypeError, "budget_set: '1G' is no whole number", cuwarden.set_budget, "x", "1G")
    wrong(ValueError, "layers: -1 is not possible", cuwarden.estimate, layers=-1)


def check_errors():
    """What a pool of processes hands on; the same without the library."""
    error = cuwarden.Error(Code.OUT_OF_LIMIT, "no room")
    error.note = "kept"
    for again in pickle.loads(pickle.dumps(error)), copy.copy(error):
        assert (type(again), again.code, str(again), again.note) == (cuwarden.Error, Code.OUT_OF_LIMIT, "no room", "kept"), again


def describe():
    """As tests/check/api.test lists it."""
    print(_table.NAME)
    for name, structure in [("block", _table.RawBlock), ("filter", _table.RawFilter), ("stats", _table.RawStats),
                            ("leaks", _table.RawLeaks), ("pressure", _table.RawPressure), ("freed", _table.RawFreed),
                            ("budget", _table.RawBudget),
                            ("buffer_spec", _table.RawBufferSpec), ("buffer", _table.RawBuffer),
                            ("frame", _table.RawFrame), ("download", _table.RawDownload), ("bridge", _table.RawBridge),
                            ("model", _table.RawModel), ("estimate", _table.RawEstimate), ("streams", _table.RawStreams),
                            ("prefetch", _table.RawPrefetch),
                            ("table", _table.Table)]:
        print(f"cuwarden_{name}")
        for field, _ in structure._fields_:
            at = getattr(structure, field)
            print(f"  {at.offset}+{at.size} {field}")
    print(f"CUWARDEN_ALL_DEVICES {cuwarden.ALL_DEVICES}\nCUWARDEN_HOST {cuwarden.HOST}")
    for code in Code:
        print(f"CUWARDEN_{code.name} {code.value}")
    for number in [*cuwarden.Level, *cuwarden.Trim, *cuwarden.BudgetHow, *_table.BufferFlags, *cuwarden.Way,
                   *cuwarden.ModelFlags, *cuwarden.Lane, *cuwarden.Stage, *cuwarden.Preset]:
        print(f"CUWARDEN_{number.name} {number.value}")


if sys.argv[1:] == ["describe"]:
    describe()
    sys.exit()
use_device()
check_arguments()
check_errors()
if not cuwarden.is_active():
    with cuwarden.tag("nobody listens"), cuwarden.scope("x"), cuwarden.batch(), cuwarden.recording("none.csv"):
        cuwarden.name_block(0x1000, "x")
    assert (cuwarden.mark(), cuwarden.blocks(), cuwarden.find_block(1)) == (0, [], None)
    assert cuwarden.trim() == 0 and cuwarden.pressure() is None
    assert cuwarden.buffers() == [] and cuwarden.clean_buffers() == 0
    assert cuwarden.pick_device(1) is None and cuwarden.device_alloc(1) is None
    assert code_of(cuwarden.Buffer, "none", 4) == Code.NOT_ACTIVE
    assert code_of(cuwarden.Download, "none", 4) == Code.NOT_ACTIVE
    assert code_of(cuwarden.Bridge, "none", 0, 1) == Code.NOT_ACTIVE
    assert code_of(cuwarden.Streams, "none", 0) == Code.NOT_ACTIVE
    assert code_of(cuwarden.Prefetch, "none") == Code.NOT_ACTIVE
    with cuwarden.on_out_of_memory(lambda device, size: True), cuwarden.on_pressure(lambda now, before: None):
        cuwarden.set_limit(1)
        cuwarden.set_budget("x", 1)
        cuwarden.set_budget("x", None)
    assert cuwarden.budget("x") is None
    assert cuwarden.device_stats() == cuwarden.Stats() and cuwarden.leak_check().blocks == 0
    sys.exit(3)
check_account()
check_budgets()
check_leaks()
check_files()
check_misuse()
check_control()
check_scopes()
check_buffers()
check_downloads()
check_places()
check_bridges()
check_streams()
check_prefetches()
threads = [threading.Thread(target=in_thread) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
