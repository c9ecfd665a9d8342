# SPDX-License-Identifier: MIT
# scribble.py DIRECTORY END HOW: writes over the live file that appears in DIRECTORY, again and again, until the
# file END exists; END.ready when it begins to look. HOW: header, or all. Prints how often, which may be 0.
import os
import random
import struct
import sys
import time

directory, end, how = sys.argv[1:4]
dice = random.Random(int(os.environ.get("SCRIBBLE_SEED", "1")))
HEADER_SIZE = 12  # where the header says how long it is: after the magic and the version
WORDS = [b"\x00", b"\xff", b"\x01", b"\x41", b"\x80", b"\x7f", None]


parent = os.getppid()


def is_over():
    return os.path.exists(end) or os.getppid() != parent


def find():
    while not is_over():
        for name in os.listdir(directory) if os.path.isdir(directory) else []:
            if name.endswith(".live") and name[0] != ".":
                return os.path.join(directory, name)
        time.sleep(0.001)
    print(0)
    sys.exit()


open(end + ".ready", "w").close()
fd = os.open(find(), os.O_RDWR)
size = struct.unpack("<I", os.pread(fd, 4, HEADER_SIZE))[0]
assert 4096 < size < 1 << 20, size
times = 0
while not is_over():
    whole = os.fstat(fd).st_size if how == "all" else size
    first = dice.randrange(whole)
    length = min(dice.choice([1, 2, 4, 8, 64, 4096, whole]), whole - first)
    word = dice.choice(WORDS)
    os.pwrite(fd, dice.randbytes(length) if word is None else word * length, first)
    times += 1
print(times)
