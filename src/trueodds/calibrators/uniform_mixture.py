"""The identity, and mixtures of a map with a small share of the uniform distribution, so that log loss stays finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np

from trueodds.calibrators._glm.log_probabilities import Probabilities, exact_zeros, normalized_logs, to_probabilities
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec, SoftmaxTerm
from trueodds.calibrators.saved_parameters import delegated, read_value
from trueodds.core.errors import InputError
from trueodds.core.settings import Range
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


def uniform_share(n_fit: float) -> float:
    """The share 1/(n + 1) of the uniform distribution that is mixed into a map fitted to n rows, or weight n."""
    return 1 / (n_fit + 1)


def mix_with_uniform(Q: Array, share: Any) -> Array:
    """Normalize the rows of Q (n, K) and mix them with a share of the uniform distribution, a number or (n, 1)."""
    return np.asarray((1 - share) * (Q / Q.sum(axis=1, keepdims=True)) + share / Q.shape[1])


def original_logs(P: Probabilities, share: Any) -> Array:
    """Log-probabilities (n, K) of the original rows as `auto` returns them if it confirms no recalibration.

    Rows with exact zeros are mixed with a `share` of the uniform distribution, a number or (n, 1); others are only
    normalized.

    >>> original_logs(np.array([[0.0, 1.0]]), 0.5).round(4).tolist()
    [[-1.3863, -0.2877]]
    """
    if exact_zeros(P).any():
        return np.asarray(np.log(mix_with_uniform(to_probabilities(P), share)))
    return normalized_logs(P)


_Share = Annotated[float, Range(0, 1)]
SHARE_KEY = "mixing"  # Saved: key of the share among the parameters of the base map


class MixedMap(CalibrationMap):
    """The rows of a base map mixed with a share of the uniform distribution, so that no log loss is infinite.

    All other attributes, such as fitted parameters, are those of the base map.

    >>> from trueodds.calibrators.temperature import TemperatureMap
    >>> mixed = MixedMap(TemperatureMap(0.5), 0.01)
    >>> mixed.apply(np.array([[0.0, 1.0]])).tolist(), mixed.beta
    ([[0.005, 0.995]], 0.5)
    """

    base_map: CalibrationMap
    share: _Share  # of the uniform distribution

    name = delegated("base_map", "name")
    takes_logs = delegated("base_map", "takes_logs")
    logits = delegated("base_map", "logits")
    n_passes = delegated("base_map", "n_passes")
    converged = delegated("base_map", "converged")
    table = delegated("base_map", "table")
    named_intervals = delegated("base_map", "named_intervals")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("base_map", "share"):
            raise AttributeError(name)
        return getattr(self.base_map, name)

    def apply(self, P: Any) -> Array:
        return mix_with_uniform(self.base_map.apply(P), self.share)

    def interval(self, P: Any) -> tuple[Array, Array] | None:
        interval = self.base_map.interval(P)
        if interval is None:
            return None
        low, high = ((1 - self.share) * end + self.share / end.shape[1] for end in interval)
        return low, high

    def mixture_stages(self, k: int) -> tuple[tuple[SoftmaxTerm, ...], ...] | None:
        """The stages of the base map, with the uniform distribution added to the last one."""
        stages = self.base_map.mixture_stages(k)
        if stages is None:
            return None
        last = tuple(term._replace(weight=(1 - self.share) * term.weight) for term in stages[-1])
        return (*stages[:-1], (*last, SoftmaxTerm(self.share, np.zeros(k), np.zeros(k))))

    def mixture_terms(self, k: int) -> tuple[SoftmaxTerm, ...] | None:
        """The map as one mixture, if the base map has a single stage."""
        stages = self.mixture_stages(k)
        return stages[0] if stages is not None and len(stages) == 1 else None

    def named_parameters(self) -> dict[str, Any]:
        """Those of the base map, and the share of the uniform distribution."""
        return {**self.base_map.named_parameters(), SHARE_KEY: self.share}

    def describe(self) -> str:
        """Description of the base map; of the identity, the share."""
        if isinstance(self.base_map, IdentityMap):
            return f"mixed with {self.share:.2g} of the uniform distribution"
        return self.base_map.describe()

    def to_dict(self) -> dict[str, Any]:
        return {**self.base_map.to_dict(), SHARE_KEY: self.share}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int = 2) -> Any:  # noqa: ARG003 - any number of classes
        """Raise TO505: a saved mixed map is read together with its base map."""
        raise InputError("TO505", "A mixed map is saved as its base map.", ", ".join(parameters), "Load the file.")


def read_map(map_type: type[CalibrationMap], parameters: Mapping[str, Any], k: int) -> CalibrationMap:
    """Read a map for K classes from saved parameters, mixed with the uniform distribution if they have a share."""
    if SHARE_KEY not in parameters:
        return map_type.from_dict(parameters, k)
    base_parameters = {name: value for name, value in parameters.items() if name != SHARE_KEY}
    return MixedMap(map_type.from_dict(base_parameters, k), read_value(SHARE_KEY, parameters[SHARE_KEY], _Share))
