# SPDX-License-Identifier: MIT
"""pytest in this process, or `-n 2`: in workers of xdist; `leak`: one test keeps a block."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
os.environ["KEEP_BLOCK"] = str("leak" in sys.argv)
workers = ["-n", "2"] if "-n" in sys.argv else []
tests = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tests_of_pytest.py")
status = pytest.main(["-qq", "-p", "no:cacheprovider", "--no-header", "-c", os.devnull, "--rootdir", os.getcwd(),
                      *workers, tests])
print("status", int(status))
sys.exit(status)
