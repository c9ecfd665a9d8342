# SPDX-License-Identifier: MIT
"""Time as it would pass on a GPU. A kernel of the simulated one takes none, so the programs say what their
work would cost and sleep when they are ahead of a device that does so much per second."""
import time

FLOPS = 40e12
BYTES = 1.2e12
AHEAD = 0.001  # a stream of work that is queued; what is freed waits for it anyway


class Device:
    def __init__(self):
        self.done = time.monotonic()

    def work(self, flops=0.0, size=0.0):
        now = time.monotonic()
        self.done = max(self.done, now) + max(flops / FLOPS, size / BYTES) + 4e-6
        if self.done - now > AHEAD:
            time.sleep(self.done - now)


device = Device()


class Clock:
    """The program's own time: ends a recording, and waits for what comes in from outside."""

    def __init__(self, seconds):
        self.start = time.monotonic()
        self.seconds = seconds

    def now(self):
        return time.monotonic() - self.start

    def goes_on(self):
        return self.now() < self.seconds

    def wait_until(self, moment):
        time.sleep(max(0.0, moment - self.now()))
