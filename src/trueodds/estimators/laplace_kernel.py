"""Laplace kernel calibration error of one score, and maximum mean calibration error (MMCE), a special case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import Note
from trueodds.core.settings import OneOf, Positive
from trueodds.core.typing import Array
from trueodds.estimators.base import CellStatistic
from trueodds.estimators.distinct_scores import CELL_EXEMPTION, DistinctScoreError, ScoreStatistic
from trueodds.estimators.skce import RowPairs, SquaredKernelError
from trueodds.kernels.pairwise import sum_exponential_kernel
from trueodds.lenses.view import View

FORMS = ("biased", "unbiased", "weighted")


@dataclass(frozen=True)
class LaplaceError(DistinctScoreError):
    r"""Laplace kernel calibration error: root of the kernel-weighted mean product of residuals.

    Two rows with similar scores and residuals of the same sign increase the value. For a calibrated model such pairs
    cancel. The value is the largest mean residual that a smooth function of the score can detect.

    Parameters
    ----------
    bandwidth : float, default=1.0
        θ, the distance of scores over which the kernel decays by a factor of e.

    See Also
    --------
    mmce : The same kernel with bandwidth 0.4 (MMCE).

    Notes
    -----
    .. math:: \Big(\tfrac1{w^2} \sum_{ij} w_i w_j (y_i - p_i)(y_j - p_j)\, e^{-|p_i - p_j| / \theta}\Big)^{1/2}

    The sum includes the pairs of each row with itself. The division by θ of some programs is omitted. Shapes: a binary
    view (n,).

    Units: a mean residual, in [0, 1]; 0 is best. The value is at most the ECE over distinct scores.

    Bias: upward. A calibrated model scores about sqrt(mean p(1-p) / n), which `noise_floor` reports.

    Cost: O(n log n) time, O(n) memory, exact. Draws distinguish 4,096 scores. Tallies merge at the resolution of their
    cells.

    References
    ----------
    .. [1] Błasiok, Gopalan, Hu & Nakkiran (2023).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 0], [0.9, 0.9], "laplace_kce", interval=None).value, 4)  # one score, mean residual −.4
    0.4
    """

    name: ClassVar[str] = "laplace_kce"
    exemptions: ClassVar[dict[str, str]] = CELL_EXEMPTION
    bandwidth: Positive = 1.0

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        decay = _kernel_decay(s, self.bandwidth)
        return lambda _w, wp, wy: _kernel_norm(wy - wp, decay)

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"bandwidth": float(self.bandwidth)}


@dataclass(frozen=True)
class MeanEmbeddingError(LaplaceError):
    r"""Maximum mean calibration error (MMCE): Laplace kernel error with bandwidth 0.4, in three forms.

    MMCE is known as a training loss. The papers apply it to the confidence.

    Parameters
    ----------
    bandwidth : float, default=0.4
        θ. Other programs use 0.2, or write 0.4 as twice 0.2.
    form : {"biased", "unbiased", "weighted"}, default="biased"
        Form of the estimate, see Notes.

    Notes
    -----
    "biased" is the norm of `laplace_kce` with θ = 0.4.

    "unbiased" is its square without the pairs of a row with itself, divided by (Σw)² − Σw² (weights are importance
    weights). Its mean is the true square, so it may be negative and is reported with its sign. It is half of `skce`
    with the kernel "tv-exponential".

    "weighted" compares the rows with the event and those without as if both were equally frequent:

    .. math:: \Big\lVert \sum_{y_i = 1} \tfrac{w_i}{w_+} (1 - p_i)\, \varphi(p_i)
        - \sum_{y_i = 0} \tfrac{w_i}{w_-}\, p_i\, \varphi(p_i) \Big\rVert, \quad
        \varphi(p) \cdot \varphi(q) = e^{-|p - q| / \theta}

    **The weighted form is not 0 for a calibrated model**, unless the event rate is one half. It is a training loss.
    Compare it with the noise floor, which is the score of a calibrated model with these predictions, and never with 0.
    It has no interval by default.

    Shapes: a binary view (n,). Units: a mean residual, in [0, 1] ("unbiased": its square, in [-1, 1]; "weighted": at
    most 2); 0 is best.

    Bias: "biased" is biased upward by about sqrt(mean p(1-p) / n) at calibration. "unbiased" is unbiased.

    Cost: O(n log n) time. Draws of "unbiased" use every row. Tallies merge at the resolution of their cells, except for
    "unbiased".

    References
    ----------
    .. [1] Kumar, Sarawagi & Jain (2018).

    Examples
    --------
    >>> import trueodds as to
    >>> errors = [to.measure([1, 0], [0.9, 0.9], "mmce", form=form, interval=None) for form in ("biased", "unbiased")]
    >>> [round(error.value, 4) for error in errors]
    [0.4, -0.09]
    """

    name: ClassVar[str] = "mmce"
    lower_bound: ClassVar[float] = -math.inf  # `unbiased` is below 0 by chance
    upper_bound: ClassVar[float] = 2.0
    bandwidth: Positive = 0.4
    form: Annotated[str, OneOf(tuple(FORMS))] = "biased"

    @property
    def interval(self) -> str | None:  # type: ignore[override]
        """Type of interval: the biased form is a norm, resamples of the unbiased form scatter around a plug-in value.

        The weighted form has none, because the distribution of its resamples is not normal if the event rate is near
        one half.
        """
        return {"biased": "residual-norm", "unbiased": "debiased", "weighted": None}[self.form]

    @property
    def is_norm(self) -> bool:  # type: ignore[override]
        """Whether the error is a norm of the residuals, which the weighted form is not."""
        return self.form == "biased"

    @property
    def is_in_probability_units(self) -> bool:
        """Whether the form is a norm: the other forms are squared probabilities."""
        return self.is_norm

    @property
    def needs_rows(self) -> bool:  # type: ignore[override]
        """Whether rows are needed, because cells do not identify the pairs of a row with itself."""
        return self.form == "unbiased"

    @property
    def _twofold_skce(self) -> SquaredKernelError:
        """The equivalent SKCE of the vectors (p, 1 − p), which is twice as large."""
        return SquaredKernelError(form="unbiased", kernel="tv-exponential", bandwidth=float(self.bandwidth))

    def _pairs(self, view: View) -> RowPairs:
        """Pairs of rows for the unbiased form: those of the SKCE, with scalar instead of vector residuals."""
        pairs = self._twofold_skce.cell_statistic(view)
        pairs.residual_factor = 1.0
        return pairs

    def evaluate_scores(self, s: Array, share: Array, view: View) -> ScoreStatistic:
        """Norm of the residuals, or for the weighted form of the difference between rows with and without the event."""
        if self.form != "weighted":
            return super().evaluate_scores(s, share, view)
        decay = _kernel_decay(s, self.bandwidth)

        def statistic(w: Array, _wp: Array, wy: Array) -> Array:
            event_shares, non_event_shares = _divide_by_sum(wy), _divide_by_sum(w - wy)
            return _kernel_norm(event_shares * (1 - s) - non_event_shares * s, decay)

        return statistic

    def score_statistic(self, view: View) -> CellStatistic:
        return self._pairs(view) if self.form == "unbiased" and not view.joint else super().score_statistic(view)

    def plug_in_value(self, view: View) -> float:
        """Biased value on which resamples of the unbiased form are centered."""
        return self._pairs(view).biased() if self.form == "unbiased" else self.value(view)

    def expected_if_calibrated(self, view: View) -> float | None:
        """Expected value of a calibrated model: 0 for the unbiased form."""
        return 0.0 if self.form == "unbiased" else None

    def resample_units(
        self, views: Sequence[View], resamples: int, rng: np.random.Generator
    ) -> tuple[Array, str] | None:
        """Resamples of many rows for the unbiased form, one draw at a time."""
        if self.form != "unbiased":
            return None
        resampled = self._twofold_skce.resample_units(views, resamples, rng)
        if resampled is None:
            return None
        twofold_values, unit = resampled
        return twofold_values / 2, unit

    def settings_used(self, view: View) -> dict[str, Any]:
        return {**super().settings_used(view), "form": self.form}

    def notes(self, view: View) -> list[Note]:
        if self.form == "unbiased":
            return self._twofold_skce.notes(view)
        if self.form == "biased":
            return []
        note_list = [
            Note(
                "TN121",
                "The weighted MMCE of a calibrated model is not 0 unless the event rate is one half. Compare it with"
                " the noise floor.",
            )
        ]
        event_weight = float((view.w * view.y).sum())
        if min(event_weight, view.total - event_weight) <= 0:
            subject = "All rows have the event" if event_weight > 0 else "No row has the event"
            note_list.append(Note("TN122", f"{subject}, so the weighted form has only one of its two terms."))
        return note_list


def _kernel_decay(s: Array, bandwidth: float) -> Array:
    """Kernel value (m,) between each of the sorted scores s (m,) and the previous one; 0 for the first."""
    with np.errstate(over="ignore"):
        return np.concatenate(([0.0], np.exp(-np.diff(s) / bandwidth)))


def _kernel_norm(masses: Array, decay: Array) -> Array:
    """Kernel norm (…,) of point masses (…, m) at sorted scores, with kernel values `decay` (m,) between neighbors."""
    rows = masses.reshape(-1, len(decay))
    square = sum_exponential_kernel(rows, decay) + np.square(rows).sum(axis=1)
    return np.sqrt(np.maximum(square, 0.0)).reshape(masses.shape[:-1])  # below 0 only by rounding


def _divide_by_sum(mass: Array) -> Array:
    """Each mass (…, m) as a share of their sum; 0 if the sum is 0."""
    total = mass.sum(axis=-1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 0.0)
