# SPDX-License-Identifier: MIT
"""routes_check.py DRIVER-SYMBOLS ROWS BARE PRELOADED: what routes.c said with the library is what it said without, but for the
functions that hooks.def has rows for, which are ours. DRIVER-SYMBOLS is nm's list; a row has symbol, base, since and stream."""
import collections
import sys

OURS = "libcuwarden.so:"

names_at = collections.defaultdict(set)
for line in open(sys.argv[1]):
    address, _, name = line.split()[:3]
    names_at[int(address, 16)].add(name.split("@")[0])
hooked, versions = set(), collections.defaultdict(list)
for line in open(sys.argv[2]):
    symbol, base, since, stream = line.split()
    hooked.add(symbol)
    versions[base].append((int(since), stream, symbol))


def by_version(name, version, flags):
    """The row that cuGetProcAddress means, where the driver's answer has no name."""
    for stream in (["THREAD"] if flags & 2 else []) + ["LEGACY"]:
        fitting = [row for row in versions[name] if row[1] == stream and row[0] <= version]
        if fitting:
            return {max(fitting)[2]}
    return set()


def expected(name, version, flags, answer):
    """The names of ours that may stand in the place of the driver's answer."""
    if not answer.startswith(("libcuda.so", "libnvidia-ml.so")):
        return set()
    exported = names_at.get(int(answer.split("+")[1], 16))
    return exported & hooked if exported else by_version(name, version, flags)


def read(path):
    for line in open(path):
        key, _, said = line.rstrip("\n").partition(": ")
        answer, _, rest = said.partition(" ")
        yield key, answer, rest


wrong, ours, same, seen = [], set(), 0, 0
bare, preloaded = list(read(sys.argv[3])), list(read(sys.argv[4]))
if len(bare) != len(preloaded):
    wrong.append(f"{len(bare)} answers without the library, {len(preloaded)} with it")
for (key, answer, rest), (key_with, answer_with, rest_with) in zip(bare, preloaded):
    seen += 1
    _, name, version, flags = key.split(" ")
    want = expected(name, int(version), int(flags), answer)
    if (key, rest) != (key_with, rest_with):
        wrong.append(f"{key}: {answer} {rest}, with the library {key_with}: {answer_with} {rest_with}")
    elif want and (not answer_with.startswith(OURS) or answer_with[len(OURS):] not in want):
        wrong.append(f"{key}: {answer}, which is {'/'.join(sorted(want))}, is answered with {answer_with}")
    elif not want and answer != answer_with:
        wrong.append(f"{key}: {answer} is answered with {answer_with}")
    elif want:
        ours.add(answer_with)
print(f"{seen} answers, {len(ours)} functions of ours")
print("\n".join(wrong))
sys.exit(bool(wrong))
