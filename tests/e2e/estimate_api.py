# SPDX-License-Identifier: MIT
"""estimate_api.py JSON...: the function of the package says what the command has said in these files; without the
library that there is none."""
import json
import os
import sys

import cuwarden
from cuwarden import Code, ModelFlags

PARTS = {"weights": "weights", "kv_cache": "cache", "activations": "activations", "gradients": "gradients", "master": "master",
         "optimizer": "optimizer", "total": "total", "reserve": "reserve"}


def ask(said):
    is_training = said["mode"] == "training"
    return cuwarden.estimate(
        **said["shape"], batch=said["batch"], context=said["context"], devices=said["devices_sharing"],
        chunk=said.get("chunk", 0), weights=said["dtype"], cache=said.get("kv_dtype"), optimizer=said.get("optimizer"),
        flags=is_training * ModelFlags.TRAINING | said.get("checkpointing", False) * ModelFlags.CHECKPOINTING)


def refused(why, **model):
    try:
        cuwarden.estimate(**model)
    except cuwarden.Error as error:
        assert error.code == Code.INVALID and why in str(error), error
    else:
        assert not cuwarden.is_active(), model


SMALL = {"layers": 2, "hidden": 64, "heads": 4, "ffn": 128, "vocab": 1000}
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    got = ask(said)
    if not cuwarden.is_active():
        assert got is None
        continue
    for key, name in PARTS.items():
        if key + "_bytes" in said:
            assert said[key + "_bytes"] == getattr(got, name + "_bytes"), (path, key, said, got)
    assert got.parameters == said["parameters"] and got.device is None and not got.is_partial

refused("kv_heads is 3, which does not divide heads, 4", **SMALL, kv_heads=3)
refused("layers is 10001, more than the possible 10000", **{**SMALL, "layers": 10001})
refused("vocab is missing", layers=2, hidden=64, heads=4)
refused("needs a shape", batch=1)
refused("'fp7' is no format", **SMALL, weights="fp7")
refused("'?[31mx' is no format", **SMALL, weights="\x1b[31mx")
refused("window_layers says nothing without window", **SMALL, window_layers=1)
refused("experts_used says nothing without experts", **SMALL, experts_used=1)
for wrong in {"weights": 5}, {"cache": b"bf16"}, {"optimizer": True}:
    try:
        cuwarden.estimate(**SMALL, **wrong)
    except TypeError as error:
        assert "is a name, as 'bf16' or 'adam', not" in str(error), error
    else:
        assert False, wrong
refused("'lion' is no optimizer", **SMALL, optimizer="lion", flags=ModelFlags.TRAINING)
refused("add CUWARDEN_TRAINING", **SMALL, flags=ModelFlags.CHECKPOINTING)
refused("int4 are not trained", **SMALL, weights="int4", flags=ModelFlags.TRAINING)
refused("cannot have flags 8", **SMALL, flags=8)
refused("larger than any machine", **SMALL, batch=1 << 40, context=1 << 40)
refused("cannot divide heads", **SMALL, devices=3)
try:
    cuwarden.estimate(tokens=1)
except TypeError as error:
    assert "no number 'tokens'" in str(error)
else:
    sys.exit("a number that is none")

if cuwarden.is_active():
    import ctypes

    driver = ctypes.CDLL(os.environ["DRIVER"])
    context = ctypes.c_void_p()
    assert driver.cuInit(0) == 0 and driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    address = ctypes.c_uint64()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20)) == 0
    assert cuwarden.estimate(**SMALL).device in (0, 1)
    assert cuwarden.estimate(parameters=10**9).device is None  # 2 GB, and a device has 1 GiB
    got = cuwarden.estimate(stored_bytes=4000, weights="fp32")
    assert (got.parameters, got.weights_bytes, got.is_partial) == (1000, 4000, True), got
    got = cuwarden.estimate(parameters=1000, weights="fp32")
    assert got.is_partial and got.total_bytes == got.weights_bytes == 4000
print("done")
