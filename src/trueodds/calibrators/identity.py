"""The identity, which leaves probabilities unchanged: the baseline for every calibrator."""

from __future__ import annotations

import numpy as np

from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.core.typing import Array


class IdentityMap(CalibrationMap, eq=True):
    """The unchanged probabilities."""

    def apply(self, P: Array) -> Array:
        return np.array(P, dtype=np.float64)

    def describe(self) -> str:
        return "unchanged"

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...]:
        return (SoftmaxTerm(1.0, np.ones(k), np.zeros(k)),)


class IdentitySpec(CalibratorSpec):
    """Leave every probability unchanged.

    The baseline with which every other calibrator is compared. Nothing is estimated, and every predicted class stays.

    Notes
    -----
    .. math:: q = p

    Cost: O(nK) to copy.

    References
    ----------
    .. [1] Vaicenavicius et al. (2019). They write the null hypothesis of calibration as r(p) = p.

    Examples
    --------
    >>> IdentitySpec().fit(np.eye(2), np.eye(2), np.ones(2)).describe()
    'unchanged'
    """

    name, map_type = "identity", IdentityMap
    keeps_argmax = True

    def fit(self, P: Array, Y: Array, w: Array) -> IdentityMap:
        return IdentityMap()
