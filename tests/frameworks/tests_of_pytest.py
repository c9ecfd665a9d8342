# SPDX-License-Identifier: MIT
"""What run_pytest.py runs."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import device  # noqa: E402
import pytest  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def gpu():
    device.start()


@pytest.mark.parametrize("number", range(6))
def test_work(number):
    assert device.work() == sum(1024 * step for step in range(20))


def test_keeps():
    block = device.allocate(100000)
    if os.environ["KEEP_BLOCK"] != "True":
        device.free(block)
