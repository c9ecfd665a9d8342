# SPDX-License-Identifier: MIT
"""What one run of a test does to CUDA's memory, from before its own fixtures to after them.

What fixtures of wider scope allocate meanwhile is told apart by the ids of blocks, which only grow: it is not the test's.
"""
from __future__ import annotations

import ctypes
import gc
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

import cuwarden
from cuwarden import Code

from . import tensors
from .settings import Gates

_DEVICES_MAX = 64


class Totals(NamedTuple):
    """Of all devices and the host, since CUDA's first call."""

    allocations: int
    allocated_bytes: int
    live_bytes: int
    tensor_bytes: int

    @classmethod
    def now(cls) -> "Totals":
        devices, host = cuwarden.device_stats(), cuwarden.device_stats(cuwarden.HOST)
        return cls(devices.allocations + host.allocations, devices.total_bytes + host.total_bytes,
                   devices.live_bytes + host.live_bytes, tensors.live_bytes())

    def since(self, before: "Totals") -> "Totals":
        return Totals(*(now - then for now, then in zip(self, before)))

    def plus(self, other: "Totals") -> "Totals":
        return Totals(*(one + more for one, more in zip(self, other)))


class Left(NamedTuple):
    """What a run left behind."""

    blocks: Tuple[cuwarden.Block, ...]
    tensor_bytes: int
    """in PyTorch's cache, whose blocks are not among those"""

    @property
    def block_bytes(self) -> int:
        return sum(block.bytes for block in self.blocks)

    @property
    def bytes(self) -> int:
        return self.block_bytes + self.tensor_bytes


def collect() -> None:
    """What nobody refers to is freed, and PyTorch gives back what it does not use."""
    gc.collect()
    tensors.empty_cache()


def device_bytes() -> Dict[int, int]:
    """What is taken from the driver for live blocks, by device."""
    found = {}
    for device in range(_DEVICES_MAX):
        try:
            found[device] = cuwarden.device_stats(device).allocated_bytes
        except cuwarden.Error as error:
            if error.code != Code.NO_DEVICE:
                raise
            break
    return found


def _start_driver() -> None:
    """A limit holds from CUDA's first call on; cuInit is one, and makes no context."""
    try:
        ctypes.CDLL("libcuda.so.1").cuInit(0)
    except (OSError, AttributeError):
        pass  # no driver, nothing to limit


class Limit:
    """What a test may take of each device. The process's own limit, if it is lower, holds as before."""

    def __init__(self, size: int) -> None:
        self.size = size
        _start_driver()
        self.before = device_bytes()
        self.refused = cuwarden.device_stats().out_of_memory
        self._own: Dict[int, int] = {}
        self.impose()

    def impose(self) -> None:
        for device, before in self.before.items():
            own = cuwarden.device_stats(device).limit_bytes
            most = max(1, before + self.size)
            try:
                cuwarden.set_limit(min(most, own or most), device)
            except cuwarden.Error as error:
                if error.code == Code.NOT_STARTED:
                    return
                raise
            self._own[device] = own

    def lift(self) -> None:
        while self._own:
            device, own = self._own.popitem()
            cuwarden.set_limit(own or None, device)

    def allow(self, more: Dict[int, int]) -> None:
        for device, size in more.items():
            self.before[device] = self.before.get(device, 0) + size


class Run:
    """One run of a test."""

    def __init__(self, gates: Gates) -> None:
        self.gates = gates
        self._collect()
        self.has_passed = self.is_expected = False
        """so far; though a failure was expected"""
        self.instance: object = None
        """whose method the test is"""
        self.before = Totals.now()
        self.left: Optional[Left] = None
        self.report: Any = None
        """of that moment, if it was too much"""
        """at the end, if that is a gate"""
        self.live_bytes = 0
        """of the process at the end, less what PyTorch keeps without need"""
        self.limit = Limit(gates.limit) if gates.limit is not None else None
        self._mark = cuwarden.mark()
        self._others: List[Tuple[int, int]] = []
        self._is_aside = False
        self._did = Totals(0, 0, 0, 0)

    def _collect(self) -> None:
        if self.gates.has_any:
            collect()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is allocated and freed inside belongs to a fixture of wider scope than the test."""
        if self._is_aside:
            yield
            return
        self._is_aside = True
        self._collect()  # what the test is done with is not freed inside
        mark, before, devices = cuwarden.mark(), Totals.now(), {}
        if self.limit is not None:
            devices = device_bytes()
            self.limit.lift()
        try:
            yield
        finally:
            self._collect()  # what the fixture is done with is not freed in the test
            self._is_aside = False
            self._others.append((mark, cuwarden.mark()))
            self.before = self.before.plus(Totals.now().since(before))
            if self.limit is not None:
                self.limit.allow({device: size - devices.get(device, 0) for device, size in device_bytes().items()})
                self.limit.impose()

    def so_far(self) -> Totals:
        return Totals.now().since(self.before)

    def leaks(self) -> Tuple[cuwarden.Block, ...]:
        """Of what the test allocated."""
        if not cuwarden.blocks(since=self._mark):
            return ()
        found = cuwarden.leak_check(self._mark).found
        return tuple(block for block in found if not any(first <= block.id < end for first, end in self._others))

    def end(self) -> None:
        """After the test's own fixtures have ended, and before others do."""
        if self.limit is not None:
            self.limit.lift()
        self.instance = None
        self._collect()
        now = Totals.now()
        self._did = now.since(self.before)
        self.live_bytes = now.live_bytes - tensors.idle_bytes()
        if self.gates.checks_leaks:
            self.left = Left(self.leaks(), max(0, self._did.tensor_bytes))

    def was_refused(self) -> bool:
        return self.limit is not None and cuwarden.device_stats().out_of_memory > self.limit.refused

    def properties(self) -> List[Tuple[str, object]]:
        """For JUnit's XML: nothing of a test that neither uses CUDA nor has a gate."""
        if not self._did.allocations and not self.gates.has_any:
            return []
        found: List[Tuple[str, object]] = [("cuwarden_allocations", self._did.allocations),
                                           ("cuwarden_allocated_bytes", self._did.allocated_bytes),
                                           ("cuwarden_live_bytes", self._did.live_bytes)]
        if self.left is not None:
            found += [("cuwarden_left_blocks", len(self.left.blocks)), ("cuwarden_left_bytes", self.left.bytes)]
        if self.limit is not None:
            found.append(("cuwarden_limit_bytes", self.limit.size))
        return found


class Memory:
    """The fixture cuwarden_memory: what the running test has done so far, its own fixtures included."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def allocations(self) -> int:
        """successful ones"""
        return self._run.so_far().allocations

    @property
    def allocated_bytes(self) -> int:
        """asked for in these"""
        return self._run.so_far().allocated_bytes

    @property
    def live_bytes(self) -> int:
        """more than before the test; negative: less"""
        return self._run.so_far().live_bytes

    def leaks(self) -> Tuple[cuwarden.Block, ...]:
        """What would be a leak if the test ended now, after a garbage collection."""
        collect()
        return self._run.leaks()

    def stats(self, device: int = cuwarden.ALL_DEVICES) -> cuwarden.Stats:
        """Of the whole process: cuwarden.device_stats()."""
        return cuwarden.device_stats(device)
