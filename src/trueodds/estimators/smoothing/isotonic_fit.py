"""Which rates that never fall with the score fit the outcomes best? Pool adjacent violators, for many draws at once."""

from __future__ import annotations

from trueodds.kernels.isotonic import means as isotonic_fit

__all__ = ["isotonic_fit"]
