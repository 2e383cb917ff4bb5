"""Between which two probabilities does the truth lie? Venn-Abers prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators import wire
from trueodds.calibrators.base import CalibrationMap, CalibratorSpec
from trueodds.calibrators.curves.bracket import Bracket, bracket
from trueodds.calibrators.curves.by_score import fit_curves_from_counts, in_row_blocks, one_against_the_rest
from trueodds.calibrators.curves.one_vs_rest import as_rows
from trueodds.calibrators.curves.pairs import coupled, fit_pair_curves
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OneOf
from trueodds.core.typing import Array

_REST, _PAIRS = "one-vs-rest", "one-vs-one"


@dataclass(frozen=True, eq=False)
class VennAbersMap(CalibrationMap):
    """A bracket for the second of two classes, for every class against the rest, or for every pair of classes."""

    name: ClassVar[str] = "venn_abers"
    curves: tuple[Bracket, ...]
    multiclass: str = _REST

    def apply(self, P: Array) -> Array:
        """The merged probabilities, made to sum to 1."""
        join = coupled if self.multiclass == _PAIRS and P.shape[1] > 2 else one_against_the_rest
        return in_row_blocks(partial(join, self.curves), P)

    def interval(self, P: Array) -> tuple[Array, Array] | None:
        """p₀ and p₁ of every class against the rest, as they are: they bound what is merged, before it sums to 1."""
        if P.shape[1] == 2:
            low, high = self.curves[0].ends(P[:, 1])
            return np.stack([1 - high, low], axis=1), np.stack([1 - low, high], axis=1)
        if self.multiclass == _PAIRS:
            return None
        ends = [curve.ends(P[:, c]) for c, curve in enumerate(self.curves)]
        return np.stack([low for low, _ in ends], axis=1), np.stack([high for _, high in ends], axis=1)

    def describe(self) -> str:
        """How many steps."""
        steps = sum(curve.size for curve in self.curves)
        text = f"{steps:,} {'step' if steps == 1 else 'steps'}"
        kind = "pairs" if self.multiclass == _PAIRS else "curves"
        return text + (f" in {len(self.curves):,} {kind}" if len(self.curves) > 1 else "")

    def to_dict(self) -> dict[str, Any]:
        """The steps of every bracket, and what the brackets are for."""
        return {"multiclass": self.multiclass, "curves": [curve.to_dict() for curve in self.curves]}

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any], k: int) -> VennAbersMap:
        """As many brackets as K classes need."""
        wire.keys(parameters, ("multiclass", "curves"), "parameters")
        curves, multiclass = parameters["curves"], parameters["multiclass"]
        n_curves = {_REST: k, _PAIRS: k * (k - 1) // 2}.get(multiclass) if isinstance(multiclass, str) else None
        n_curves = 1 if n_curves is not None and k == 2 else n_curves
        if n_curves is None or not isinstance(curves, list) or [type(curve) for curve in curves] != [dict] * n_curves:
            raise InputError(
                "TO505",
                f"A saved venn_abers must be one-vs-rest or one-vs-one, with a curve for each class (pair) of {k}.",
                f"{multiclass!r}"[:40] + f" with {len(curves) if isinstance(curves, list) else type(curves).__name__}",
                "Fit it again and save it with .save(path).",
            )
        return cls(tuple(Bracket.from_dict(curve) for curve in curves), multiclass)


@dataclass(frozen=True)
class VennAbersSpec(CalibratorSpec):
    r"""Isotonic regression on the calibration rows and the row in question, once as if it did not come, once as if.

    .. math:: p_0(s) = f_{+(s, 0)}(s), \quad p_1(s) = f_{+(s, 1)}(s), \quad p = \frac{p_1}{1 - p_0 + p_1}

    where :math:`f_{+(s, y)}` is the isotonic fit with a row (s, y) of weight 1 added. For independent rows one of the
    two, that of the outcome itself, is perfectly calibrated, whatever the scores; how far they are apart says how much
    the rows tell at s. They are merged to p, whose log loss exceeds that of the right one by the least that can be
    promised. It is never exactly 0 or 1, unlike `isotonic`. `interval` of the map gives both ends.
    More than two classes (`multiclass`): `one-vs-rest` has a curve per class on all rows, then each row over its sum;
    the guarantee holds for every class before that division, which is why it is the default and its ends are given as
    they are. `one-vs-one` has a curve per pair of classes on :math:`p_j / (p_i + p_j)` (1/2 if both are 0), coupled by
    :math:`q_i \propto 1/(\sum_j 1/r_{ji} - K + 2)`; its guarantee holds only given that the class is one of the two,
    which nobody knows when predicting, so it has no interval; with many rows it follows distortions that differ
    between the classes more closely. Labels may change. Weights that are not counts are
    scaled to sum to the number of rows. Cost: O(K n log n) to fit, O(K log n) a row; K²/2 curves for pairs.
    Sources: Vovk & Petej (2014); Vovk, Petej & Fedorova (2015); for pairs Price et al. (1995), Manokhin (2017).

    >>> p, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    >>> m = VennAbersSpec().fit(np.stack([1 - p, p], axis=1), np.eye(2)[y], np.ones(4))
    >>> low, high = m.interval(np.array([[0.75, 0.25]]))
    >>> low.round(3).tolist(), high.round(3).tolist(), m.apply(np.array([[0.75, 0.25]])).round(3).tolist()
    ([[0.333, 0.333]], [[0.667, 0.667]], [[0.5, 0.5]])
    """

    name: ClassVar[str] = "venn_abers"
    complexity: ClassVar[int] = 24
    keeps_argmax: ClassVar[bool] = False
    map_type: ClassVar[type[CalibrationMap] | None] = VennAbersMap
    accepts_raw_arrays: ClassVar[bool] = True
    multiclass: Annotated[str, OneOf((_REST, _PAIRS))] = _REST

    def fit(self, P: Array, Y: Array, w: Array) -> VennAbersMap:
        """The brackets of these rows."""
        live = w > 0
        P, Y, w = (P, Y, w) if live.all() else (P[live], Y[live], w[live])
        w = as_rows(w)[1]
        pairs = self.multiclass == _PAIRS and P.shape[1] > 2
        if pairs and Y.ndim == 1:
            Y = np.eye(P.shape[1])[Y]
        curves = fit_pair_curves(P, Y, w, bracket) if pairs else fit_curves_from_counts(P, Y, w, bracket)
        return VennAbersMap(curves, self.multiclass)

    def notes(self, calibration_map: CalibrationMap, P: Array, Y: Array, w: Array) -> list[Note]:
        """Pairs of zeros, and pairs of classes without rows."""
        assert isinstance(calibration_map, VennAbersMap)
        if self.multiclass != _PAIRS or P.shape[1] == 2:
            return []
        fit_notes, even = [], int(((P == 0).sum(axis=1) > 1).sum())
        if even:
            text = (
                f"{even:,} of {len(P):,} rows say 0 for several classes: between two of those they count as undecided."
            )
            fit_notes.append(Note("TN521", text))
        if empty := sum(curve.size == 0 for curve in calibration_map.curves):
            text = f"{empty:,} of {len(calibration_map.curves):,} pairs of classes have no calibration row: each of the two gets 1/2 there."
            fit_notes.append(Note("TN522", text))
        return fit_notes
