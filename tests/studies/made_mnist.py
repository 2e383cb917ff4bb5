"""A file of the names and shapes of MNIST with made images: a bright square for each class, and noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_made_mnist(folder: Path, train: int = 900, test: int = 300, seed: int = 0) -> None:
    """Some labels are wrong, so that a network cannot be certain."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for part, n in (("train", train), ("test", test)):
        y = rng.integers(0, 10, n)
        X = rng.integers(0, 80, (n, 28, 28))
        for i, digit in enumerate(y):
            row, column = divmod(int(digit), 4)
            X[i, 9 * row : 9 * row + 8, 7 * column : 7 * column + 6] += 150
        wrong = rng.random(n) < 0.1
        arrays |= {f"x_{part}": X.astype(np.uint8)}
        arrays |= {f"y_{part}": np.where(wrong, rng.integers(0, 10, n), y).astype(np.uint8)}
    np.savez(folder / "mnist.npz", **arrays)
