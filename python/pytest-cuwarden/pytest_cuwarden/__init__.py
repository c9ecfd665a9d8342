# SPDX-License-Identifier: MIT
"""Tests that fail when they leave CUDA memory behind, take more than they may, or grow.

The plugin is pytest_cuwarden.plugin. Memory is the type of its fixture cuwarden_memory.
"""
from .measure import Memory

__all__ = ["Memory"]
