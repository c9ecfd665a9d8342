# SPDX-License-Identifier: MIT
# What the reader of Python frames sees, held against what the interpreter says of itself. Run by
# python_frames.test with the probe preloaded.
import asyncio
import ctypes
import gc
import os
import sys
import threading

probe = ctypes.CDLL(None)
probe.probe_status.restype = ctypes.c_char_p
probe.probe_stamp.restype = ctypes.c_uint
probe.probe_seen_at_end.restype = ctypes.POINTER(ctypes.c_int)
CALLBACK = ctypes.CFUNCTYPE(None)
MANY = 4000
FILE_MAX = 1023
FUNCTION_MAX = 511
checks = 0


def shown(text):
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text).encode()


def function_of(code):
    return code.co_qualname if hasattr(code, "co_qualname") else code.co_name


def expected():
    """The frames from the caller on, innermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        file, function = shown(frame.f_code.co_filename), shown(function_of(frame.f_code))
        if len(file) > FILE_MAX:
            file = ("..." + file[3 - FILE_MAX :].decode(errors="ignore")).encode()
        found.append((file, function[:FUNCTION_MAX], frame.f_lineno))
        frame = frame.f_back
    return found


def seen(limit=MANY):
    """The same as the reader has it, without this frame."""
    text = ctypes.create_string_buffer(1 << 20)
    count = probe.probe_frames(text, len(text), limit + 1)
    frames = [line.split(b"\t") for line in text.value.splitlines()]
    assert len(frames) == count
    return [(f[0], f[1], int(f[2])) for f in frames[1:] if f != [b"gone"]]


def evaluators():
    entries = ctypes.c_int()
    return probe.probe_evaluators(ctypes.byref(entries)), entries.value


def check():
    global checks
    checks += 1
    seen_frames, expected_frames = seen(), expected()
    if seen_frames != expected_frames:
        for pair in zip(seen_frames, expected_frames):
            if pair[0] != pair[1]:
                print("seen %r, expected %r" % pair)
        sys.exit("%d frames, expected %d" % (len(seen_frames), len(expected_frames)))
    return len(seen_frames)


# The compiler may have put most of the evaluator elsewhere, under no name: what has the name is small then.
def is_hidden(native):
    return native == 0 and probe.probe_evaluator_size() < 4096


def check_evaluators():
    native, entries = evaluators()
    assert native == entries or is_hidden(native), (native, entries)


def recurse(depth):
    if depth > 0:
        return recurse(depth - 1)
    check_evaluators()
    assert seen(10) == seen()[:10] or check() < 10
    return check()


class Model:
    def __init__(self):
        check()
        self.frames = seen()

    def forward(self):
        def inner():
            return check()

        return inner()

    @property
    def size(self):
        return check()

    def __del__(self):
        check()


def calls():
    assert recurse(50) >= 51
    sys.setrecursionlimit(10000)
    # Each of these is a native call in old versions.
    assert recurse(1500) >= 1501
    model = Model()
    assert model.forward() > 2 and model.size > 1
    for _ in range(300):  # long enough for calls of __init__ to become special
        Model()
    (lambda: check())()
    [check() for _ in range(2)]
    {check(): check() for _ in range(2)}
    list(map(lambda _: check_evaluators() or check(), range(2)))
    sorted([3, 1, 2], key=lambda n: recurse(n))
    try:
        raise ValueError
    except ValueError:
        check()
    finally:
        check()
    for watch in (sys.settrace, sys.setprofile):
        watch(lambda *_: None)
        recurse(3)
        watch(None)
    with_lines = [
        check(),
        1,

        check(),
    ]
    return with_lines


def generate(depth):
    if depth > 0:
        yield from generate(depth - 1)
    check()
    check_evaluators()
    yield depth
    check()


async def wait(depth):
    if depth > 0:
        await wait(depth - 1)
    check()
    await asyncio.sleep(0)
    check()
    check_evaluators()


async def generate_async():
    for n in range(3):
        check()
        yield n
        await asyncio.sleep(0)


async def iterate():
    async for _ in generate_async():
        check()
    await asyncio.gather(*(wait(n) for n in range(4)))


def generators():
    assert list(generate(5)) == list(range(6))
    for _ in generate(3):
        check()
    sum(1 for _ in generate(2) if check())
    thrown = generate(2)
    next(thrown)
    thrown.close()
    coroutine = wait(2)
    coroutine.send(None)
    coroutine.close()
    asyncio.run(iterate())


def run(source, file):
    names = {"check": check, "check_evaluators": check_evaluators}
    exec(compile(source, file, "exec"), names)
    return names


def names():
    for file in ("plain.py", "d\u00e9j\u00e0.py", "mod\u20acl.py", "\U0001f600/x.py", "bad\udcff.py", "\u00ff" * 900 + "end", "x" * 1023, "y" * 1024):
        for function in ("plain", "gr\u00f6\u00dfe", "\u65e5\u672c", "\U00010400", "z" * 600):
            run("def %s():\n    check()\n\n%s()\n" % (function, function), file)
    eval("check()")
    # One and the same string.
    run("check()\n", "<module>")
    run("def same():\n    check()\n\nsame()\n", sys.intern("same"))


def lines():
    """Code of all sizes, with lines that go up and down by little and much."""
    source, gap = ["def f(n):"], 1
    for n in range(200):
        source.append("    a = n + %d; b = (a, n, a, n); c = {a: b}" % n)
        source += [""] * gap + ["    check()"]
        gap = gap * 5 % 307
        if n % 10 == 0:
            source += ["    max(", "        check(),"] + [""] * gap + ["        check()", "    )"]
            source += ["    for x in (1, 2):", "        if check():", "            continue"]
    source.append("f(1)")
    run("\n".join(source), "lines.py")
    check_evaluators()


def ends():
    """A frame that is being cleared, called from native code and from Python."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    destructor = ctypes.cast(probe.probe_at_end, ctypes.c_void_p)

    def hold(_):
        capsule = new(1, None, destructor)
        return capsule is None

    for way in (lambda: hold(1), lambda: list(map(hold, [1]))):
        for _ in range(100):
            way()
            native, entries = probe.probe_seen_at_end()[0:2]
            assert entries > 0 and (native == entries or is_hidden(native)), (native, entries)


def threads():
    failures = []

    def work(number):
        source = "def work_%d(n):\n    return work_%d(n - 1) if n else check()\n" % (number, number)
        names = run(source, "thread_%d.py" % number)
        try:
            for n in range(100):
                names["work_%d" % number](n % 7)
        except BaseException as error:
            failures.append(error)

    def several(function, count):
        group = [threading.Thread(target=function, args=(n,)) for n in range(count)]
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()

    several(work, 8)
    # Threads that come and go while others look.
    done = threading.Event()

    def churn(_):
        while not done.is_set():
            thread = threading.Thread(target=check)
            thread.start()
            thread.join()

    churning = [threading.Thread(target=churn, args=(n,)) for n in range(2)]
    for thread in churning:
        thread.start()
    several(work, 4)
    done.set()
    for thread in churning:
        thread.join()
    assert not failures, failures


def foreign():
    assert probe.probe_foreign_thread() == 0
    depths = []

    def called():
        depths.append(check())
        check_evaluators()

    callback = CALLBACK(called)
    for _ in range(5):
        probe.probe_call_in_thread(callback)
    assert depths == [2] * 5, depths  # check and called
    probe.probe_call(callback)
    assert depths.pop() > 2
    check()


def stamps():
    """Code objects that come to lie where others were."""
    known, reused = {}, 0
    code = ctypes.c_ulonglong()
    for n in range(300):
        names = {"probe": probe, "ctypes": ctypes, "code": code}
        source = "\n" * (n % 50) + "def f%d():\n    return probe.probe_stamp(ctypes.byref(code))\n" % n
        exec(compile(source, "stamps.py", "exec"), names)
        stamp = names["f%d" % n]()
        assert stamp == names["f%d" % n]()
        reused += code.value in known
        assert known.get(code.value) != stamp
        known[code.value] = stamp
        del names
        gc.collect(0)
    assert reused > 0


def forked():
    child = os.fork()
    if child == 0:
        probe.probe_reset()
        check()
        os._exit(17)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


status = probe.probe_status().decode()
if status != "%d.%d" % sys.version_info[:2]:
    print("status %s" % status)
    sys.exit(0 if "free-threaded" in status or "not known" in status else 1)
for part in (calls, generators, names, lines, ends, threads, foreign, stamps, forked):
    part()
print("ok %s: %d checks" % (status, checks))
