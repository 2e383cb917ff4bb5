"""Probabilities of an event at each point of a recalibration path: predicted, best fit and boldness recalibrations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, logit

from trueodds.binning.sorted_scores import group_starts
from trueodds.calibrators._glm.log_probabilities import floored_logs, log_ratio, resolve_min_prob, softmax
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.diagrams.llo_likelihood import LloLikelihood, select_weighted_rows
from trueodds.diagrams.table_columns import Columns, stack_tables
from trueodds.hypotests._glm.mcllo_likelihood import SUPREMUM_TOLERANCE
from trueodds.lenses.view import View

_MIN_OPACITY, _MAX_OPACITY = 0.5, 0.95  # opacity of a line with share 0 and with the largest share
_MIN_LINE_WIDTH, _MAX_LINE_WIDTH = 0.7, 1.6  # widths in points of the same lines


@dataclass(frozen=True, eq=False)
class RecalibrationPath:
    """Probabilities of one event at each path point, with its outcomes.

    Attributes
    ----------
    view, title : str
        Name of the view, and its name in the picture.
    probabilities : ndarray (path_points, n)
        Probabilities of the n rows or cells of a tally at each path point. The first are as predicted, the others are
        computed from log odds with a lower bound of the probabilities.
    y : ndarray (n,)
        Outcomes, or shares of events.
    w : ndarray (n,)
        Weights.
    n : ndarray (n,)
        Number of rows in each cell.
    names : tuple of str (path_points,)
        ``predicted``, ``best_fit`` or ``fit``, and the posteriors of boldness recalibrations as text.
    posterior : ndarray (path_points,)
        Posterior probability of calibration at each path point.
    delta, gamma : float
        Shift and slope of the best fit; NaN for the baseline class.
    has_finite_fit : bool
        Whether a finite fit maximizes the likelihood.
    baseline : str
        Name of the baseline class of a joint fit, whose posteriors are joint over all classes; otherwise empty.
    """

    view: str
    title: str
    probabilities: Array
    y: Array
    w: Array
    n: Array
    names: tuple[str, ...]
    posterior: Array
    delta: float
    gamma: float
    has_finite_fit: bool = True
    baseline: str = ""

    @property
    def mean_change(self) -> float:
        """The mean absolute change from predicted probability to best fit."""
        return float(self.w @ np.abs(self.probabilities[1] - self.probabilities[0]) / self.w.sum())

    @property
    def std(self) -> Array:
        """The standard deviation at each path point, with denominator n − 1."""
        n = self.w.sum()
        deviation = self.probabilities - (self.probabilities @ self.w / n)[:, None]
        return np.asarray(np.sqrt(deviation**2 @ self.w / (n - 1))) if n > 1 else np.zeros(len(self.probabilities))

    def line_table(self, max_lines: int, bold_levels: Sequence[str]) -> tuple[Columns, bool]:
        """The table of at most `max_lines` lines per outcome, and whether a line represents several predictions.

        `bold_levels` names the boldness path points of all panels, which follow the first two.
        """
        path_positions = np.array([0, 1, *(2 + bold_levels.index(name) for name in self.names[2:])])
        outcomes = [outcome for outcome in (True, False) if (self.w * self._outcome_share(outcome) > 0).any()]
        lines_by_outcome = [self._group_lines(outcome, max_lines) for outcome in outcomes]
        max_weight = max(float(lines.weight.max()) for lines in lines_by_outcome)
        tables = [self._line_columns(lines, max_weight, path_positions) for lines in lines_by_outcome]
        return stack_tables(tables), any(lines.is_merged for lines in lines_by_outcome)

    def _outcome_share(self, outcome: bool) -> Array:
        """The share of each row or cell that has this outcome, (n,): y for the event, 1 − y otherwise."""
        return self.y if outcome else 1 - self.y

    def _group_lines(self, outcome: bool, max_lines: int) -> OutcomeLines:
        """Group the predictions with this outcome into at most `max_lines` lines of neighboring predictions."""
        share = self._outcome_share(outcome)
        has_weight = self.w * share > 0
        w = (self.w * share)[has_weight]
        scores, score_index = np.unique(self.probabilities[0, has_weight], return_inverse=True)
        first = group_starts(np.bincount(score_index, w), max_lines)  # index of the first score of each line
        line = (np.searchsorted(first, np.arange(len(scores)), side="right") - 1)[score_index]
        line_weight = np.bincount(line, w)
        sums = [np.bincount(line, w * probabilities) for probabilities in self.probabilities[:, has_weight]]
        return OutcomeLines(
            outcome,
            np.bincount(line, (self.n * share)[has_weight]),
            line_weight,
            np.stack(sums, axis=1) / line_weight[:, None],
            is_merged=len(first) < len(scores),
        )

    def _line_columns(self, lines: OutcomeLines, max_weight: float, path_positions: Array) -> Columns:
        """The table rows of the lines of one outcome; `max_weight` is the weight of the most opaque and widest line."""
        n_lines, n_points = lines.means.shape
        relative_width = np.sqrt(lines.weight / max_weight)  # so that rare outcomes are visible
        return {
            "view": np.full(n_lines * n_points, self.view, dtype=object),
            "line": np.repeat(np.arange(n_lines), n_points),
            "n": np.repeat(lines.n, n_points),
            "weight": np.repeat(lines.weight, n_points),
            "outcome": np.full(n_lines * n_points, lines.outcome),
            "path_point": np.tile(np.array(self.names, dtype=object), n_lines),
            "place": np.tile(path_positions, n_lines),
            "posterior": np.tile(self.posterior, n_lines),
            "probability": lines.means.ravel(),
            "share": np.repeat(lines.weight / self.w.sum(), n_points),
            "opacity": np.repeat(_MIN_OPACITY + (_MAX_OPACITY - _MIN_OPACITY) * relative_width, n_points),
            "width": np.repeat(_MIN_LINE_WIDTH + (_MAX_LINE_WIDTH - _MIN_LINE_WIDTH) * relative_width, n_points),
        }


class OutcomeLines(NamedTuple):
    """Lines of the predictions with one outcome."""

    outcome: bool  # whether the event occurred
    n: Array  # (lines,) number of rows
    weight: Array  # (lines,) sum of the weights
    means: Array  # (lines, path_points) mean probability at each path point
    is_merged: bool  # whether some line represents several distinct predictions


def binary_path(
    view: View, posteriors: Sequence[float], prior: float, min_prob: float
) -> tuple[RecalibrationPath, Callable[[list[Note]], RecalibrationPath]]:
    """Path of a binary view up to the best fit, and a function that returns it with all boldness recalibrations.

    The function adds its notes to the list it is passed.
    """
    P, Y, w = select_weighted_rows(view)
    likelihood = LloLikelihood.from_view(view, min_prob, prior)
    min_prob = resolve_min_prob(view, min_prob)
    spec = LloSpec(min_prob)
    calibration_map = spec.fit(P, Y, w)
    x, title = log_ratio(P, min_prob), view.name.removeprefix("class:")

    def path_point(tau: float, gamma: float) -> tuple[Array, float]:
        """Probabilities recalibrated by this shift and slope, and their posterior probability of calibration."""
        # x has the lower bound of the fit; without it, exact zeros would stay at zero.
        drop = likelihood.log_likelihood_drop(np.array([tau, gamma]))
        return expit(tau + gamma * x), float(likelihood.posterior(drop))

    _, posterior_predicted = path_point(0.0, 1.0)
    fitted_probabilities, posterior_of_fit = path_point(calibration_map.tau, calibration_map.gamma)
    path_to_fit = RecalibrationPath(
        view=view.name,
        title=title,
        probabilities=np.stack([view.P[view.w > 0, 1], fitted_probabilities]),
        y=Y[:, 1],
        w=w,
        n=view.n[view.w > 0],
        names=("predicted", "best_fit" if calibration_map.converged else "fit"),
        posterior=np.array([posterior_predicted, posterior_of_fit]),
        delta=calibration_map.delta,
        gamma=calibration_map.gamma,
        has_finite_fit=calibration_map.converged,
    )

    def add_boldest(notes: list[Note]) -> RecalibrationPath:
        """Append the boldest recalibration at each posterior probability to the path, and its notes to `notes`."""
        notes += spec.notes(calibration_map, P, Y, w)
        if posteriors and not likelihood.has_finite_maximum:
            text = (
                f"{title}: no finite shift and slope maximize the likelihood, because the scores separate the outcomes "
                "or are all equal. Boldness recalibrations are omitted."
            )
            notes.append(Note("TN251", text))
            return path_to_fit
        names = list(path_to_fit.names)
        probabilities, posterior = list(path_to_fit.probabilities), path_to_fit.posterior.tolist()
        for level in posteriors:
            try:
                boldest = likelihood.boldest_map(level, min_prob)
            except InputError:  # the settings were checked, so there are too few rows
                text = (
                    f"With {w.sum():,.0f} rows the posterior probability of calibration cannot reach {level:g}: its "
                    "path point is omitted."
                )
                notes.append(Note("TN250", text))
                continue
            boldest_probabilities, boldest_posterior = path_point(boldest.tau, boldest.gamma)
            names.append(f"{level:g}")
            probabilities.append(boldest_probabilities)
            posterior.append(boldest_posterior)
        return replace(
            path_to_fit, probabilities=np.stack(probabilities), names=tuple(names), posterior=np.array(posterior)
        )

    return path_to_fit, add_boldest


def class_paths(
    view: View, names: Sequence[str], baseline: int | None, prior: float, min_prob: float, notes: list[Note]
) -> list[RecalibrationPath]:
    """Paths from the predicted probabilities to the best multicategory fit against the baseline, one for each class.

    Adds the notes of the fit to `notes`. The posteriors, by BIC with 2(k − 1) parameters, are joint over the k classes.
    """
    P, Y, w = select_weighted_rows(view)
    min_prob = resolve_min_prob(view, min_prob)
    spec = MclloSpec(baseline=baseline, min_prob=min_prob)
    calibration_map = spec.fit(P, Y, w)
    assert isinstance(calibration_map, MclloMap)
    notes += spec.notes(calibration_map, P, Y, w)
    k, c = P.shape[1], calibration_map.baseline
    tau, gamma = np.insert(calibration_map.tau, c, 0.0), np.insert(calibration_map.gamma, c, 1.0)
    log_p = floored_logs(P, min_prob)
    fitted_logits = (log_p - log_p[:, [c]]) * gamma + tau
    loglik_predicted, loglik_recalibrated = (
        float(w @ (Y * log_softmax(logits, axis=1)).sum(axis=1)) for logits in (log_p, fitted_logits)
    )
    # A fit that predicts every outcome with certainty, up to the lower bound of the probabilities, is not finite.
    has_finite_fit = calibration_map.converged and -loglik_recalibrated > SUPREMUM_TOLERANCE * float(w.sum())
    drops = np.array([max(loglik_recalibrated - loglik_predicted, 0.0), 0.0])  # of the log-likelihood from the best fit
    posterior = expit((k - 1) * np.log(w.sum()) + logit(prior) - drops)
    delta = np.insert(np.exp(np.minimum(calibration_map.tau, 700)), c, np.nan)
    slope = np.insert(calibration_map.gamma, c, np.nan)
    predicted, recalibrated = view.P[view.w > 0], softmax(fitted_logits)
    return [
        RecalibrationPath(
            view=f"class:{names[j]}",
            title=names[j],
            probabilities=np.stack([predicted[:, j], recalibrated[:, j]]),
            y=Y[:, j],
            w=w,
            n=view.n[view.w > 0],
            names=("predicted", "best_fit" if has_finite_fit else "fit"),
            posterior=posterior,
            delta=float(delta[j]),
            gamma=float(slope[j]),
            has_finite_fit=has_finite_fit,
            baseline=names[c],
        )
        for j in range(k)
    ]
