# SPDX-License-Identifier: MIT
"""PyTorch's tensors, which lie in a cache of its own: only PyTorch knows which of them are in use.

Nothing here imports PyTorch or starts CUDA.
"""
from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Tuple

Place = Tuple[str, int, str]
"""file, line, function"""


def _module() -> Any:
    """PyTorch, if the tests have used it on a GPU."""
    torch = sys.modules.get("torch")
    is_initialized = getattr(getattr(torch, "cuda", None), "is_initialized", None)
    return torch if is_initialized is not None and is_initialized() else None


def is_used() -> bool:
    return _module() is not None


def live_bytes() -> int:
    torch = _module()
    return 0 if torch is None else sum(torch.cuda.memory_allocated(device) for device in range(torch.cuda.device_count()))


def idle_bytes() -> int:
    """In blocks of the cache, beside tensors."""
    torch = _module()
    if torch is None or torch.cuda.get_allocator_backend() != "native":
        return 0
    held = sum(int(torch.cuda.memory_reserved(device)) for device in range(torch.cuda.device_count()))
    return held - live_bytes()


def empty_cache() -> None:
    torch = _module()
    if torch is None:
        return
    clear_workspaces = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear_workspaces is not None:
        clear_workspaces()  # they are tensors, which cuBLAS has for good
    torch.cuda.empty_cache()


def _stack(frames: List[Dict[str, Any]], end: Tuple[str, str]) -> Tuple[Place, ...]:
    """Innermost first, without PyTorch's own, as far as the test's function; () if that is not in it."""
    own = os.path.dirname(sys.modules["torch"].__file__ or "") + os.sep
    stack: List[Place] = []
    for frame in frames:
        name = str(frame["filename"])
        if not name.startswith(own) and os.path.isabs(name):
            stack.append((name, int(frame["line"]), str(frame["name"])))
        if (name, str(frame["name"]).rpartition(".")[2]) == end:
            return tuple(stack)
    return ()


def live_stacks(file: str, function: str) -> Dict[Tuple[Place, ...], Tuple[int, int]]:
    """Bytes and number of the tensors that this function made, by stack, as far as PyTorch notes them (`cuwarden run --torch`)."""
    torch = _module()
    found: Dict[Tuple[Place, ...], Tuple[int, int]] = {}
    if torch is None:
        return found
    for segment in torch.cuda.memory._snapshot()["segments"]:
        for block in segment["blocks"]:
            stack = _stack(block.get("frames") or [], (file, function)) if block["state"] == "active_allocated" else ()
            if stack:
                size, count = found.get(stack, (0, 0))
                found[stack] = (size + int(block["size"]), count + 1)
    return found
