# SPDX-License-Identifier: MIT
"""calls_check.py BARE AGAIN PRELOADED: each call ended with the library as it did without. What two runs without it wrote
differently (times) is not compared, only how those calls ended."""
import sys

bare, again, preloaded = (open(path).read().splitlines() for path in sys.argv[1:])
if not len(bare) == len(again) == len(preloaded):
    sys.exit(f"{len(bare)}, {len(again)} and {len(preloaded)} calls")


def ending(line):
    """Without what was written where the arguments point: ROOM.WORD=VALUE"""
    return " ".join(word for word in line.split(" ") if not ("=" in word and word[0].isdigit()))


wrong, vague = [], 0
for one, two, other in zip(bare, again, preloaded):
    if one != two and ending(one) == ending(two):
        vague += 1
        one, other = ending(one), ending(other)
    elif one != two:
        wrong.append(f"{one}, and again without the library {two}")
        continue
    if one != other:
        wrong.append(f"{one}, with the library {other}")
if vague > len(bare) // 100:
    wrong.append(f"{vague} calls write something else each time")
print(f"{len(bare)} calls, {sum('signal' in line for line in bare)} of them end the process")
print("\n".join(wrong))
sys.exit(bool(wrong))
