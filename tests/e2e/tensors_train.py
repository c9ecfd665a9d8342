# SPDX-License-Identifier: MIT
"""Keeps a model and statistics, as a script that trains does. tensors_train.py [WAY]"""
import os
import sys
import time

import torch

kept = []


def keep_statistics():
    kept.append(torch.cuda.empty(1 << 20))


def train():
    model = torch.cuda.empty(3 << 20)
    torch.cuda.memory.settle()  # the first snapshot is of this
    time.sleep(0.5)  # and is the one of half of the time
    with torch.cuda.memory.unseen:
        for _ in range(20):
            keep_statistics()
            torch.cuda.empty(2 << 20)
    torch.cuda.memory.settle()
    return model


way = sys.argv[1] if len(sys.argv) > 1 else ""
if way == "oom":
    while True:
        keep_statistics()
elif way == "fork":
    if os.fork() == 0:
        train()
        sys.exit(0)
    os.wait()
elif way == "killed":
    train()
    os.kill(os.getpid(), 9)
elif way == "local":
    train()
    kept.clear()
else:
    model = train()
