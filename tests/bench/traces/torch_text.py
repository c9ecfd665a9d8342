#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A transformer of the shape of DistilGPT-2 in PyTorch: `torch_text.py train|generate SECONDS`.

train: batches of at most 8192 tokens of texts of about the same length, padded to the longest of them; the
lengths are spread as those of short documents are. generate: requests of 1 to 8 prompts; a cache of keys and
values that grows by concatenation, a token a step, until all answers have ended."""
import random
import sys

import torch
from torch import nn
from torch.nn import functional

from pace import FLOPS, Clock, device
from torch_layers import Attention, Embedding, Linear, Loss, best, size_of

LAYERS, WIDTH, HEADS, WORDS, LONGEST = 6, 768, 12, 50257, 1024
TOKENS = 8192  # of a batch
PER_TOKEN = 16e-3  # seconds that launches and sampling take beside the layers


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.mix, self.out = Linear(WIDTH, 3 * WIDTH), Linear(WIDTH, WIDTH)
        self.up, self.down = Linear(WIDTH, 4 * WIDTH), Linear(4 * WIDTH, WIDTH)

    def forward(self, values, past):
        batch, length, _ = values.shape
        query, key, value = (part.view(batch, length, HEADS, -1).transpose(1, 2)
                             for part in self.mix(self.norm[0](values)).split(WIDTH, 2))
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
            device.work(0, 2 * size_of(key, value))
        mixed = Attention.apply(query, key, value).transpose(1, 2).reshape(batch, length, WIDTH)
        values = values + functional.dropout(self.out(mixed), 0.1, self.training)
        inner = functional.gelu(self.up(self.norm[1](values)), approximate="tanh")
        return values + functional.dropout(self.down(inner), 0.1, self.training), (key, value)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = Embedding(WORDS, WIDTH), Embedding(LONGEST, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = Linear(WIDTH, WORDS, bias=False)

    def forward(self, tokens, past=None):
        before = past[0][0].shape[2] if past else 0
        places = torch.arange(before, before + tokens.shape[1], device=tokens.device)
        values = functional.dropout(self.words(tokens) + self.places(places), 0.1, self.training)
        kept = []
        for i, layer in enumerate(self.layers):
            values, pair = layer(values, past[i] if past else None)
            kept.append(pair)
        if not self.training:
            values = values[:, -1:]
        return self.head(self.norm(values)), kept


def length_of_text(dice):
    return max(16, min(LONGEST, int(dice.lognormvariate(5.6, 0.8))))


def batches(dice):
    """Texts are sorted by length in lots of 512, and their batches shuffled."""
    while True:
        lengths = sorted(length_of_text(dice) for _ in range(512))
        lot, batch = [], []
        for length in lengths:
            if (len(batch) + 1) * length > TOKENS:
                lot.append(batch)
                batch = []
            batch.append(length)
        dice.shuffle(lot)
        yield from ((len(batch), batch[-1]) for batch in lot)


def train(clock):
    net = Net().cuda().bfloat16()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    for count, length in batches(random.Random(1)):
        tokens = torch.empty(count, length, dtype=torch.int64, pin_memory=True).to("cuda", non_blocking=True)
        out, _ = net(tokens)
        loss = Loss.apply(out, tokens)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        loss.item()
        del out, loss, tokens
        if not clock.goes_on():
            return


def generate(clock):
    dice = random.Random(2)
    net = Net().cuda().half().eval()
    moment = 0.0
    with torch.inference_mode():
        while clock.goes_on():
            moment = max(moment + dice.expovariate(0.5), clock.now())
            clock.wait_until(moment)
            count = dice.choices((1, 2, 4, 8), (5, 3, 2, 1))[0]
            prompt = max(length_of_text(dice) for _ in range(count)) // 2
            answer = min(LONGEST - prompt, int(dice.lognormvariate(3.6, 0.7)) + 1)
            tokens, past = torch.empty(count, prompt, dtype=torch.int64).cuda(), None
            for _ in range(answer):
                out, past = net(tokens, past)
                chances, places = best(out[:, -1].float(), 50)
                device.work(PER_TOKEN * FLOPS)
                tokens = places[:, :1]
                (chances / 0.8).softmax(1).cpu()


def main(what, seconds):
    {"train": train, "generate": generate}[what](Clock(float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
