# SPDX-License-Identifier: MIT
"""The same of tensors, in PyTorch or its stand-in; pytest.test says how each ends."""
import pytest
import torch

MIB = 1 << 20
kept = []


def make(size=MIB):
    if hasattr(torch.cuda, "empty"):
        return torch.cuda.empty(size)
    return torch.empty(size, dtype=torch.uint8, device="cuda")


@pytest.fixture(scope="session", autouse=True)
def started():
    make()


@pytest.fixture(scope="module")
def weights():
    return make(4 * MIB)


@pytest.mark.cuwarden_leaks
def test_clean(weights):
    make()


@pytest.mark.cuwarden_leaks
def test_leak(weights):
    kept.append(make())


@pytest.mark.cuwarden_leaks(tolerance="2M")
def test_tolerance():
    kept.append(make())


@pytest.mark.cuwarden_growth(3)
def test_grows():
    kept.append(make())


@pytest.mark.cuwarden_growth(3)
def test_level():
    make(2 * MIB)
