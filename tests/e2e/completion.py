#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Types into an interactive shell, and sees what the Tab key makes of it.

completion.py SHELL [ARGUMENT...]: standard input has lines; one without a blank-separated " => " is
a command that the shell is to execute first, another has what is typed before Tab, and what the
command line is to have become. Waits for that as long as it takes, up to ten minutes each."""

import os
import pty
import select
import sys
import time

PATIENCE = 600


def wait_for(terminal, text, seen=b""):
    end = time.monotonic() + PATIENCE
    while text not in seen:
        ready = select.select([terminal], [], [], max(0, end - time.monotonic()))[0]
        try:
            more = os.read(terminal, 65536) if ready else b""
        except OSError:
            more = b""
        if not more:
            sys.exit("no %r in %r" % (text, seen))
        seen += more


def main():
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.environ["COLUMNS"] = "500"
        os.execvp(sys.argv[1], sys.argv[1:])
    count = 0
    for line in sys.stdin.read().splitlines():
        typed, arrow, wanted = line.partition(" => ")
        if not arrow:
            # The echo of the command does not have the word.
            count += 1
            os.write(terminal, ("%s; echo DO''NE-%d\n" % (line, count)).encode())
            wait_for(terminal, b"DONE-%d" % count)
            continue
        os.write(terminal, typed.encode() + b"\t")
        wait_for(terminal, wanted.encode())
        os.write(terminal, b"\x15")
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(pid, 0)


main()
