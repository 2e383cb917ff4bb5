"""Random generators from seeds, and keys for counter-based random streams."""

from __future__ import annotations

import numpy as np

from trueodds.core.settings import Seed, check

_SEED_OR_GENERATOR = Seed | np.random.Generator


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return a Generator for a seed; a Generator is returned unchanged, so that its state advances.

    Parameters
    ----------
    rng : int or numpy.random.Generator, default=0
        Seed or random generator. The same call with the same seed returns the same result.

    >>> int(as_generator(0).integers(10)) == int(as_generator(0).integers(10))
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(check("rng", rng, _SEED_OR_GENERATOR, 0))


def seed_of(rng: int | np.random.Generator, generator: np.random.Generator) -> int:
    """Return the argument `rng` of a call if it is a seed; else draw one from `generator`, which was made from it."""
    return int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))


def reported_seed(rng: int | np.random.Generator) -> int | str:
    """Return what a result says about the seed of its call."""
    return int(rng) if isinstance(rng, (int, np.integer)) else "generator"


def stream_key(rng: np.random.Generator) -> int:
    """Draw a 63-bit key for counter-based random numbers from the generator."""
    return int(rng.integers(0, 2**63 - 1))
