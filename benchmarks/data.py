"""Data of the benchmarks: arrays that are created once and shared by all tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

Arrays = dict[str, np.ndarray]

WRONG = 0.05  # share of labels drawn uniformly: an error of a few percent, on which tools can agree


def labels(P: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels (n,) drawn from the predictions.

    Labels that mostly equal the predicted class would favor some implementations.
    """
    n, k = P.shape
    labels_drawn = np.empty(n, dtype=np.int64)
    for start in range(0, n, 1 << 14):
        block = P[start : start + (1 << 14)].astype(np.float64)
        steps = block.cumsum(axis=1)
        threshold = rng.random((len(block), 1)) * steps[:, -1:]
        labels_drawn[start : start + len(block)] = (steps <= threshold).sum(axis=1)
    is_uniform = rng.random(n) < WRONG
    labels_drawn[is_uniform] = rng.integers(0, k, is_uniform.sum())
    return np.minimum(labels_drawn, k - 1)


def predictions(n: int, k: int, dtype: type = np.float32) -> Arrays:
    """Probabilities (n, k), uncertain in some rows and confident in others, with labels."""
    rng = np.random.default_rng([n, k])
    if k <= 10:
        raw = rng.standard_exponential((n, k), dtype=np.float32) ** 2
    else:  # one dominant class; the others are not so small that an epsilon inside a logarithm would matter
        raw = np.exp(rng.standard_normal((n, k), dtype=np.float32))
        raw[np.arange(n), rng.integers(0, k, n)] *= np.exp(rng.uniform(2, 10, n)).astype(np.float32)
    P = (raw / raw.sum(axis=1, keepdims=True)).astype(dtype)
    P /= P.sum(axis=1, keepdims=True)
    return {"P": P, "y": labels(P, rng)}


def sets(scale: float) -> Arrays:
    """200 samples of 115 rows out of 20,000, as the rows of one table of predictions."""
    arrays = predictions(20_000, 5, np.float64)
    count = max(3, round(200 * scale))
    return arrays | {"rows": np.random.default_rng(7).integers(0, 20_000, (count, 115))}


MAKERS: dict[str, Callable[[float], Arrays]] = {
    "ten": lambda scale: predictions(round(1_000_000 * scale), 10),
    "thousand": lambda scale: predictions(round(50_000 * scale), 1000),
    "hundred-thousand": lambda scale: predictions(round(100_000 * scale), 10),
    "ten-thousand": lambda scale: predictions(round(10_000 * scale), 10),
    "five-thousand": lambda scale: predictions(round(5_000 * scale), 10),
    "sets": sets,
}


def save(name: str, scale: float, folder: Path) -> None:
    """Create and save one data set."""
    for key, array in MAKERS[name](scale).items():
        np.save(folder / f"{name}.{key}.npy", array)


def load(name: str, folder: Path) -> Arrays:
    """Load one data set."""
    return {path.name.split(".")[1]: np.load(path) for path in sorted(folder.glob(f"{name}.*.npy"))}


def shape(arrays: Mapping[str, np.ndarray]) -> str:
    """Shape and type for the table: `1,000,000 × 10 float32`."""
    n, k = arrays["P"].shape
    return f"{n:,} × {k} {arrays['P'].dtype}"
