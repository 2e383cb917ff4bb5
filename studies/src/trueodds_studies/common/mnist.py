"""MNIST images for the studies that train networks: random training, validation and test rows of `mnist.npz`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from trueodds.core.errors import InputError
from trueodds.core.typing import Array
from trueodds_studies.common.data_files import hash_file, load_npz

MNIST_FILE = "mnist.npz"
CLASSES = 10


@dataclass(frozen=True, eq=False)
class LabeledImages:
    """Images with their labels."""

    images: Array  # (n, 1, 28, 28), float32 in [0, 1]
    labels: Array  # (n,), int64

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class MnistSplit:
    """Images for training, for validation (to choose epochs, strengths and temperatures), and for testing."""

    train: LabeledImages
    validation: LabeledImages
    test: LabeledImages


def load_mnist_split(
    data: str | None, train_rows: int, validation_rows: int, test_rows: int, seed: int, number: int = 0
) -> MnistSplit:
    """Disjoint random rows of the training images for training and validation, and random rows of the test images.

    `number` selects one of many splits. The test rows depend on `test_rows` only, so that all splits are evaluated on
    the same images. Raises TO807 if the file has too few images.
    """
    X_train, y_train, X_test, y_test = _load_mnist(data, hash_file(MNIST_FILE, data))
    _check_row_count(train_rows + validation_rows, len(y_train), "training")
    _check_row_count(test_rows, len(y_test), "test")
    order = np.random.default_rng([seed, number]).permutation(len(y_train))
    train, validation = order[:train_rows], order[train_rows : train_rows + validation_rows]
    test = np.sort(np.random.default_rng(0).permutation(len(y_test))[:test_rows])
    return MnistSplit(
        LabeledImages(_scale_pixels(X_train[train]), y_train[train]),
        LabeledImages(_scale_pixels(X_train[validation]), y_train[validation]),
        LabeledImages(_scale_pixels(X_test[test]), y_test[test]),
    )


@lru_cache(maxsize=1)
def _load_mnist(data: str | None, _file_hash: str) -> tuple[Array, Array, Array, Array]:
    """Images (n, 28, 28) uint8 and labels (n,) int64 for training, then for testing; cached by the hash of the file."""
    file = load_npz(MNIST_FILE, data, "x_train", "y_train", "x_test", "y_test")
    for part in ("train", "test"):
        X, y = file[f"x_{part}"], file[f"y_{part}"]
        if X.dtype != np.uint8 or X.shape[1:] != (28, 28) or y.shape != (len(X),) or not np.isin(y, range(10)).all():
            raise InputError(
                "TO803",
                f"{MNIST_FILE} does not contain MNIST.",
                f"x_{part} {X.dtype} {X.shape}, y_{part} {y.dtype} {y.shape}",
                "Images are uint8 (n, 28, 28), labels (n,) are integers from 0 to 9.",
            )
    return file["x_train"], file["y_train"].astype(np.int64), file["x_test"], file["y_test"].astype(np.int64)


def _scale_pixels(X: Array) -> Array:
    """Images (n, 28, 28) of bytes as (n, 1, 28, 28) float32 in [0, 1], as PyTorch needs them."""
    return np.asarray(X[:, None] / np.float32(255), dtype=np.float32)


def _check_row_count(requested: int, available: int, part: str) -> None:
    """Raise TO807 if the file has fewer images than requested."""
    if requested > available:
        raise InputError(
            "TO807",
            f"{MNIST_FILE} has too few {part} images.",
            f"{available:,} images, {requested:,} requested",
            "Reduce the rows in the plan, or use the complete file.",
        )
