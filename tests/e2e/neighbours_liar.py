# SPDX-License-Identifier: MIT
"""A neighbour that lies: holds the lock of a live file as its process would, and never gives anything; what it says of itself stays
as it is in the file, with idle memory. Usage: neighbours_liar.py FILE READY STOP"""
import fcntl
import os
import struct
import sys
import time

F_OFD_SETLK = 37
name, ready, stop = sys.argv[1:]
file = os.open(name, os.O_RDWR)
fcntl.fcntl(file, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
open(ready, "w").close()
while not os.path.exists(stop):
    time.sleep(0.02)
