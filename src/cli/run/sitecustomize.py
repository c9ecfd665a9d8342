# SPDX-License-Identifier: MIT
"""Which line of Python made which tensor, for `cuwarden run --torch`, which puts this file on PYTHONPATH.

When the program initialises CUDA through PyTorch, PyTorch is asked to note the Python stack of each tensor's memory, and
to keep its last events. A thread looks every 5 ms, later every 50 ms, at what the tensors have held at most. Whenever that
is a tenth more than before, it takes a snapshot, and goes back from it through the events to the moment of the peak. What
is held at exit is another one. They are written into the directories of the runs, as torch.PID; torch.h describes that file.
The variable that names the directories outlives them, and others may make some of the same names: only our own are used.

Only public names of Python and PyTorch are used, and those of torch.cuda.memory that its documentation describes. Nothing
is imported that the program does not import itself, except modules of Python's core; PyTorch imports its compiler at the
first snapshot. No error of ours reaches the program. Python 2 must be able to read the file, as it is on everybody's path.
"""
import sys

POLL_MIN_S, POLL_MAX_S = 0.005, 0.05
POLL_SHARE = 200  # of the time that has passed
SHARE = 20  # of the time, one part at most goes into snapshots,
BURST_S = 0.2  # and this much besides
GREW = 1.1
FRAMES_MAX = 64
EVENTS_MAX = 20000  # of each device; a snapshot of so many takes 160 MB of the host's memory
PEAKS_MAX = 16


def clean(text):
    return str(text).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


class State(object):
    """What one device's tensors hold: {address: (bytes, frames)}."""

    def __init__(self, segments, device):
        self.segments = sorted((s["address"], s["total_size"], s) for s in segments if s.get("device", 0) == device)
        self.device = device
        self.blocks = {}
        for _, _, segment in self.segments:
            for block in segment["blocks"]:
                if block["state"].startswith("active"):
                    size = block.get("requested_size", block["size"])
                    self.blocks[block["address"]] = size, block.get("frames", [])

    def total(self):
        return sum(size for size, _ in self.blocks.values())

    def at_peak(self, events):
        """The state after the event at which most was held; `events` lead to this state."""
        total = most = self.total()
        peak = len(events)
        for at in range(len(events) - 1, -1, -1):
            if total > most:
                most, peak = total, at + 1
            total += self.change(events[at], -1)
        state = State([], self.device)
        state.segments, state.blocks = self.segments, dict(self.blocks)
        for event in reversed(events[peak:]):
            if self.change(event, 1) > 0:
                state.blocks.pop(event["addr"], None)
            elif self.change(event, 1) < 0:
                state.blocks[event["addr"]] = event["size"], None
        for event in reversed(events[:peak]):
            if self.change(event, 1) > 0 and state.blocks.get(event["addr"], (0, 0))[1] is None:
                state.blocks[event["addr"]] = event["size"], event.get("frames", [])
        return state

    @staticmethod
    def change(event, sign):
        if event["action"] == "alloc":
            return sign * event["size"]
        return -sign * event["size"] if event["action"] == "free_completed" else 0

    def lines(self, first):
        """As torch.h has them; `first`: the numbers of the first segment and stack."""
        lines, stacks, sums = [], {}, {}
        addresses = [address for address, _, _ in self.segments]
        for address, size, _ in self.segments:
            lines.append("G\t%d\t%d\t%d" % (self.device, address, size))
        lines.append("G\t%d\t0\t0" % self.device)  # given back since
        for address, (size, frames) in self.blocks.items():
            segment = bisect(addresses, address) - 1
            if segment < 0 or address >= addresses[segment] + self.segments[segment][1]:
                segment = len(addresses)
            stack = tuple((f["filename"], f["line"], f["name"]) for f in (frames or [])[:FRAMES_MAX])
            key = segment, stacks.setdefault(stack, len(stacks))
            count, held = sums.get(key, (0, 0))
            sums[key] = count + 1, held + size
        for stack in sorted(stacks, key=stacks.get):
            lines.append("K")
            lines.extend("F\t%s\t%d\t%s" % (clean(file), line, clean(name)) for file, line, name in stack)
        for (segment, stack), (count, held) in sums.items():
            lines.append("B\t%d\t%d\t%d\t%d" % (first[0] + segment, first[1] + stack, count, held))
        return lines, (first[0] + len(addresses) + 1, first[1] + len(stacks))


def bisect(ordered, value):
    low, high = 0, len(ordered)
    while low < high:
        middle = (low + high) // 2
        if value < ordered[middle]:
            high = middle
        else:
            low = middle + 1
    return low


class Snapshot(object):
    """States of all devices."""

    def __init__(self, time_s, states):
        self.time_s = time_s
        self.bytes = sum(state.total() for state in states)
        self.lines = []
        first = 0, 0
        for state in states:
            lines, first = state.lines(first)
            self.lines.extend(lines)

    def write(self, kind):
        return ["S\t%s\t%d" % (kind, int(self.time_s * 1e9))] + self.lines


class Watch(object):
    """The snapshots of one process."""

    def __init__(self, directories, torch):
        import _thread
        import os
        import time

        self.os, self.time, self.torch = os, time, torch
        self.directories = directories
        self.pid = os.getpid()
        self.peaks = []  # each with more bytes than the one before
        self.exit = None
        self.most = 0
        self.spent_s = 0.0
        self.start_s = time.monotonic()
        self.busy = _thread.allocate_lock()
        self.ended = _thread.allocate_lock()
        self.ended.acquire()

    def begin(self):
        import _thread
        import atexit

        memory = self.torch.cuda.memory
        memory._record_memory_history(enabled="all", context="alloc", stacks="python", max_entries=EVENTS_MAX)
        memory._snapshot()  # the first one takes a second or two
        atexit.register(self.end)
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # its forked workers do not run what is registered with atexit
            util.Finalize(None, self.end, exitpriority=0)
        observe = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if observe is not None:
            observe(self.oom)
        _thread.start_new_thread(self.poll, ())

    def held_most(self):
        cuda = self.torch.cuda
        return sum(
            cuda.memory_stats_as_nested_dict(device).get("allocated_bytes", {}).get("all", {}).get("peak", 0)
            for device in range(cuda.device_count())
        )

    def elapsed_s(self):
        return self.time.monotonic() - self.start_s

    def may_take(self):
        return self.spent_s <= BURST_S + self.elapsed_s() / SHARE

    def poll(self):
        try:
            while not self.ended.acquire(True, min(POLL_MAX_S, max(POLL_MIN_S, self.elapsed_s() / POLL_SHARE))):
                most = self.held_most()
                if most > self.most * GREW and self.may_take():
                    self.most = most
                    self.take()
            self.ended.release()
        except BaseException:  # the interpreter may be ending
            pass

    def oom(self, device, requested, total, free):
        try:
            if self.may_take():
                self.take()
        except Exception:
            pass

    def end(self):
        try:
            if self.os.getpid() == self.pid and self.exit is None:
                self.take(is_exit=True)
                self.ended.release()
        except Exception:
            pass

    def take(self, is_exit=False):
        start_s = self.time.monotonic()
        with self.busy:
            found = self.torch.cuda.memory._snapshot()
            devices = sorted(set(segment.get("device", 0) for segment in found["segments"]))
            states = [State(found["segments"], device) for device in devices]
            traces = found.get("device_traces", [])
            peak = Snapshot(start_s, [s.at_peak(traces[s.device] if s.device < len(traces) else []) for s in states])
            if not self.peaks or peak.bytes > self.peaks[-1].bytes:
                self.peaks.append(peak)
                if len(self.peaks) > PEAKS_MAX:
                    self.peaks = self.peaks[::2] + self.peaks[-1:]
            if is_exit:
                self.exit = Snapshot(start_s, states)
            self.write()
        self.spent_s += self.time.monotonic() - start_s

    def write(self):
        half_s = (self.start_s + self.time.monotonic()) / 2
        half = [peak for peak in self.peaks if peak.time_s <= half_s] or self.peaks[:1]
        lines = ["cuwarden-torch\t1\t%s" % clean(self.torch.__version__), "P\t%d" % self.held_most()]
        lines.extend(half[-1].write("half"))
        lines.extend(self.peaks[-1].write("peak"))
        if self.exit:
            lines.extend(self.exit.write("exit"))
        leave(self.directories, "\n".join(lines) + "\n")


def is_own(status):
    import os

    return status.st_uid == os.geteuid() and status.st_mode & 0o170000 == 0o040000


def leave(directories, text):
    """As torch.PID in each of them, which appears there when it is complete."""
    import os

    name = "torch.%d" % os.getpid()
    for directory in directories:
        try:
            at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # its run has ended
            continue
        try:
            if is_own(os.fstat(at)):
                to = os.open(name + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600, dir_fd=at)
                with open(to, "w", encoding="utf-8", errors="replace") as file:
                    file.write(text)
                os.replace(name + ".new", name, src_dir_fd=at, dst_dir_fd=at)
        finally:
            os.close(at)


def watch(directories, torch):
    try:
        Watch(directories, torch).begin()
    except Exception as error:
        try:
            leave(directories, "cuwarden-torch\t1\t%s\nE\t%s\n" % (clean(torch.__version__), clean(repr(error))))
        except Exception:
            pass


class Loader(object):
    """Another loader, which is followed when the module has been executed."""

    def __init__(self, loader, finder):
        self.loader, self.finder = loader, finder

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        if not self.finder.end():
            return
        try:
            module._lazy_call(lambda: watch(self.finder.directories, sys.modules["torch"]))
        except Exception:
            pass


class Finder(object):
    """Waits for torch.cuda. A module may be looked up more often than it is imported, by several
    threads, and through copies of sys.meta_path that outlive the wait."""

    def __init__(self, directories):
        from _thread import get_ident

        self.directories, self.is_over, self.looking, self.ident = directories, False, set(), get_ident

    def end(self):
        """Whether this is the first import."""
        is_first, self.is_over = not self.is_over, True
        try:
            sys.meta_path.remove(self)
        except ValueError:
            pass
        return is_first

    def find_spec(self, name, path=None, target=None):
        thread = self.ident()
        if name != "torch.cuda" or self.is_over or thread in self.looking:
            return None
        self.looking.add(thread)
        try:
            return self.follow(name, path, target)
        finally:
            self.looking.discard(thread)

    def follow(self, name, path, target):
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader, self)
                return spec
        return None


def runs():
    """The directories of the runs that go on."""
    import os

    def is_there(name):
        try:
            return is_own(os.lstat(name))
        except OSError:
            return False

    return [name for name in os.environ.get("_CUWARDEN_TORCH", "").split(":") if is_there(name)]


def start(file):
    directory = file.rpartition("/")[0]
    # The one that this file hides takes its place.
    sys.path[:] = [entry for entry in sys.path if entry != directory]
    directories = runs() if sys.version_info >= (3, 8) else []
    if directories:
        sys.meta_path.insert(0, Finder(directories))
    own = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        sys.modules["sitecustomize"] = own
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise


start(__file__)
