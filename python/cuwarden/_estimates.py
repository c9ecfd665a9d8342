# SPDX-License-Identifier: MIT
"""What a transformer takes of a device, from the numbers of its shape."""
from __future__ import annotations

import ctypes
from typing import NamedTuple, Optional

from . import _table
from ._calls import call, fill
from ._table import ModelFlags


class Estimate(NamedTuple):
    """What a model takes of each device, in bytes: struct cuwarden_estimate."""

    parameters: int
    active_parameters: int
    weights_bytes: int
    cache_bytes: int
    activations_bytes: int
    gradients_bytes: int
    master_bytes: int
    optimizer_bytes: int
    total_bytes: int
    reserve_bytes: int
    token_bytes: int
    device: Optional[int]
    """that has room for the total now; None: none has, or it is not known"""
    is_partial: bool


def estimate(
    *,
    weights: Optional[str] = None,
    cache: Optional[str] = None,
    optimizer: Optional[str] = None,
    flags: ModelFlags = ModelFlags(0),
    **numbers: int,
) -> Optional[Estimate]:
    """What `cuwarden estimate` computes, from plain numbers: those of struct cuwarden_model (layers, hidden, heads, vocab,
    ffn, kv_heads, batch, context and more). None without the library. Error(INVALID): a shape that cannot be."""
    for name in numbers:
        if name not in _table.MODEL_NUMBERS:
            raise TypeError(f"a model has no number '{name}': {', '.join(_table.MODEL_NUMBERS)} are all")
    words = {"weights": weights, "cache": cache, "optimizer": optimizer}
    for name, word in words.items():
        if word is not None and not isinstance(word, str):
            raise TypeError(f"{name} is a name, as 'bf16' or 'adam', not {word!r}")
    model = fill(_table.RawModel, **numbers, flags=int(flags),
                 **{name: None if word is None else word.encode() for name, word in words.items()})
    raw = _table.RawEstimate()
    if not call("estimate", ctypes.byref(model), ctypes.sizeof(model), ctypes.byref(raw), ctypes.sizeof(raw)):
        return None
    values = {field: getattr(raw, field) for field in Estimate._fields}
    values["device"] = raw.device if raw.device >= 0 else None
    values["is_partial"] = bool(raw.is_partial)
    return Estimate(**values)
