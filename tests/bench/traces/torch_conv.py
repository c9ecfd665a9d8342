#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A convolution net of the shape of ResNet-50 in PyTorch: `torch_conv.py train|infer SECONDS`.

train: batches of 64 images, a smaller one at the end of each epoch, after every second epoch an evaluation
in batches of 100; the side of the images changes from epoch to epoch (progressive resizing). infer: requests
come in at random, and whatever has come is one batch, of at most 16; images have one of nine shapes."""
import random
import sys

import torch
from torch import nn
from torch.nn import functional

from pace import FLOPS, Clock, device
from torch_layers import Conv, Linear


class Bottleneck(nn.Module):
    def __init__(self, depth, width, stride):
        super().__init__()
        self.conv = nn.ModuleList([Conv(depth, width, 1), Conv(width, width, 3, stride), Conv(width, 4 * width, 1)])
        self.norm = nn.ModuleList([nn.BatchNorm2d(width), nn.BatchNorm2d(width), nn.BatchNorm2d(4 * width)])
        self.shortcut = None
        if stride != 1 or depth != 4 * width:
            self.shortcut = nn.Sequential(Conv(depth, 4 * width, 1, stride), nn.BatchNorm2d(4 * width))

    def forward(self, values):
        kept = values if self.shortcut is None else self.shortcut(values)
        for conv, norm in zip(self.conv[:2], self.norm[:2]):
            values = functional.relu(norm(conv(values)), inplace=True)
        values = self.norm[2](self.conv[2](values))
        values += kept
        return functional.relu(values, inplace=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(Conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, depth = [], 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for i in range(count):
                blocks.append(Bottleneck(depth, width, stride if i == 0 else 1))
                depth = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.head = Linear(2048, 1000)

    def forward(self, values):
        return self.head(self.blocks(self.stem(values)).mean((2, 3)))


def images(count, height, width, dtype=torch.float32):
    """On their way to the device."""
    source = torch.empty(count, 3, height, width, dtype=dtype, pin_memory=True)
    device.work(0, 100 * source.numel())
    return source.to("cuda", non_blocking=True)


def train(clock):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    epoch = 0
    while clock.goes_on():
        side = (160, 192, 224)[epoch // 2 % 3]
        for count in [64] * 11 + [37]:
            labels = torch.empty(count, dtype=torch.int64, pin_memory=True).to("cuda", non_blocking=True)
            loss = functional.cross_entropy(net(images(count, side, side)), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
            if not clock.goes_on():
                return
        epoch += 1
        if epoch % 2 == 0:
            evaluate(net)


def evaluate(net):
    net.eval()
    right = 0
    with torch.no_grad():
        for count in [100] * 3 + [28]:
            out = net(images(count, 224, 224))
            right += int((out.argmax(1) == 0).sum())
    net.train()


SHAPES = [(224, 224), (256, 320), (320, 256), (224, 384), (384, 224), (320, 320), (256, 448), (384, 384),
          (448, 320)]


def infer(clock):
    dice = random.Random(1)
    net = Net().cuda().half().eval()
    waiting, moment = [], 0.0
    while clock.goes_on():
        while moment <= clock.now():
            waiting.append(dice.choices(SHAPES, (30, 10, 10, 6, 6, 8, 4, 3, 3))[0])
            # Bursts: half of the time sees eight times the requests of the other.
            moment += dice.expovariate(12.0 if int(moment) % 10 < 5 else 1.5)
        if not waiting:
            clock.wait_until(moment)
            continue
        device.work(20e-3 * FLOPS)  # decoding of images
        shape = waiting[0]  # the oldest, and all of its shape
        batch = [other for other in waiting if other == shape][:16]
        for _ in batch:
            waiting.remove(shape)
        with torch.inference_mode():
            out = net(images(len(batch), *shape, dtype=torch.float16))
            out.float().softmax(1).argmax(1).cpu()


def main(what, seconds):
    torch.backends.cudnn.enabled = False
    {"train": train, "infer": infer}[what](Clock(float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
