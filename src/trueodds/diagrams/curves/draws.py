"""How many draws, bins and the like may be asked for?"""

from __future__ import annotations

from typing import Annotated

from trueodds.core.settings import Range

DRAWS = 99  # fewer cannot tell the quantiles of a band
BandDraws = Annotated[int, Range(DRAWS, 100_000_000)]
