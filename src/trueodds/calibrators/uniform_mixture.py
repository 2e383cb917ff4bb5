"""Mix predicted probabilities with a small share of the uniform distribution, so that the log loss stays finite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from trueodds.calibrators import saved_parameters
from trueodds.calibrators.base import CalibrationMap, Term
from trueodds.core.errors import InputError
from trueodds.core.typing import Array


def uniform_share(n_fit: int) -> float:
    """The share of the uniform that is mixed in before scoring: 1/(n + 1), as n rows rule out nothing rarer."""
    return 1 / (n_fit + 1)


def mix_with_uniform(Q: Array, share: Any) -> Array:
    """Rows over their sum, as logs need them, with a share of the uniform mixed in: one number, or one per row (n, 1)."""
    return np.asarray((1 - share) * (Q / Q.sum(axis=1, keepdims=True)) + share / Q.shape[1])


def log_with_mixture_floor(P: Array, share: Any) -> Array:
    """The logarithms of the rows over their sum, none below that of the least probability that mixing leaves.

    So rows that nothing was mixed into lose no more than rows that were, and all else is as it was said.

    >>> log_with_mixture_floor(np.array([[0.0, 1.0]]), 0.5).round(4).tolist()
    [[-1.3863, 0.0]]
    """
    return np.asarray(np.log(np.maximum(P / P.sum(axis=1, keepdims=True), share / P.shape[1])))


KEY = "mixing"  # among the saved parameters of the map that is mixed


@dataclass(frozen=True, eq=False)
class MixedMap(CalibrationMap):
    """Another map's rows, mixed with a share of the uniform: no log loss is infinite. Its parameters are that map's.

    >>> from trueodds.calibrators.temperature import TemperatureMap
    >>> mixed = MixedMap(TemperatureMap(0.5), 0.01)
    >>> mixed.apply(np.array([[0.0, 1.0]])).tolist(), mixed.beta
    ([[0.005, 0.995]], 0.5)
    """

    base_map: CalibrationMap
    share: float  # of the uniform

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the map that is mixed."""
        return self.base_map.name

    @property
    def takes_logs(self) -> bool:  # type: ignore[override]
        """As the map that is mixed."""
        return self.base_map.takes_logs

    @property
    def logits(self) -> bool:  # type: ignore[override]
        """As the map that is mixed."""
        return self.base_map.logits

    @property
    def n_passes(self) -> int | None:  # type: ignore[override]
        """As the map that is mixed."""
        return self.base_map.n_passes

    @property
    def converged(self) -> bool:  # type: ignore[override]
        """As the map that is mixed."""
        return self.base_map.converged

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("base_map", "share"):
            raise AttributeError(name)
        return getattr(self.base_map, name)

    def apply(self, P: Any) -> Array:
        """The rows of the map, less the share, and the share in equal parts."""
        return mix_with_uniform(self.base_map.apply(P), self.share)

    def interval(self, P: Any) -> tuple[Array, Array] | None:
        """The ends as the map has them, mixed likewise."""
        ends = self.base_map.interval(P)
        if ends is None:
            return None
        low, high = ((1 - self.share) * end + self.share / end.shape[1] for end in ends)
        return low, high

    def stages(self, k: int) -> tuple[tuple[Term, ...], ...] | None:
        """Those of the map; the uniform is one more part of the last."""
        stages = self.base_map.stages(k)
        if stages is None:
            return None
        last = tuple(term._replace(weight=(1 - self.share) * term.weight) for term in stages[-1])
        return (*stages[:-1], (*last, Term(self.share, np.zeros((k, k)), np.zeros(k))))

    def terms(self, k: int) -> tuple[Term, ...] | None:
        """The map as one mixture, where it is one."""
        stages = self.stages(k)
        return stages[0] if stages is not None and len(stages) == 1 else None

    def describe(self) -> str:
        """As the map that is mixed."""
        return self.base_map.describe()

    def table(self, classes: tuple[Any, ...]) -> list[str]:
        """As the map that is mixed."""
        return self.base_map.table(classes)

    def to_dict(self) -> dict[str, Any]:
        """The parameters of the map, and the share."""
        return {**self.base_map.to_dict(), KEY: self.share}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> CalibrationMap:  # noqa: ARG003 - any number of classes
        """The same map: `read_map` knows whose parameters they are, and which share is mixed in."""
        raise InputError(
            "TO505", "A mixed map is saved as the map that is mixed.", ", ".join(parameters), "Load the file."
        )


def read_map(kind: type[CalibrationMap], parameters: Mapping[str, Any], k: int) -> CalibrationMap:
    """The map of that kind behind saved parameters, mixed where they say so."""
    if KEY not in parameters:
        return kind.from_dict(parameters, k)
    own = {name: value for name, value in parameters.items() if name != KEY}
    return MixedMap(kind.from_dict(own, k), saved_parameters.read_number(parameters, KEY, 0, 1))
