"""Random generators from seeds, and keys for counter-based random streams."""

from __future__ import annotations

import numpy as np

from trueodds.core.settings import Seed, check


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """The generator behind a seed; a Generator is used as it is, so that its state moves on.

    >>> int(as_generator(0).integers(10)) == int(as_generator(0).integers(10))
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(check("rng", rng, Seed | np.random.Generator, 0))


def stream_key(rng: np.random.Generator) -> int:
    """A 63-bit key for the counter-based draws, taken from the generator."""
    return int(rng.integers(0, 2**63 - 1))
