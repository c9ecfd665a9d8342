#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures on a GPU; ../gpu/bench.sh builds the programs and runs this, once for each PART:

    pairs        what one allocation and its free cost: contestants by size, threads and streams
    first        what the first use of the device costs, step by step
    asks         what a program pays for asking the library (include/cuwarden; bench/asks.c)
    heavy        a whole program that allocates all the time (programs/heavy.cu)
    torch_train  a training loop (bench_workloads.py)

All contestants of a part have their turn in each round, each in processes of its own, and every round
begins with another one. A figure is the median over the rounds, its spread the distance of the
quartiles over that median. There are as many rounds as fit into --seconds, one at least, after a
process that is not counted. After each process the library's report must show that it did what is
being measured. --out gets one JSON object for each row; the last line of the output says how it
went. Exit status 1 and "FAIL: WHY", or 77 and "SKIP: WHY".
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections import namedtuple

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = (4 * KIB, 64 * KIB, MIB, 2 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB, 16 * GIB)

STRICT = {"MODE": "pool", "FREE_SYNC": "strict"}
DEFERRED = {"MODE": "pool", "FREE_SYNC": "deferred"}
TRACK = {"MODE": "track", "STACKS": "full"}

# settings: of the library, or None without it. variables: others of the environment. program and words:
# where contestants are not the same program.
Contestant = namedtuple("Contestant", "name settings variables program words")
Contestant.__new__.__defaults__ = (None, {}, "", ())


class Failure(Exception):
    """The part has no figures; what it says is one line."""


class Skip(Exception):
    """There is nothing to measure; what it says is one line."""


def one_line(text):
    return " ".join(text.split())[:300]


class Session:
    """Where the programs are, and how they are run; counts the time from its beginning."""

    def __init__(self, options):
        self.options = options
        self.without = read_without(options.without)
        # Without events of a context the pool leaves smaller blocks to the driver (docs/pool.md).
        self.kept_from = 2 * MIB if "deferred" in self.without else 1
        self.begin = time.monotonic()
        self.report = os.path.abspath("report")
        self.base = {name: value for name, value in os.environ.items()
                     if not name.startswith(("CUWARDEN_", "CUSIM_")) and name != "LD_PRELOAD"}
        if options.driver:
            self.base["LD_LIBRARY_PATH"] = options.driver
        if options.simulated:
            # Processes see each other's memory, as on a device; and not that of a test beside this one.
            self.base["CUSIM_SHARED"] = os.path.abspath("devices")

    def left(self):
        return self.options.seconds - (time.monotonic() - self.begin)

    def program(self, name):
        return os.path.join(self.options.programs, name)

    def environment(self, contestant):
        """Forgets the last report, too."""
        environment = dict(self.base, **contestant.variables)
        if os.path.exists(self.report):
            os.unlink(self.report)
        if contestant.settings is not None:
            environment.update({"CUWARDEN_" + name: value for name, value in contestant.settings.items()})
            environment["CUWARDEN_REPORT"] = self.report
            environment["LD_PRELOAD"] = self.options.library
            if self.options.simulated:  # a test leaves nothing where others look
                environment["CUWARDEN_LIVE"] = os.path.abspath("live-files")
                shutil.rmtree("live-files", ignore_errors=True)
        return environment

    def run(self, contestant, command):
        """Returns what it printed; a program that fails is a failure of the part."""
        done = subprocess.run(command, env=self.environment(contestant), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        check_end(contestant, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def summary(self, contestant):
        """The numbers of the report's SUMMARY line; none without the library, but then no report either."""
        if contestant.settings is None:
            if os.path.exists(self.report):
                raise Failure(f"{contestant.name}: a report where there should be none")
            return None
        try:
            with open(self.report, encoding="utf-8", errors="replace") as file:
                lines = [line for line in file if re.match(r"==\d+== SUMMARY: ", line)]
        except OSError:
            lines = []
        if len(lines) != 1:
            raise Failure(f"{contestant.name}: the library slept, there is no report of it")
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", lines[0])}

    def prove(self, contestant, allocations=None, least_hits=1):
        """The library knows of exactly so many allocations, or of some; and its pool, if there is one, served
        at least so many of them."""
        found = self.summary(contestant)
        if found is None:
            return None
        allocs, hits = found["allocs"], found.get("pool_hits", 0)
        if allocs != allocations if allocations is not None else allocs == 0:
            raise Failure(f"{contestant.name}: the report knows of {allocs} allocations, not of {allocations or 'some'}")
        if contestant.settings["MODE"] != "pool":
            least_hits = 0
            if hits:
                raise Failure(f"{contestant.name}: {hits} hits without a pool")
        if hits < least_hits:
            raise Failure(f"{contestant.name}: {hits} hits of the pool for {allocs} allocations, not {least_hits}")
        return found


def check_end(contestant, status, out, err):
    if status == 77:
        raise Skip(one_line(re.sub(r"(?s).*SKIP: ", "", out)) or "the program found nothing to run on")
    if status != 0:
        raise Failure(f"{contestant.name}: the program ended with {status}: {one_line(err or out)}")


# Contestants that need not be there, and why they are not.
OPTIONAL = ("deferred", "cub", "torch", "rmm")


def read_without(words):
    without = dict(word.split("=", 1) for word in words)
    for name in without:
        if name not in OPTIONAL:
            raise Failure(f"{name} cannot be left out: {without[name]}")
    return without


def say_without(without):
    """For the end of a line."""
    return "".join(f"; without {name}: {one_line(why)}" for name, why in without.items())


def in_turn(session, contestants, most, once):
    """once(contestant, is_counted) in rounds, as many as there is time for; returns how many there were."""
    once(contestants[0], False)
    for turn in range(most):
        begin = time.monotonic()
        for place in range(len(contestants)):
            once(contestants[(turn + place) % len(contestants)], True)
        if session.left() < (time.monotonic() - begin) * 1.1:
            break
    return turn + 1


def rounded(value, digits=4):
    return float(f"{value:.{digits}g}")


def figure(values, within=None):
    """The median, and the spread; with one round alone it is that of what one process measured itself."""
    middle = statistics.median(values)
    if len(values) == 1:
        values = within or values
    low, _, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return middle, rounded((high - low) / middle)


# ---- memory in use ----


class Watch:
    """A process of its own that sees how much of the device is in use, see programs/watch.c."""

    def __init__(self, session):
        self.process = subprocess.Popen([session.program("watch")], env=session.base, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True)
        self.expect("ready")

    def expect(self, word):
        words = self.process.stdout.readline().split()
        if words[:1] != [word]:
            raise Failure(f"watch: '{' '.join(words)}' in place of '{word}'")
        return words[1:]

    def ask(self, word, answer):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.expect(answer)

    def empty(self):
        """From now on what is in use counts as nothing; returns the bytes that are free."""
        return int(self.ask("base", "base")[0])

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


# ---- pairs ----

PAIR_LOOPS = 5


def pair_contestants():
    lean = {"STACKS": "off"}
    return [
        Contestant("native", None, {}, "pairs", ["kind=device"]),
        Contestant("strict", dict(STRICT, **lean), {}, "pairs", ["kind=device"]),
        Contestant("deferred", dict(DEFERRED, **lean), {}, "pairs", ["kind=device"]),
        Contestant("strict-full", dict(STRICT, STACKS="full"), {}, "pairs", ["kind=device"]),
        Contestant("track-full", TRACK, {}, "pairs", ["kind=device"]),
        Contestant("async-0", None, {}, "pairs", ["kind=async0"]),
        Contestant("async-max", None, {}, "pairs", ["kind=asyncmax"]),
        Contestant("cub", None, {}, "cub_pairs"),
        Contestant("torch", None, {}, "torch_pairs"),
        Contestant("rmm", None, {}, "rmm_pairs"),
    ]


def pair_workloads():
    def workload(size, threads=1, streams=1, touch=0, sync=0):
        return {"bytes": size, "threads": threads, "streams": streams, "touch": touch, "sync": sync}

    processors = len(os.sched_getaffinity(0))
    return ([workload(size) for size in SIZES] +
            [workload(size, touch=1) for size in (MIB, 64 * MIB)] +
            [workload(MIB, threads=threads) for threads in (2, 4, 8, 16) if threads <= processors] +
            [workload(MIB, streams=streams, touch=1) for streams in (4, 16)] +
            # The driver's pool gives back what is idle at a synchronisation, unless it is told to keep it.
            [workload(size, touch=1, sync=1) for size in (MIB, 64 * MIB)])


def read_pairs(contestant, output, workloads):
    """Yields each workload with the loops' lower quartile, median and upper one, and the allocations; None and 0
    where the device has not the memory."""
    lines = output.splitlines()
    if len(lines) != len(workloads):
        raise Failure(f"{contestant.name}: {len(lines)} figures for {len(workloads)} workloads")
    for workload, line in zip(workloads, lines):
        if line == "-":
            yield workload, None, 0
            continue
        try:
            words = line.split()
            allocations, quartiles = int(words[1]), [float(words[place]) for place in (5, 4, 6)]
        except (ValueError, IndexError):
            quartiles = [0]
        if not all(0 < ns < 1e12 for ns in quartiles):
            raise Failure(f"{contestant.name}: no figure for {workload}: '{one_line(line)}'")
        yield workload, quartiles, allocations


def run_pairs(session, contestant, workloads, large):
    """One process for all workloads; returns what read_pairs yields. Blocks of more than `large` bytes may be
    more than the pool keeps."""
    command = [session.program(contestant.program), *contestant.words]
    milliseconds = 5 if session.options.seconds >= 15 else 1
    for number, workload in enumerate(workloads):
        command += ["--"] if number else []
        command += [f"{name}={value}" for name, value in workload.items()]
        command += [f"loops={PAIR_LOOPS}", f"time={milliseconds}"]
    found = list(read_pairs(contestant, session.run(contestant, command), workloads))
    kept = sum(allocations for workload, _, allocations in found if session.kept_from <= workload["bytes"] <= large)
    # A pool that waits at a free serves all but the first pairs; one that does not, what was ready.
    waits = (contestant.settings or {}).get("FREE_SYNC") == "strict"
    session.prove(contestant, sum(allocations for _, _, allocations in found), kept * 99 // 100 if waits else 1)
    return found


def pair_rows(contestants, workloads, samples):
    for workload in workloads:
        for contestant in contestants:
            found = samples.get((contestant.name, tuple(workload.values())))
            if found:
                middle, spread = figure([quartiles[1] for quartiles in found], found[0])
                row = dict({"what": "pair-sync" if workload["sync"] else "pair", "contestant": contestant.name}, **workload,
                           ns=round(middle, 2), spread=spread)
                del row["sync"]
                yield row


def measure_pairs(session):
    contestants = [one for one in pair_contestants() if one.name not in session.without]
    workloads, samples, failed = pair_workloads(), {}, {}
    watch = Watch(session)
    large = watch.empty() // 8
    watch.close()

    def once(contestant, is_counted):
        if contestant.name in failed:
            return
        try:
            found = run_pairs(session, contestant, workloads, large)
        except Failure as why:
            if contestant.settings is not None or contestant.name not in OPTIONAL:
                raise
            failed[contestant.name] = str(why)  # of others: so it is not there
            return
        for workload, quartiles, _ in found:
            if is_counted and quartiles is not None:
                samples.setdefault((contestant.name, tuple(workload.values())), []).append(quartiles)

    rounds = in_turn(session, contestants, 9, once)
    contestants = [one for one in contestants if one.name not in failed]
    rows = list(pair_rows(contestants, workloads, samples))
    native = sum(row["contestant"] == "native" for row in rows)
    if native == 0:
        raise Failure("nothing fits into the device's memory")
    return rows, (f"{len(contestants)} contestants, {native} workloads, {rounds} rounds"
                  f"{say_without(dict(session.without, **failed))}")


# ---- the first use ----

STEPS = ("init", "first-context", "first-alloc", "exit")


def first_steps(session, contestant, what):
    """ns of each step by name; "exit" is what is left of the process after its last word."""
    start = time.monotonic_ns()
    output = session.run(contestant, [session.program("first"), what, str(start)])
    end = time.monotonic_ns()
    steps = {name: int(ns) for name, ns in re.findall(r"^step (\S+) (\d+)$", output, re.M)}
    said = re.search(r"^end (\d+)$", output, re.M)
    if not said:
        raise Failure(f"{contestant.name}: the program says nothing of its end")
    steps["exit"] = end - int(said.group(1))
    steps["whole"] = end - start
    return steps


def measure_first(session):
    contestants = [Contestant("native"), Contestant("pool", STRICT), Contestant("track", TRACK)]
    samples = {}

    def once(contestant, is_counted):
        steps = first_steps(session, contestant, "use")
        session.prove(contestant, allocations=1, least_hits=0)
        if set(STEPS) - set(steps):
            raise Failure(f"{contestant.name}: no figure for {sorted(set(STEPS) - set(steps))[0]}")
        steps["device-query"] = first_steps(session, contestant, "query")["whole"]
        if is_counted:
            for name in STEPS + ("device-query",):
                samples.setdefault((contestant.name, name), []).append(steps[name] / 1e6)

    rounds = in_turn(session, contestants, 31, once)
    rows = []
    for contestant in contestants:
        for name in STEPS + ("device-query",):
            middle, spread = figure(samples[contestant.name, name])
            rows.append({"what": "first", "contestant": contestant.name, "step": name,
                         "ms": round(middle, 4), "spread": spread})
    return rows, f"{len(contestants)} contestants, {rounds} rounds"


# ---- what a program asks for ----


def measure_asks(session):
    """The best of each process; the median of these."""
    contestant = Contestant("strict", dict(STRICT, STACKS="off"))
    bursts = "100" if session.options.seconds >= 15 else "2"
    samples = {}

    def once(contestant, is_counted):
        output = session.run(contestant, [session.program("asks"), "gpu", bursts])
        session.prove(contestant)
        found = {name: float(ns) for name, ns in re.findall(r"^(\w+) (-?[\d.]+)$", output, re.M)}
        if "grow_in_place" not in found:
            raise Failure(f"the program does not come to its end: {one_line(output)}")
        for name, ns in found.items():
            if is_counted and ns >= 0:
                samples.setdefault(name, []).append(ns)

    rounds = in_turn(session, [contestant], 9, once)
    rows = []
    for name, values in samples.items():
        middle, spread = figure(values)
        rows.append({"what": "ask", "name": name, "ns": round(middle, 2), "spread": spread})
    lacks = "" if "grow_in_place" in samples else "; no buffer grows in place"
    return rows, f"{len(rows)} questions, {rounds} rounds{lacks}"


# ---- whole programs ----

REPEATS = 3


def run_program(session, contestant, command, watch):
    """Lets it run by the words of bench_workloads.py. Returns its seconds, its checksum and the most that
    it used of the device, which is looked at in a repeat that is not timed."""
    seconds, checksum, peak = [], None, None
    watch.empty()
    with open("program.err", "w+", encoding="utf-8", errors="replace") as err:
        process = subprocess.Popen(command, env=session.environment(contestant), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=err, universal_newlines=True)
        said = []
        for line in process.stdout:
            word, _, value = line.strip().partition(" ")
            said.append(line)
            if word == "seconds":
                seconds.append(float(value))
            elif word == "checksum":
                checksum = value
            elif word == "ready":
                watch.ask("begin", "begun")
            elif word == "done":
                peak = int(watch.ask("end", "peak")[0])
            if word in ("ready", "done"):
                process.stdin.write("\n")
                process.stdin.flush()
        process.stdin.close()
        status = process.wait()
        process.stdout.close()
        err.seek(0)
        check_end(contestant, status, "".join(said[-20:]), err.read())
    if len(seconds) < REPEATS or checksum is None or not peak or min(seconds) <= 0:
        raise Failure(f"{contestant.name}: the program gives no figures: {one_line(''.join(said[-3:]))}")
    return seconds, checksum, peak


def measure_program(session, name, contestants, command):
    """Rows for the time, and for the memory."""
    contestants = [one for one in contestants if one.name not in session.without]
    times, within, peaks, reported, sums = {}, {}, {}, {}, {}
    watch = Watch(session)

    def once(contestant, is_counted):
        seconds, checksum, peak = run_program(session, contestant, command, watch)
        found = session.prove(contestant, least_hits=1 if session.kept_from == 1 else 0)
        sums[checksum] = contestant.name
        if len(sums) > 1:
            raise Failure(f"{' and '.join(sums.values())} come to other results: {' and '.join(sums)}")
        if is_counted:
            times.setdefault(contestant.name, []).append(statistics.median(seconds))
            within.setdefault(contestant.name, seconds)
            peaks.setdefault(contestant.name, []).append(peak)
            if found:
                reported.setdefault(contestant.name, []).append(found["peak_bytes"])

    try:
        rounds = in_turn(session, contestants, 9, once)
    finally:
        watch.close()
    rows, first = [], contestants[0].name
    for contestant in contestants:
        middle, spread = figure(times[contestant.name], within[contestant.name])
        rows.append({"what": "program", "program": name, "contestant": contestant.name,
                     "seconds": rounded(middle, 6), "spread": spread,
                     "peak_bytes": int(statistics.median(peaks[contestant.name]))})
    for contestant in contestants:
        if contestant.name in reported:
            peak = statistics.median(peaks[contestant.name])
            rows.append({"what": "memory", "program": name, "contestant": contestant.name, "peak_bytes": int(peak),
                         "reported_peak": int(statistics.median(reported[contestant.name])),
                         "over": first, "overhead": rounded(peak / statistics.median(peaks[first]) - 1)})
    return rows, f"{len(contestants)} contestants, {rounds} rounds{say_without(session.without)}"


def program_words(options):
    milliseconds = 600 if options.seconds >= 15 else 10
    return [f"ms={milliseconds}", f"repeats={REPEATS}"]


def measure_heavy(session):
    words = program_words(session.options)
    if session.options.simulated:  # its kernels are functions of the host, its memory is the host's
        words += ["steps=5", "words=256", f"most={MIB}"]
    contestants = [Contestant("native"), Contestant("pool", STRICT), Contestant("deferred", DEFERRED),
                   Contestant("track-full", TRACK)]
    return measure_program(session, "heavy", contestants, [session.program("heavy"), *words])


def measure_torch(session):
    uncached = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    contestants = [Contestant("own-cache"), Contestant("no-cache", None, uncached), Contestant("pool", STRICT, uncached),
                   Contestant("deferred", DEFERRED, uncached), Contestant("track-full", TRACK)]
    workloads = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench_workloads.py")
    words = program_words(session.options)
    if session.options.simulated:
        words += ["steps=2"]
    return measure_program(session, "torch_train", contestants, [sys.executable, workloads, "torch_train", *words])


PARTS = {"pairs": measure_pairs, "first": measure_first, "asks": measure_asks, "heavy": measure_heavy,
         "torch_train": measure_torch}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--programs", required=True, help="the directory of the programs")
    parser.add_argument("--library", required=True, help="libcuwarden.so")
    parser.add_argument("--seconds", type=float, required=True, help="to be done by then")
    parser.add_argument("--out", required=True, help="the file for the rows")
    parser.add_argument("--driver", default="", help="the directory of another libcuda.so.1")
    parser.add_argument("--simulated", action="store_true", help="which is the simulated one")
    parser.add_argument("--without", metavar="NAME=WHY", action="append", default=[], help="a contestant that is not there")
    options = parser.parse_args()
    try:
        session = Session(options)
        rows, text = PARTS[options.part](session)
    except Skip as why:
        print(f"SKIP: {why}")
        return 77
    except (Failure, OSError) as why:
        print(f"FAIL: {why}")
        return 1
    with open(options.out, "w", encoding="utf-8") as file:
        for row in rows:
            if options.simulated:
                row["simulated"] = True
            file.write(json.dumps(row) + "\n")
    print(f"{'simulated, ' if options.simulated else ''}{time.monotonic() - session.begin:.0f} s, {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
