# SPDX-License-Identifier: MIT
"""check.py ROWS REQUESTS: every request was answered by whom it should be."""
import collections
import sys

rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    symbol, base, since, stream = line.split()
    rows[base].append((int(since), stream, symbol))


def expected(name, version, flags):
    """The symbol of ours that answers, by the rules of cuGetProcAddress; None: not ours."""
    for stream in (["THREAD"] if flags & 2 else []) + ["LEGACY"]:
        fitting = [row for row in rows[name] if row[1] == stream and row[0] <= version]
        if fitting:
            return max(fitting)[2]
    return None


requests = [line.split() for line in open(sys.argv[2])]
asked, ours, wrong, answers = 0, set(), [], {}
for name, version, flags, code, module, symbol, address in requests:
    version, flags = int(version), int(flags)
    asked += 1
    if code != "0" or address == "0":
        continue
    want = expected(name, version, flags)
    answers[name, version, flags] = address
    if want:
        ours.add(want)
    if module != ("libcuwarden.so" if want else "libcuda.so.1"):
        wrong.append(f"{name} {version} {flags}: answered by {module}, expected {want or 'the driver'}")
    elif want and symbol != want:
        wrong.append(f"{name} {version} {flags}: answered with {symbol}, expected {want}")
for (name, version, flags), address in answers.items():
    other = answers.get((name, version, 2))
    streams = {row[1] for row in rows[name] if row[0] <= version}
    if flags == 0 and other and (other == address) != (len(streams) < 2) and rows[name]:
        wrong.append(f"{name} {version}: legacy and per-thread answers are "
                     f"{'the same' if other == address else 'different'}")
if asked < 380:  # CUDA 12.2: 390
    wrong.append(f"only {asked} requests were seen")
if len(ours) < 80:
    wrong.append(f"only {len(ours)} rows were asked for")
print(f"{asked} requests, {len(answers)} answers, {len(ours)} of our functions")
print("\n".join(wrong))
sys.exit(bool(wrong))
