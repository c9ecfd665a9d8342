# SPDX-License-Identifier: MIT
# host.py PLUGIN: Python's threads work, while a timer's signal comes again and again.
import ctypes
import faulthandler
import signal
import sys
import threading

faulthandler.enable()
ticks = 0


def tick(number, frame):
    global ticks
    ticks += 1


signal.signal(signal.SIGALRM, tick)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
plugin = ctypes.CDLL(sys.argv[1])
results = []
threads = [threading.Thread(target=lambda: results.append(plugin.host_work())) for _ in range(10)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
while ticks == 0:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
print("python", results)
sys.exit(5)
