# SPDX-License-Identifier: MIT
"""A stand-in for PyTorch, as far as `cuwarden run --torch` speaks with it: tensors in a cache over the CUDA runtime."""
__version__ = "9.9"
observers = []


class _C:
    @staticmethod
    def _cuda_attach_out_of_memory_observer(observer):
        observers.append(observer)


from . import cuda  # noqa: E402, F401
