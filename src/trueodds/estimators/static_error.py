"""Static calibration error (SCE), the class-wise ECE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trueodds.estimators.binned import BinnedError


@dataclass(frozen=True)
class StaticError(BinnedError):
    r"""Static calibration error (SCE, class-wise ECE): mean over classes of the one-vs-rest ECE.

    Confidence covers only the predicted class. This error covers all classes, including small probabilities. It is ECE
    with the lens `classwise`. With another lens it is ECE under that lens.

    Parameters
    ----------
    partition : Partition, optional
        The bins of each class. The default is 15 uniform bins.
    distance, order, min_count : as in `BinnedError`

    Raises
    ------
    InputError : as in `BinnedError`

    Notes
    -----
    .. math:: \frac1K \sum_k \sum_b \tfrac{w_{kb}}{w} |\bar p_{kb} - \bar y_{kb}|

    Shapes: (n,) per class. Empty bins are ignored. A class that was never observed counts.

    Units: probability, in [0, 1]; 0 is best. With many classes the value is small because most probabilities are near
    0. Bias: upward for every class, about as for ECE. `noise_floor` reports it. Cost: O(nK log bins) time, O(K bins)
    memory. Tallies merge exactly. The code of [1]_ uses left-closed bins (``closed="left"``). The code of [2]_ makes 14
    bins if 15 are requested.

    References
    ----------
    .. [1] Nixon et al. (2019).
    .. [2] Kull et al. (2019), as class-wise ECE.

    Examples
    --------
    >>> import trueodds as to
    >>> to.measure([1, 0], [0.9, 0.8], "sce", lens="positive", interval=None).value  # 1/2 · .1 + 1/2 · .8
    0.45
    """

    name: ClassVar[str] = "sce"
    lens: ClassVar[str | None] = "classwise"
