"""Proper scores: Brier, log loss, spherical and ranked probability score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators._glm.logits import clipping_notes
from trueodds.estimators.base import ProperScore, require_single_rows
from trueodds.estimators.score_decomposition import (
    DecomposableScore,
    Terms,
    calibration_refinement_terms,
    ferro_fricker_terms,
    murphy_terms,
    within_cells_score,
)
from trueodds.kernels.bins import sums_by_cell
from trueodds.lenses.view import View
from trueodds.tallies import proper_score_sums as scores


@dataclass(frozen=True)
class Brier(DecomposableScore):
    r"""Brier score: mean squared distance between probabilities and outcome.

    Parameters
    ----------
    decomposition : {"murphy", "ferro-fricker", "calibration-refinement"}, optional
        Decomposition of the score on the cells of a partition, reported in `parts`. See Notes.
    partition : Partition, optional
        Cells of the decomposition. The default is 15 uniform bins, and for vectors a median-variance tree of 16 leaves
        (three classes) or cells by predicted class (more classes).
        "distinct" keeps each distinct prediction as its own cell.

    Raises
    ------
    InputError
        TO202 if bins are given without a decomposition. TO203 if the decomposition is unknown. TO205 if Murphy's terms
        are requested for vectors.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i (p_i - y_i)^2 \quad\text{or}\quad \tfrac1w \sum_i w_i \sum_k (p_{ik} - y_{ik})^2

    The first form is for a binary view, with range [0, 1]. The second is for a joint view, with range [0, 2]. A vote
    share of 0.7 counts as a row of weight 0.7 with the event and a row of weight 0.3 without.

    Units: squared probability; 0 is best. Both calibration and sharpness lower the score. Bias: none. Cost: O(nK).
    Tallies merge exactly.

    The decompositions are:

    - "murphy", for one score per row: the score equals reliability − resolution + uncertainty + within_bin_variance −
      within_bin_covariance. Reliability is the miscalibration, resolution the gain over a constant prediction, and
      uncertainty the score of the constant event rate [2]_ [3]_.
    - "ferro-fricker": the same terms, corrected for the bias from noisy event rates. They can be negative. Weights are
      importance weights [4]_.
    - "calibration-refinement", also for vectors: the score equals calibration + refinement + within_bins, and
      refinement is uncertainty − resolution. Calibration is the mean squared distance of the cells [5]_.

    References
    ----------
    .. [1] Brier (1950).
    .. [2] Murphy (1973).
    .. [3] Stephenson, Coelho & Jolliffe (2008).
    .. [4] Ferro & Fricker (2012).
    .. [5] DeGroot & Fienberg (1983).

    Examples
    --------
    >>> import trueodds as to
    >>> to.measure([1, 1], [0.5, 1.0], "brier", interval=None).value
    0.125
    >>> score = to.measure([0, 1], [0.5, 1.0], "brier", decomposition="murphy", bins=1, interval=None)
    >>> {name: round(term, 4) for name, term in score.parts.items() if term}
    {'reliability': 0.0625, 'uncertainty': 0.25, 'within_bin_variance': 0.0625, 'within_bin_covariance': 0.25}
    """

    name: ClassVar[str] = "brier"
    has_expectation_of_cells: ClassVar[bool] = True
    lower_bound: ClassVar[float] = 0.0
    lens: ClassVar[str | None] = "canonical"
    decompositions: ClassVar[tuple[str, ...]] = ("murphy", "ferro-fricker", "calibration-refinement")

    def row_scores(self, view: View) -> Array:
        return scores.brier(view.p, view.outcomes)

    def value(self, view: View) -> float:
        """The weighted mean, from the sums of cells if there are no rows."""
        if view.is_rows or view.joint:
            _require_rows_for_vectors(view)
            return view.mean(self.row_scores(view))
        sums = view.sums("wpp") - 2 * view.sums("wpy") + view.w * view.y  # y² = y for each vote
        return _mean_of_sums(sums, view)

    def expected_if_calibrated(self, view: View) -> float:
        """Expected score of a calibrated model with these predictions."""
        if view.joint:
            _require_rows_for_vectors(view)
            return view.mean(1 - scores.squared_norm(view.p))
        return _mean_of_sums(view.w * view.p - view.sums("wpp"), view)

    def terms(self, view: View, index: Array, binned: View) -> Terms:
        """The terms of the chosen decomposition."""
        if self.decomposition == "calibration-refinement":
            squared_gaps = (binned.p - binned.y) ** 2
            squared = squared_gaps.sum(axis=1) if view.joint else squared_gaps
            return calibration_refinement_terms(scores.brier, binned, squared, _within_cell_part(view, index, binned))
        if view.joint:
            raise InputError(
                "TO205",
                "Murphy's terms need one score per row. For vectors the terms are calibration and refinement.",
                f"decomposition={self.decomposition!r} through {view.name}",
                "Use decomposition='calibration-refinement', or a lens such as confidence.",
            )
        return (murphy_terms if self.decomposition == "murphy" else ferro_fricker_terms)(view, index, binned)


def _mean_of_sums(sums: Array, view: View) -> float:
    return float(sums.sum() / view.total) if view.total > 0 else math.nan


@dataclass(frozen=True)
class LogLoss(DecomposableScore):
    r"""Log loss (cross-entropy): mean negative log-probability of the outcome, in nats.

    Parameters
    ----------
    decomposition : {"calibration-refinement"}, optional, as in `Brier`
    partition : Partition, optional
        Cells of the decomposition. The default is 15 uniform bins, and for vectors a median-variance tree of 16 leaves
        (three classes) or cells by predicted class (more classes).
    min_prob : float, default=0.0
        Smallest probability inside the logarithm. A note reports the number of rows affected.

    Raises
    ------
    InputError
        TO202 if bins are given without a decomposition. TO203 if the decomposition is unknown.

    Notes
    -----
    .. math:: -\tfrac1w \sum_i w_i \sum_k y_{ik} \log p_{ik}

    Units: nats, in [0, ∞]; 0 is best. One observed outcome with predicted probability 0 makes the score infinite. This
    is evidence against the model and is not clipped unless `min_prob` is given. Bias: none.

    Cost: O(n). Rows are required.

    With ``decomposition="calibration-refinement"`` the score equals calibration + refinement + within_bins, and
    refinement is uncertainty − resolution. Calibration is the mean Kullback–Leibler divergence of the event rates of a
    cell from its mean prediction, and refinement the mean entropy of these rates.

    References
    ----------
    .. [1] Good (1952).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([1, 1], [0.5, 1.0], "log_loss", interval=None).value, 4)
    0.3466
    """

    name: ClassVar[str] = "log_loss"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    decompositions: ClassVar[tuple[str, ...]] = ("calibration-refinement",)
    min_prob: Annotated[float, Range(0, 1, closed="left")] = 0.0

    def row_scores(self, view: View) -> Array:
        return scores.log_loss_from_logs(view.log_P, view.Y, self.min_prob) if self.min_prob else _log_scores(view)

    def expected_if_calibrated(self, view: View) -> float:
        """Mean entropy of the predictions: the expected score of a calibrated model."""
        return view.mean(scores.log_loss_from_logs(view.log_P, view.P, self.min_prob))

    def terms(self, view: View, index: Array, binned: View) -> Terms:
        """Calibration, refinement and the variation within cells."""
        require_single_rows(view, "The decomposition of log_loss")
        rows = View(view.P, view.Y, view.w)
        cells = rows.pool(index, len(binned.w))
        logs = _log_mean_probabilities(view.log_P, index, view.w)
        cell_scores = scores.log_loss_from_logs(logs[index], rows.y, self.min_prob)
        divergence = scores.log_loss_from_logs(logs, cells.y, self.min_prob) - scores.log_loss(cells.y, cells.y)
        within_cells = within_cells_score(view, self.row_scores(view), cell_scores)
        return calibration_refinement_terms(scores.log_loss, cells, divergence, within_cells)

    def settings_used(self, view: View) -> dict[str, Any]:
        return super().settings_used(view) | ({"min_prob": self.min_prob} if self.min_prob else {})

    def notes(self, view: View) -> list[Note]:
        counted = view.w > 0
        impossible = int((np.isinf(_log_scores(view)) & counted).sum())
        note_list = []
        if impossible:
            text = (
                f"{impossible:,} observed {'outcome' if impossible == 1 else 'outcomes'} had predicted probability"
                " 0, which is impossible under calibration."
            )
            if not self.min_prob:
                text += " The mean is infinite; measured with ⟨min_prob=1e-6⟩, it is finite."
            note_list.append(Note("TN104", text))
        elif not self.min_prob and (n_zeros := _count_zero_rows(view, counted)):
            text = (
                f"{n_zeros:,} {'row has' if n_zeros == 1 else 'rows have'} a predicted probability of exactly 0, and"
                " none of these outcomes was observed yet: one would make the log loss infinite. The interval does not"
                " account for this; ⟨min_prob=⟩ bounds the loss."
            )
            note_list.append(Note("TN168", text))
        n_clipped = scores.count_rows_below(view.log_P[counted], self.min_prob) if self.min_prob else 0
        return [*note_list, *clipping_notes(self.min_prob, n_clipped), *super().notes(view)]


def _count_zero_rows(view: View, counted: Array) -> int:
    """Count the rows in which some outcome has the predicted probability 0."""
    is_zero = view.p == 0 if view.joint and not view.has_logs else np.isneginf(view.log_P)
    return int((is_zero.reshape(len(view.w), -1).any(axis=1) & counted).sum())


def _log_scores(view: View) -> Array:
    """Log score of each row without `min_prob`, cached because the value, its notes and its interval need it."""
    if view.joint and not view.has_logs:  # the logarithms are not stored
        return view.cached("log scores", lambda: scores.log_loss(view.p, view.outcomes))
    return view.cached("log scores", lambda: scores.log_loss_from_logs(view.log_P, view.Y))


def _log_mean_probabilities(logs: Array, index: Array, w: Array) -> Array:
    """Logarithm of the mean probability of each cell, (cells, m), from log-probabilities (n, m), without underflow."""
    n_cells = int(index.max()) + 1
    logs = np.where((w > 0)[:, None], logs, -np.inf)
    max_logs = np.full((n_cells, logs.shape[1]), -np.inf)
    np.maximum.at(max_logs, index, logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(np.isneginf(logs), 0.0, np.exp(logs - max_logs[index]))
        means = sums_by_cell(index, scaled, n_cells, w) / np.bincount(index, w, n_cells)[:, None]
        return np.log(means) + np.maximum(max_logs, -1e308)


def _within_cell_part(view: View, index: Array, binned: View) -> float:
    """Part of the Brier score from predictions that differ within a cell, for rows or cells of a tally."""
    if view.joint:
        _require_rows_for_vectors(view)
        return within_cells_score(view, scores.brier(view.p, view.y), scores.brier(binned.p[index], view.y))
    terms = murphy_terms(view, index, binned)
    return terms["within_bin_variance"] - terms["within_bin_covariance"]


def _require_rows_for_vectors(view: View) -> None:
    """Raise InputError for cells of several rows, which do not determine the score of vectors."""
    if not view.is_rows:
        raise InputError(
            "TO205",
            "The score of a vector needs single rows. Cells of vectors hold only means.",
            f"{len(view.w):,} cells of {view.n_rows:,} rows",
            "Compute it from rows, or from a tally, which holds the sums of the proper scores.",
        )


@dataclass(frozen=True)
class Spherical(ProperScore):
    r"""Spherical score as a loss: one minus the cosine between the predicted vector and the observed class.

    It is bounded like the Brier score and, like log loss, depends mainly on the probability of the observed class.

    Raises
    ------
    InputError : as in `require_single_rows`

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i \Big(1 - \sum_k y_{ik} \frac{p_{ik}}{\lVert p_i \rVert_2}\Big)

    Shapes: a binary view (n,), read as vectors (1 − p, p), or a joint view (n, m). A vote share of 0.7 counts as a row
    of weight 0.7 and one of 0.3.

    Units: none, in [0, 1]; 0 is best. Uniform probabilities over K classes score 1 − 1/√K. The literature also uses the
    reward, which is 1 minus this loss. The score is strictly proper.

    Bias: none. A calibrated model scores the mean of 1 − ‖p‖, which `noise_floor` reports. Cost: O(nK). Rows are
    required. Values merge as any mean does.

    References
    ----------
    .. [1] Good (1971).
    .. [2] Gneiting & Raftery (2007).

    Examples
    --------
    >>> import trueodds as to
    >>> round(to.measure([0], [[0.5, 0.0, 0.5]], "spherical", interval=None).value, 4)  # 1 − .5/√.5
    0.2929
    """

    name: ClassVar[str] = "spherical"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"

    def row_scores(self, view: View) -> Array:
        require_single_rows(view, self.name)
        return _spherical_loss(view, view.y)

    def expected_if_calibrated(self, view: View) -> float:
        """Expected score of a calibrated model with these predictions."""
        require_single_rows(view, self.name)
        return view.mean(_spherical_loss(view, view.p))


def _spherical_loss(view: View, y: Array) -> Array:
    """Spherical loss (n,) of the predictions of a view at outcomes y, (n,) or (n, m)."""
    p = view.p.astype(np.float64, copy=False)
    if p.ndim == 1:
        q, norm = view.q, np.hypot(view.q, p)
        # 1 − p/‖p‖ without cancellation near p = 1
        return np.asarray(y * q * q / (norm * (norm + p)) + (1 - y) * p * p / (norm * (norm + q)))
    square = p * p
    norm, p_observed = np.sqrt(square.sum(axis=1)), (p * y).sum(axis=1)
    # The same form as for two classes, for a row whose outcome is one class.
    single_class_loss = (square * (1 - y)).sum(axis=1) / (norm * (norm + p_observed))
    return np.asarray(np.where(y.max(axis=1) == 1, single_class_loss, y.sum(axis=1) - p_observed / norm))


@dataclass(frozen=True)
class RankedProbability(ProperScore):
    r"""Ranked probability score (RPS): squared distance between cumulative probabilities and outcome.

    It is for ordered classes (mild, moderate, severe), where a near miss costs less than a far one.

    Parameters
    ----------
    normalize : bool, default=False
        Divide the sum over the K − 1 cuts by their number.

    Raises
    ------
    InputError
        TO203 if `normalize` is not a bool. TO205 if the view holds cells of many rows.

    Notes
    -----
    .. math:: \tfrac1w \sum_i w_i \sum_{k < K} \big(F_{ik} - \mathbf 1\{y_i \le k\}\big)^2,
        \quad F_{ik} = \sum_{j \le k} p_{ij}

    The order of the classes is that of the columns. Another order gives another value, and the reverse order the same
    one. Each cut is a Brier score of two classes, and for K = 2 the value is the Brier score. Shapes: a binary view
    (n,) or a joint view (n, m). A vote share of 0.7 counts as a row of weight 0.7 and one of 0.3.

    Units: squared probability, in [0, K − 1], or in [0, 1] if normalized; 0 is best. The score is strictly proper.

    Bias: none. A calibrated model scores the mean of Σ F(1 − F), which `noise_floor` reports.

    Cost: O(nK). Rows are required. Values merge as any mean does.

    References
    ----------
    .. [1] Epstein (1969).
    .. [2] Murphy (1971), who divides by K − 1.

    Examples
    --------
    >>> import trueodds as to
    >>> [to.measure([0], P, "rps", interval=None).value for P in ([[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]])]
    [1.0, 2.0]
    """

    name: ClassVar[str] = "rps"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    exemptions: ClassVar[dict[str, str]] = {"class order": "how far apart two classes lie is what the score measures"}
    normalize: bool = False

    def row_scores(self, view: View) -> Array:
        return self._row_losses(view, view.y)

    def expected_if_calibrated(self, view: View) -> float:
        """Expected score of a calibrated model with these predictions."""
        return view.mean(self._row_losses(view, view.p))

    def settings_used(self, view: View) -> dict[str, Any]:
        return {"normalize": bool(self.normalize)}

    def _row_losses(self, view: View, y: Array) -> Array:
        """Ranked loss (n,) at outcomes y, (n,) or (n, m), divided by the number of cuts if `normalize` is true."""
        require_single_rows(view, self.name)
        n_cuts = view.p.shape[1] - 1 if view.joint else 1
        return _ranked_loss(view.p, y) / (n_cuts if self.normalize else 1)


def _ranked_loss(p: Array, y: Array) -> Array:
    """Σ (F − O)² + O(1 − O) over the cuts. The second term is nonzero only for votes, which count individually."""
    p, y = p.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    if p.ndim == 1:
        predicted, observed = p[:, None], y[:, None]
    else:
        predicted, observed = np.cumsum(p[:, :-1], axis=1), np.cumsum(y[:, :-1], axis=1)
    return np.asarray(((predicted - observed) ** 2 + observed * (1 - observed)).sum(axis=1))
