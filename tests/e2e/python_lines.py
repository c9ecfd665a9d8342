# SPDX-License-Identifier: MIT
"""Allocates from all kinds of Python code, and knows what the report must say of it.

  python_lines.py run CLAIMS                leaks, each block of a size of its own, and notes for each
                                            the lines that the interpreter sees
  python_lines.py check MODE REPORT CLAIMS  holds a JSON report against that, and prints the keys of
                                            the sites. MODE: full, caller, short (few frames),
                                            off (of Python), none
  python_lines.py fork                      leaks in children, which begin amid what the parent does
"""
import ctypes
import functools
import json
import os
import sys
import threading
import zlib

LOOP = 10000
FIRST = 1 << 20
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
lock = threading.Lock()
expected = []


def function_of(code):
    return getattr(code, "co_qualname", code.co_name)


def lines_from(frame):
    lines = []
    while frame is not None:
        lines.append([frame.f_code.co_filename, function_of(frame.f_code), frame.f_lineno])
        frame = frame.f_back
    return lines


def take(size):
    block = ctypes.c_uint64()
    lines = lines_from(sys._getframe())
    assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size)) == 0
    lines[0][2] += 1
    return block, lines


def leak():
    with lock:
        size = FIRST + 4096 * len(expected)
        expected.append(None)
    expected[(size - FIRST) // 4096] = [size, take(size)[1][:1] + lines_from(sys._getframe())]


def outer():
    def inner():
        leak()
    inner()


class Model:
    def __init__(self):
        leak()

    def forward(self):
        leak()

    @classmethod
    def make(cls):
        leak()

    @property
    def weight(self):
        leak()

    def __len__(self):
        leak()
        return 1

    def __del__(self):
        leak()


def generate():
    for _ in range(2):
        leak()
        yield 1


def delegate():
    yield from generate()


async def wait():
    leak()


def recurse(levels):
    if levels > 0:
        recurse(levels - 1)
    else:
        leak()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


@decorated
def spread(**_):
    leak()


def compare(_one, _other):
    leak()
    return 0


def sort():
    """Python, libc, Python."""
    two = (ctypes.c_int * 2)(1, 2)
    ctypes.CDLL(None).qsort(two, ctypes.c_size_t(2), ctypes.c_size_t(4), CALLBACK(compare))


def work(context):
    cuda.cuCtxSetCurrent(context)
    for _ in range(3):
        leak()
    sort()


def loop():
    block = ctypes.c_uint64()
    for _ in range(LOOP):
        assert cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(512)) == 0
        cuda.cuMemFree_v2(block)


def compile_often():
    for _ in range(50):
        exec(compile("leak()\n", "<made>", "exec"), globals())
    for number in range(50):  # in the same places of memory
        exec(compile("leak()\n", "<made %d>" % number, "exec"), globals())
    for number in range(50):
        exec(compile("\n" * (number % 7) + "leak()\n", "<long>", "exec"), globals())


def all_kinds(context):
    outer()
    model = Model()
    model.forward()
    Model.make()
    model.weight
    len(model)
    del model
    for _ in delegate():
        pass
    try:
        wait().send(None)
    except StopIteration:
        pass
    (lambda: leak())()
    [leak() for _ in range(2)]
    list(map(lambda _: leak(), [1]))
    sorted([1], key=lambda _: leak())
    functools.partial(leak)()
    functools.reduce(lambda _, __: leak(), [1, 2])
    spread(a=1, b=2)
    sort()
    compile_often()
    loop()
    for levels in (1, 5, 10, 200):
        recurse(levels)
    threads = [threading.Thread(target=work, args=(context,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start():
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    return context


def child():
    start()
    block = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(98765))


def fork():
    import multiprocessing
    refused = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1))
    processes = [multiprocessing.get_context("fork").Process(target=child) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    child()
    print("refused", refused, "children", [process.exitcode for process in processes])


# ---- the other side -----------------------------------------------------------------------------

class Report:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.json = json.load(file)
        frames = {frame["id"]: frame for frame in self.json["frames"]}
        stacks = {s["id"]: [frames[i] for i in s["frames"]] for s in self.json["stacks"]}
        self.stacks = stacks
        self.sites = self.json["sites"]
        self.site_of = {leak["bytes"]: self.sites[leak["site"]] for leak in self.json["leaks"]}

    def lines(self, site):
        return [[f["file"], f["func"], f["line"]] for f in self.stacks[site["stack"]]
                if f.get("lang") == "python"]

    def natives(self, site):
        return [f for f in self.stacks[site["stack"]] if f.get("lang") != "python"]

    def path(self, frame):
        paths = {module["id"]: module["path"] for module in self.json["modules"]}
        return os.path.basename(paths.get(frame.get("module"), ""))


def check_size(report, mode, lines, site):
    stack = report.stacks.get(site.get("stack"), [])
    depth = {"short": 3, "caller": 1}.get(mode, 32)
    if mode == "none":
        assert not stack, stack
        return
    natives = report.natives(site)
    assert stack and len(natives) <= depth, stack
    if mode == "off":
        assert not report.lines(site)
        return
    found = report.lines(site)
    assert found == lines[:len(found)], ("found", found, "expected", lines)
    # They have as much room as native frames; where only the caller is kept, it is a line.
    assert len(found) == min(len(lines), depth), (found, lines)
    assert mode != "caller" or not natives, natives
    for frame in natives:
        assert "_PyEval" not in frame.get("func", ""), frame
        assert not report.path(frame).startswith("libpython"), frame


def check_between(report, lines, site):
    """libc's qsort stands between the Python that it calls and the one that calls it."""
    stack = report.stacks[site["stack"]]
    names = [f["func"] if f.get("lang") == "python" else report.path(f).split(".")[0]
             for f in stack]
    at = names.index("compare")
    assert names[at + 1] in ("_ctypes", "libffi"), names
    assert "libc" in names[at:names.index("sort")], names
    assert names.index("sort") > at, names


def check(mode, path, claims_path):
    report = Report(path)
    with open(claims_path, encoding="utf-8") as file:
        claims = json.load(file)
    sites = {}
    assert len(claims) > 80, len(claims)
    for size, lines in claims:
        site = report.site_of[size]
        check_size(report, mode, lines, site)
        key = json.dumps(lines[:16])
        if mode == "full" and len(lines) <= 20:
            assert sites.setdefault(key, site["id"]) == site["id"], ("two sites", lines)
        if mode == "full" and lines[2][1] == "compare":
            check_between(report, lines, site)
    if mode == "full":
        assert len(set(sites.values())) == len(sites), "two lines, one site"
    if mode in ("full", "caller", "short"):
        loops = [site for site in report.sites if site["total"]["count"] >= LOOP]
        assert [loop["total"] for loop in loops] == [{"count": LOOP, "bytes": 512 * LOOP}], loops
        assert loops[0]["live"]["count"] == 0
    assert report.json["summary"]["allocs"] == len(claims) + LOOP
    assert report.json["summary"]["leaked_blocks"] == len(claims)
    assert report.json["summary"]["leaked_bytes"] == sum(size for size, _ in claims)
    if mode == "off" or mode == "none":
        assert not any("lang" in frame for frame in report.json["frames"])
    keys = sorted((size, report.site_of[size]["key"]) for size, lines in claims
                  if lines[-1][1] == "<module>")
    print(*keys, sep="\n")


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(*sys.argv[2:])
        raise SystemExit
    cuda = ctypes.CDLL("libcuda.so.1")
    if sys.argv[1] == "fork":
        fork()
        raise SystemExit
    all_kinds(start())
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(expected, file)
    shown = json.dumps(sorted(lines for _, lines in expected))
    print(len(expected), "blocks,", zlib.crc32(shown.encode()))
    raise SystemExit(7)
