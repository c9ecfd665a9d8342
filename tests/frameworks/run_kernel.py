# SPDX-License-Identifier: MIT
"""A notebook in a kernel of its own, as Jupyter runs it. `leak`: a cell keeps a block."""
import os
import sys

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

os.environ.update(PYTHONPATH=os.path.dirname(os.path.abspath(__file__)), IPYTHONDIR=os.path.abspath("ipython"),
                  JUPYTER_RUNTIME_DIR=os.path.abspath("runtime"), JUPYTER_CONFIG_DIR=os.path.abspath("config"))
cells = ["import device\ndevice.start()", "device.work()"]
if sys.argv[1:] == ["leak"]:
    cells.append("block = device.allocate(100000)")
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
# It has its report to write at its end, and is not killed for taking longer than five seconds on a busy machine.
patience = Config({"KernelManager": {"shutdown_wait_time": 600}})
NotebookClient(notebook, kernel_name="python3", timeout=600, startup_timeout=600, config=patience).execute()
print([output["data"]["text/plain"] for cell in notebook.cells for output in cell.outputs])
