"""Laws hold for any number of draws, so noise floors are simulated with a few."""

from collections.abc import Iterator

import pytest

from trueodds.resampling.null_distribution import noise_floor_draws


@pytest.fixture(autouse=True, scope="package")
def reduced_noise_floor_draws() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise_floor_draws, "__defaults__", (49,))
        yield
