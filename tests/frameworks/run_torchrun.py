# SPDX-License-Identifier: MIT
"""torchrun with two ranks, each on a device of its own, that sum over gloo. `leak`: the second keeps a tensor."""
import ctypes
import os
import sys


def keep(torch):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(torch.empty(100000, dtype=torch.uint8, device="cuda")))


def rank(arguments):
    import torch
    from torch import distributed
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("gloo")
    number = distributed.get_rank()
    for step in range(8):
        values = torch.arange(1000.0 + step).cuda()
        total = values.cpu() * (number + 1)
        distributed.all_reduce(total)
        if number == 0:
            print(step, torch.cuda.current_device(), int(total.sum()))
    if number == 1 and arguments == ["leak"]:
        keep(torch)
    distributed.destroy_process_group()


if "LOCAL_RANK" in os.environ:
    rank(sys.argv[1:])
else:
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *sys.argv])
