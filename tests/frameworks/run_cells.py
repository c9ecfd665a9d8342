# SPDX-License-Identifier: MIT
"""Cells of a notebook, as a terminal's IPython runs them. `leak`: the second keeps a block."""
import os
import sys

from IPython.core.interactiveshell import InteractiveShell

sys.path.insert(0, os.path.dirname(__file__))
shell = InteractiveShell.instance()
for cell in ("import device\ndevice.start()",
             "def keep(size):\n    return device.allocate(size)\n\n"
             "block = keep(100000)\nprint(device.work())" + ("" if sys.argv[1:] == ["leak"] else "\ndevice.free(block)"),
             "print(device.work())"):
    shell.run_cell(cell, store_history=True).raise_error()
