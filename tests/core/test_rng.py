"""Does chance come only from the seed or generator that was given?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.data.refused import refused
from trueodds.core.rng import as_generator, stream_key


def test_a_seed_is_the_same_numbers_again() -> None:
    for seed in (0, 7, np.int64(7), 2**40):
        assert as_generator(seed).integers(1 << 60) == as_generator(seed).integers(1 << 60)
    assert as_generator(0).integers(1 << 60) != as_generator(1).integers(1 << 60)


def test_a_generator_is_used_as_it_is_and_moves_on() -> None:
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert stream_key(rng) != stream_key(rng)


def test_a_key_fits_into_63_bits_and_follows_the_seed() -> None:
    keys = [stream_key(np.random.default_rng(seed)) for seed in range(50)]
    assert len(set(keys)) == 50
    assert all(0 <= key < 2**63 for key in keys)
    assert stream_key(np.random.default_rng(4)) == keys[4]


@pytest.mark.parametrize("rng", [None, -1, 1.0, True, "0", np.random.RandomState(0), [1]])
def test_what_is_no_seed_is_refused(rng: Any) -> None:
    with refused("TO203", fix="rng=0"):
        as_generator(rng)
