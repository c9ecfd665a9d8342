# SPDX-License-Identifier: MIT
"""Jobs of gevent, which have stacks of their own: each waits for the others, and then works. `leak`: one keeps a block."""
import sys

import device
import gevent

device.start()


def keep():
    device.allocate(100000)


def job(number):
    gevent.sleep(0.01 * number)
    total = device.work(5)
    gevent.sleep(0.01)
    if number == 3 and "leak" in sys.argv:
        keep()
    return total


jobs = [gevent.spawn(job, number) for number in range(8)]
gevent.joinall(jobs, raise_error=True)
print(sum(job.value for job in jobs))
