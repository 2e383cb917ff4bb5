"""Batches of tensors from models that are calibrated, sure, tied or weighted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")


def predictions(n: int = 2000, k: int = 5, *, seed: int = 0, scale: float = 2.0) -> tuple[Any, Any]:
    """Logits (n, K) and labels (n,) drawn from softened probabilities, so that the model is overconfident."""
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(n, k, generator=generator)
    target = torch.multinomial((0.6 * logits).softmax(1), 1, generator=generator)[:, 0]
    return logits, target


def split(*tensors: Any, size: int = 300) -> Iterator[tuple[Any, ...]]:
    """Consecutive batches of the rows."""
    for start in range(0, len(tensors[0]), size):
        yield tuple(tensor[start : start + size] for tensor in tensors)
