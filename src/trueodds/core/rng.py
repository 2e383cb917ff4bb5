"""Where chance enters: one seed or generator, and keys for streams that do not depend on threads."""

from __future__ import annotations

import numpy as np

from trueodds.core.errors import InputError

_PROBLEM = "rng must be a non-negative integer or a numpy Generator."


def as_generator(rng: int | np.random.Generator | None) -> np.random.Generator:
    """The generator behind a seed; a Generator is used as it is, so that its state moves on.

    >>> int(as_generator(0).integers(10)) == int(as_generator(0).integers(10))
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise InputError("TO203", _PROBLEM, repr(rng), "Pass rng=0, or numpy.random.default_rng(0).")


def stream_key(rng: np.random.Generator) -> int:
    """A 63-bit key for the counter-based draws, taken from the generator."""
    return int(rng.integers(0, 2**63 - 1))
