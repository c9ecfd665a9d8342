# SPDX-License-Identifier: MIT
"""Allocates where Python is at its most unusual, and says which lines the interpreter sees then.

  python_ways.py run              leaks amid exceptions, callbacks of callbacks, tasks, tracing, and while the
                                  interpreter ends, by an exception; a line for each block:
                                  "block BYTES FUNCTION:LINE|FUNCTION:LINE..."
  python_ways.py spawn            leaks in children that start from nothing
  python_ways.py check REPORT     holds a JSON report against these lines, on standard input
"""
import asyncio
import atexit
import ctypes
import json
import sys

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
libc = ctypes.CDLL(None)
next_size = 500


def start():
    global cuda
    cuda = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0


def leak():
    global next_size
    next_size += 1
    block, lines, frame = ctypes.c_uint64(), [], sys._getframe()
    while frame is not None and len(lines) < 40:
        lines.append("%s:%d" % (frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    here = sys._getframe().f_lineno; cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(next_size))
    lines[0] = "leak:%d" % here
    print("block", next_size, "|".join(lines), flush=True)


class Late:
    def __del__(self):
        leak()


class Scope:
    def __enter__(self):
        leak()

    def __exit__(self, *_):
        leak()
        return True


def handle():
    try:
        raise ValueError
    except ValueError:
        leak()
        try:
            raise KeyError
        except KeyError:
            leak()
        finally:
            leak()
    with Scope():
        raise RuntimeError


def recurse(levels):
    if levels > 0:
        recurse(levels - 1)
    else:
        leak()


def nest(levels):
    """Python, C, Python, C, Python ..."""
    def compare(_one, _other):
        if levels > 0:
            nest(levels - 1)
        else:
            leak()
        return 0
    two = (ctypes.c_int * 2)(1, 2)
    libc.qsort(two, ctypes.c_size_t(2), ctypes.c_size_t(4), CALLBACK(compare))


async def task():
    leak()
    await asyncio.sleep(0)
    leak()


async def tasks():
    await asyncio.gather(task(), task())
    await task()


def hooked(*_):
    leak()


def trace(*_):
    return None


def run():
    start()
    leak()
    handle()
    recurse(500)
    nest(3)
    asyncio.run(tasks())
    sys.setprofile(trace)
    leak()
    sys.setprofile(None)
    sys.settrace(trace)
    leak()
    sys.settrace(None)
    unfinished = (leak() for _ in range(2))
    next(unfinished)
    sys.excepthook = hooked
    atexit.register(leak)
    sys.modules["late"] = Late()
    raise RuntimeError("the end")


def child(number):
    start()
    recurse(number)


def spawn():
    import multiprocessing
    children = [multiprocessing.get_context("spawn").Process(target=child, args=(n,)) for n in range(3)]
    for process in children:
        process.start()
        process.join()
    start()
    leak()
    print("children", [process.exitcode for process in children])


def check(path):
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    frames = {frame["id"]: frame for frame in report["frames"]}
    stacks = {s["id"]: [frames[i] for i in s["frames"]] for s in report["stacks"]}
    site_of = {leaked["bytes"]: report["sites"][leaked["site"]] for leaked in report["leaks"]}
    count = 0
    for line in sys.stdin:
        if not line.startswith("block "):
            continue
        _, size, lines = line.split()
        stack = stacks[site_of[int(size)]["stack"]]
        found = ["%s:%d" % (frame["func"].split(".")[-1], frame["line"])
                 for frame in stack if frame.get("lang") == "python"]
        wanted = lines.split("|")
        assert found == wanted[:len(found)] and len(found) >= min(len(wanted), 16), (found, wanted)
        count += 1
    assert count == 20 == report["summary"]["leaked_blocks"], (count, report["summary"])


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(sys.argv[2])
    elif sys.argv[1] == "spawn":
        spawn()
    else:
        run()
