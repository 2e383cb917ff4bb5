"""Proper scores: Brier, log loss, spherical and ranked probability score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.core.errors import InputError, Note
from trueodds.core.settings import Range
from trueodds.core.typing import Array
from trueodds.estimators.base import ProperScore, single_rows
from trueodds.estimators.score_decomposition import (
    Decomposed,
    Terms,
    calibration_refinement,
    ferro_fricker,
    inside_cells,
    murphy,
)
from trueodds.lenses.view import View
from trueodds.tallies import score_sums


@dataclass(frozen=True)
class Brier(Decomposed):
    r"""Mean squared distance between probabilities and outcome.

    .. math:: \tfrac1w \sum_i w_i (p_i - y_i)^2 \quad\text{or}\quad \tfrac1w \sum_i w_i \sum_k (p_{ik} - y_{ik})^2

    The first form is for a binary view, in [0, 1]; the second for a joint one, in [0, 2]; 0 is best, and lower
    is better: calibration and sharpness both count. Unbiased. A vote of .7 is a row of weight .7 and one of .3.
    Cost: O(nK). Merges exactly. Source: Brier (1950).

    `decomposition` says how much of it is calibration, in `parts`, on the cells of a partition (`bins`, `partition`,
    …; 15 uniform bins or, for vectors, the median-variance tree; `distinct` keeps each prediction apart):

    - `murphy`, one score per row: reliability − resolution + uncertainty + within_bin_variance −
      within_bin_covariance is the score. Reliability is the miscalibration, resolution what the model knows,
      uncertainty what a constant rate would pay (Murphy 1973; Stephenson, Coelho & Jolliffe 2008).
    - `ferro-fricker`: the same terms without the bias that noisy outcome rates give them; they can be negative, and
      weights are importance weights (Ferro & Fricker 2012).
    - `calibration-refinement`, also for vectors: calibration + refinement + within_bins is the score, and refinement
      is uncertainty − resolution. Calibration is the mean squared distance of the cells (DeGroot & Fienberg 1983).

    Raises TO202 for bins without a decomposition, TO203 for an unknown one, TO205 for Murphy's terms of vectors.

    >>> float(Brier()(View(p=[0.5, 1.0], y=[1, 1])))
    0.125
    >>> from trueodds.binning.partition import Uniform
    >>> terms = Brier(decomposition="murphy", partition=Uniform(1)).parts(View(p=[0.5, 1.0], y=[0, 1]))
    >>> {name: round(term, 4) for name, term in terms.items() if term}
    {'reliability': 0.0625, 'uncertainty': 0.25, 'within_bin_variance': 0.0625, 'within_bin_covariance': 0.25}
    """

    name: ClassVar[str] = "brier"
    lower_bound: ClassVar[float] = 0.0
    lens: ClassVar[str | None] = "canonical"
    decompositions: ClassVar[tuple[str, ...]] = ("murphy", "ferro-fricker", "calibration-refinement")

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return score_sums.brier(view.p, view.y)

    def value(self, view: View) -> float:
        """The weighted mean, from the sums of cells where there are no rows."""
        if view.is_rows or view.joint:
            _rows_only(view)
            return float(view.w @ self.rows(view) / view.total) if view.total > 0 else math.nan
        sums = view.sums("wpp") - 2 * view.sums("wpy") + view.w * view.y  # y² = y for each vote
        return float(sums.sum() / view.total)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        p = view.p.astype(np.float64, copy=False)
        if view.joint:
            _rows_only(view)
            return float(view.w @ (1 - (p * p).sum(axis=1)) / view.total)
        return float((view.w * p - view.sums("wpp")).sum() / view.total)

    def terms(self, view: View, index: Array, binned: View) -> Terms:
        """The terms of the chosen decomposition."""
        if self.decomposition == "calibration-refinement":
            gap = (binned.p - binned.y) ** 2
            squared = gap.sum(axis=1) if view.joint else gap
            return calibration_refinement(score_sums.brier, binned, squared, _inside(view, index, binned))
        if view.joint:
            raise InputError(
                "TO205",
                "Murphy's terms are of one score per row; those of vectors are calibration and refinement.",
                f"decomposition={self.decomposition!r} through {view.name}",
                "Use decomposition='calibration-refinement', or a lens such as confidence.",
            )
        return (murphy if self.decomposition == "murphy" else ferro_fricker)(view, index, binned)


@dataclass(frozen=True)
class LogLoss(Decomposed):
    r"""Mean surprise at the outcome, in nats.

    .. math:: -\tfrac1w \sum_i w_i \sum_k y_{ik} \log p_{ik}

    In [0, ∞]; 0 is best. One outcome that was said to be impossible makes it infinite: that is evidence, and
    is kept; `min_prob` replaces smaller probabilities where a finite number is needed, and the number of rows
    it touched is noted. Unbiased. Cost: O(n). Needs rows. Source: Good (1952).

    `decomposition="calibration-refinement"` says in `parts` how much of it is calibration, on the cells of a partition
    (`bins`, `partition`, …; 15 uniform bins, or for vectors the median-variance tree): calibration + refinement +
    within_bins is the score, and refinement is uncertainty − resolution. Calibration is the mean Kullback–Leibler
    divergence of a cell's outcome rates from its mean prediction, refinement the mean entropy of those rates.

    Raises TO202 for bins without a decomposition, TO203 for an unknown one.

    >>> round(float(LogLoss()(View(p=[0.5, 1.0], y=[1, 1]))), 4)
    0.3466
    """

    name: ClassVar[str] = "log_loss"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    decompositions: ClassVar[tuple[str, ...]] = ("calibration-refinement",)
    min_prob: Annotated[float, Range(0, 1, closed="left")] = 0.0

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return score_sums.log_score(view.log_P, view.Y, self.min_prob) if self.min_prob else _log_scores(view)

    def value(self, view: View) -> float:
        """The weighted mean."""
        loss = self.rows(view)
        return float(view.w[view.w > 0] @ loss[view.w > 0] / view.total)

    def expected(self, view: View) -> float:
        """The mean entropy: what even a calibrated model pays."""
        return float(view.w @ score_sums.log_score(view.log_P, view.P, self.min_prob) / view.total)

    def terms(self, view: View, index: Array, binned: View) -> Terms:
        """Calibration, refinement and what varies inside the cells."""
        single_rows(view, "The decomposition of log_loss")
        rows = View(view.P, view.Y, view.w)
        cells = rows.pool(index, len(binned.w))
        logs = _log_means(view.log_P, index, view.w)
        mean = score_sums.log_score(logs[index], rows.y, self.min_prob)
        surplus = score_sums.log_score(logs, cells.y, self.min_prob) - score_sums.log_loss(cells.y, cells.y)
        return calibration_refinement(score_sums.log_loss, cells, surplus, inside_cells(view, self.rows(view), mean))

    def settings_used(self, view: View) -> dict[str, Any]:
        """The floor and the decomposition, where they were asked for."""
        return super().settings_used(view) | ({"min_prob": self.min_prob} if self.min_prob else {})

    def notes(self, view: View) -> list[Note]:
        """Outcomes that were said to be impossible, and rows the floor touched."""
        counted = view.w > 0
        impossible = int((np.isinf(_log_scores(view)) & counted).sum())
        note_list = (
            [
                Note(
                    "TN104",
                    f"{impossible:,} observed {'outcome' if impossible == 1 else 'outcomes'} had predicted probability 0: evidence against calibration of its own.",
                )
            ]
            if impossible
            else []
        )
        touched = score_sums.below(view.log_P[counted], self.min_prob) if self.min_prob else 0
        if touched:
            note_list.append(Note("TN106", f"The floor {self.min_prob:g} touched {touched:,} rows."))
        return [*note_list, *super().notes(view)]


def _log_scores(view: View) -> Array:
    """The log score of each row without a floor, kept because the value, its notes and its interval need it."""
    return view.once("log scores", lambda: score_sums.log_score(view.log_P, view.Y))


def _log_means(logs: Array, index: Array, w: Array) -> Array:
    """The logarithm of each cell's mean probability, (cells, m), from those of its rows: none underflows on the way."""
    cells = int(index.max()) + 1
    logs = np.where((w > 0)[:, None], logs, -np.inf)
    top = np.full((cells, logs.shape[1]), -np.inf)
    np.maximum.at(top, index, logs)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(np.isneginf(logs), 0.0, np.exp(logs - top[index]))
        sums = [np.bincount(index, w * column, cells) for column in scaled.T]
        return np.log(np.stack(sums, axis=1) / np.bincount(index, w, cells)[:, None]) + np.maximum(top, -1e308)


def _inside(view: View, index: Array, binned: View) -> float:
    """What of Brier's score comes from scores that differ inside a bin; for one score per row also from cells."""
    if view.joint:
        _rows_only(view)
        return inside_cells(view, score_sums.brier(view.p, view.y), score_sums.brier(binned.p[index], view.y))
    terms = murphy(view, index, binned)
    return terms["within_bin_variance"] - terms["within_bin_covariance"]


def _rows_only(view: View) -> None:
    if not view.is_rows:
        raise InputError(
            "TO205",
            "The score of a whole vector needs single rows; cells of vectors hold only their means.",
            f"{len(view.w):,} cells of {view.n_rows:,} rows",
            "Measure it from rows, or from a tally, which carries the sums of the proper scores.",
        )


@dataclass(frozen=True)
class Spherical(ProperScore):
    r"""One minus the spherical reward: the cosine between the prediction and the class that came, as a loss.

    Answers: how good are the probabilities altogether, in a score that is bounded like Brier's but, like log loss,
    looks hardest at the class that came?

    .. math:: \tfrac1w \sum_i w_i \Big(1 - \sum_k y_{ik} \frac{p_{ik}}{\lVert p_i \rVert_2}\Big)

    Shapes: a binary view (n,), read as the vectors (1 − p, p), or a joint one (n, m). Units: none, in [0, 1]; 0 is
    best; said evenly, K classes cost 1 − 1/√K. The literature also has the reward, which is 1 minus this and better
    when higher. Strictly proper. Bias: none. A vote of .7 is a row of weight .7 and one of .3. Cost: O(nK). Needs rows;
    merges as any mean does. A calibrated model pays the mean of 1 − ‖p‖, which `noise_floor` reports.
    Raises TO205 for cells of many rows. Source: Good (1971); Gneiting & Raftery (2007).

    >>> round(float(Spherical()(View(p=[[0.6, 0.0, 0.8]], y=[[1, 0, 0]]))), 4)  # 1 − .6/1
    0.4
    """

    name: ClassVar[str] = "spherical"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"

    def rows(self, view: View) -> Array:
        """The score of each row."""
        single_rows(view, self.name)
        return _spherical_loss(view, view.y)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        single_rows(view, self.name)
        return float(view.w @ _spherical_loss(view, view.p) / view.total)


def _spherical_loss(view: View, y: Array) -> Array:
    p = view.p.astype(np.float64, copy=False)
    if p.ndim == 1:
        q, norm = view.q, np.hypot(view.q, p)
        # 1 − p/‖p‖ without its cancellation near p = 1
        missed: Array = y * q * q / (norm * (norm + p)) + (1 - y) * p * p / (norm * (norm + q))
        return missed
    square = p * p
    norm, p_observed = np.sqrt(square.sum(axis=1)), (p * y).sum(axis=1)
    sharp = (square * (1 - y)).sum(axis=1) / (norm * (norm + p_observed))  # the same, for a row of one class
    total: Array = np.where(y.max(axis=1) == 1, sharp, y.sum(axis=1) - p_observed / norm)
    return total


@dataclass(frozen=True)
class RankedProbability(ProperScore):
    r"""Squared distance of cumulative probabilities from the outcome: the ranked probability score (RPS).

    Answers: for classes with an order (mild, moderate, severe), how good are the probabilities, where a near miss
    costs less than a far one?

    .. math:: \tfrac1w \sum_i w_i \sum_{k < K} \big(F_{ik} - \mathbf 1\{y_i \le k\}\big)^2,
        \quad F_{ik} = \sum_{j \le k} p_{ij}

    The order is that of the columns, so it has a meaning for ordered classes only; another order gives another number,
    the reverse order the same one. Two conventions are in use: the sum (the default here) and, with `normalize`,
    its mean over the K − 1 cuts. Each cut is a Brier score of two classes, and for K = 2 both conventions are Brier's.

    Shapes: a binary view (n,), or a joint one (n, m). Units: squared probability, in [0, K − 1], normalized in [0, 1];
    0 is best. Strictly proper. Bias: none. A vote of .7 is a row of weight .7 and one of .3. Cost: O(nK). Needs rows;
    merges as any mean does. A calibrated model pays the mean of Σ F(1 − F), which `noise_floor` reports.
    Raises TO203 where `normalize` is no yes or no, TO205 for cells of many rows.
    Source: Epstein (1969); Murphy (1971), who divides by K − 1.

    >>> near, far = View([[0.0, 1.0, 0.0]], [[1, 0, 0]]), View([[0.0, 0.0, 1.0]], [[1, 0, 0]])
    >>> float(RankedProbability()(near)), float(RankedProbability()(far)), float(RankedProbability(normalize=True)(far))
    (1.0, 2.0, 1.0)
    """

    name: ClassVar[str] = "rps"
    lower_bound: ClassVar[float] = 0.0
    needs_rows: ClassVar[bool] = True
    lens: ClassVar[str | None] = "canonical"
    exempt: ClassVar[dict[str, str]] = {"class order": "how far apart two classes lie is what the score measures"}
    normalize: bool = False

    def rows(self, view: View) -> Array:
        """The score of each row."""
        return self._scaled(view, view.y)

    def expected(self, view: View) -> float:
        """The mean score if every probability were right: what even a calibrated model pays."""
        return float(view.w @ self._scaled(view, view.p) / view.total)

    def settings_used(self, view: View) -> dict[str, Any]:
        """Which of the two conventions."""
        return {"normalize": bool(self.normalize)}

    def _scaled(self, view: View, y: Array) -> Array:
        single_rows(view, self.name)
        cuts = view.p.shape[1] - 1 if view.joint else 1
        return _ranked_loss(view.p, y) / (cuts if self.normalize else 1)


def _ranked_loss(p: Array, y: Array) -> Array:
    """Σ (F − O)² + O(1 − O) over the cuts: the second term is 0 but for votes, which count one by one."""
    p, y = p.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    if p.ndim == 1:
        predicted, observed = p[:, None], y[:, None]
    else:
        predicted, observed = np.cumsum(p[:, :-1], axis=1), np.cumsum(y[:, :-1], axis=1)
    total: Array = ((predicted - observed) ** 2 + observed * (1 - observed)).sum(axis=1)
    return total
