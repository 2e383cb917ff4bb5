"""Compute where best-fit and boldness recalibration move each predicted probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, log_softmax, logit

from trueodds.binning.sorted_scores import group_starts
from trueodds.calibrators._glm.baseline_logits import baseline_index
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    floored_logs,
    log_ratio,
    resolve_min_prob,
    softmax,
)
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.ordering import decreasing_order
from trueodds.core.settings import OR_SINGLE_VALUE, Probability
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.baseline_recipe import BaselineRecipe
from trueodds.diagrams.llo_likelihood import LloLikelihood, format_posterior, select_weighted_rows
from trueodds.diagrams.recalibration_lines.plot import LinePlot
from trueodds.diagrams.recipe import lens_name
from trueodds.diagrams.table_columns import rows_to_columns, stack_tables
from trueodds.hypotests._glm.mcllo_likelihood import SUPREMUM_TOLERANCE
from trueodds.lenses.view import View


@dataclass(frozen=True)
class RecalibrationLines(BaselineRecipe):
    r"""Lines from each predicted probability through its recalibrated values, colored by outcome.

    The diagram shows how recalibration would change the predictions, and whether it is needed. The path points along
    the horizontal axis are the predicted probabilities, the best-fit shift and slope of the log odds (``llo``), and the
    boldest recalibrations that keep the posterior probabilities of calibration `posteriors` (``boldness``). Each path
    point is labeled with the posterior probability of calibration of its forecasts, by BIC as in ``llo_posterior``.

    Parameters
    ----------
    classes : sequence of str, optional
        The names of the classes of a joint view. By default, the names in the data if they are known.
    baseline : int or str, optional
        The baseline class of the joint fit, by index or as ``class:cat``. The default is the last class.
    posteriors : sequence of float, default=(0.95, 0.9, 0.8)
        The posterior probabilities of the path points beyond the best fit.
    prior : float, default=0.5
        The prior probability of calibration.
    min_prob : float, default=1e-12
        Lower bound of the probabilities inside the logarithm of the fits.

    Raises
    ------
    InputError
        TO203 for an invalid setting.

    Notes
    -----
    A path point that too few rows can reach is left out (note TN250). If no finite fit maximizes the likelihood, there
    are no boldness path points (note TN251), and the second one is called ``fit`` instead of ``best_fit``. Path points
    after the first, and all posteriors, are computed from log odds with the lower bound `min_prob`. The lens
    ``canonical`` of more than two classes gives two path points, predicted and ``mcllo``, and one panel per class.

    More than 24 distinct predictions of an outcome (12 in a grid) are combined into that many groups of neighboring
    predictions of equal weight, drawn at the mean of their rows. The smaller the share of rows of a line, the fainter
    and thinner it is (note TN249).

    Views: binary, one panel each, or joint, one panel per class; the largest change comes first. Only the first 12
    panels are drawn; the others have no boldness path points (note TN245). Weights count as numbers of rows. Units:
    probability.

    Columns of ``table``: ``view line n weight outcome path_point place posterior probability share opacity width``,
    with a row for each line at each path point. ``path_point`` is ``predicted``, ``best_fit`` or ``fit``, or the
    posterior as text. ``outcome`` is whether the event occurred, ``place`` numbers the path points of all panels from
    0, ``share`` is the share of the weight of the view, and ``width`` is in points. ``panels`` contains delta, gamma
    and the standard deviations of the predictions.

    Cost: O(n log n) and about 15 passes over 1,024 groups of scores for each posterior: 1e6 rows take about 1.9 s.

    References
    ----------
    .. [1] Guthrie & Franck (2024), R package BRcal (lineplot).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 0, 1, 0, 0, 1] * 10, [0.7, 0.3] * 40
    >>> table = to.draw(y, p, "recalibration_lines", lens="positive", posteriors=[0.95]).table
    >>> first = (table["line"] == 0) & table["outcome"]
    >>> table["path_point"][first].tolist(), table["probability"][first].round(3).tolist()
    (['predicted', 'best_fit', '0.95'], [0.3, 0.25, 0.174])
    """

    name: ClassVar[str] = "recalibration_lines"
    accepts_joint_views: ClassVar[bool] = True
    posteriors: Annotated[Sequence[Probability], OR_SINGLE_VALUE] = (0.95, 0.9, 0.8)
    prior: Probability = 0.5
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "posteriors", tuple(sorted(set(self.posteriors), reverse=True)))

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The lines of every view, the largest change first."""
        notes: list[Note] = []
        candidates = [path for view in views for path in self._recalibration_paths(view, notes)]
        candidates = [candidates[i] for i in decreasing_order(path.mean_change for path, _ in candidates)]
        paths = [add_boldest(notes) for _, add_boldest in candidates[: layout.MAX_PANELS]] + [
            path for path, _ in candidates[layout.MAX_PANELS :]
        ]
        reached_levels = {name for path in paths for name in path.names[2:]}
        bold_levels = [name for name in (f"{level:g}" for level in self.posteriors) if name in reached_levels]
        max_lines = MAX_LINES if len(paths) == 1 else MAX_LINES_IN_GRID
        tables, merged = zip(*(path.line_table(max_lines, bold_levels) for path in paths), strict=True)
        if any(merged):
            text = (
                f"Lines represent groups of neighboring predictions, at most {max_lines} for each outcome. Lines of "
                "fewer rows are fainter and thinner."
            )
            notes.append(Note("TN249", text))
        if len(paths) > layout.MAX_PANELS:
            text = (
                f"Only the {layout.MAX_PANELS} views with the largest change of {len(paths)} are drawn. For the others "
                "the table contains only the predicted probabilities and the fit."
            )
            notes.append(Note("TN245", text))
        rows = [_panel_row(path, len(paths)) for path in paths]
        settings = {"posteriors": self.posteriors, "prior": self.prior, "min_prob": self.min_prob}
        if any(view.joint for view in views):
            view = next(view for view in views if view.joint)
            baseline = baseline_index(self.baseline_index(view), view.p.shape[1])
            settings = {"baseline": baseline, "prior": self.prior, "min_prob": self.min_prob}
        return LinePlot(
            name=self.name,
            lens=lens_name(views),
            table=stack_tables(tables),
            panels=rows_to_columns(rows),
            settings=settings,
            notes=tuple(dict.fromkeys(notes)),
        )

    def _recalibration_paths(
        self, view: View, notes: list[Note]
    ) -> list[tuple[RecalibrationPath, Callable[[list[Note]], RecalibrationPath]]]:
        """Paths up to the fit, which determine the order of panels, with functions that add the other path points."""
        if view.joint:
            names = self.class_names(view.p.shape[1])
            paths = class_paths(view, names, self.baseline_index(view), self.prior, self.min_prob, notes)
            return [(path, lambda _, path=path: path) for path in paths]  # type: ignore[misc]
        return [binary_path(view, self.posteriors, self.prior, self.min_prob)]


def _panel_row(path: RecalibrationPath, n_panels: int) -> dict[str, Any]:
    """The row of `panels` for one path, of `panels` in all."""
    std, points = path.std, f"{100 * path.mean_change:.1f} points"
    posterior_predicted, posterior_of_fit = (format_posterior(float(p)) for p in path.posterior[:2])
    fit = f" (δ\u00a0=\u00a0{path.delta:.3g}, γ\u00a0=\u00a0{path.gamma:.3g})" if np.isfinite(path.delta) else ""
    aside = (
        f"changed by {points}"
        if path.baseline
        else f"posterior {posterior_predicted.replace('under', '<').replace('over', '>')}"
    )
    if not path.has_finite_fit:
        aside = "no finite fit"
        moves = (
            "The fit that is drawn instead changes it"
            if path.baseline
            else "The fit that is drawn instead, with one pseudo-observation of each outcome, changes a prediction"
        )
        finding = f"{path.title}: no finite shift and slope maximize the likelihood. {moves} by {points} on average."
    elif path.baseline:
        finding = (
            f"All classes are jointly calibrated with posterior probability {posterior_predicted}, and "
            f"{posterior_of_fit} after the best fit, which changes {path.title}{fit} by {points} on average."
        )
    else:
        finding = (
            f"{path.title + ': c' if n_panels > 1 else 'C'}alibrated with posterior probability {posterior_predicted},"
            f" and {posterior_of_fit} after the best fit{fit}, which changes a prediction by {points} on average."
        )
    if len(std) > 2:
        level = f"{100 * path.posterior[-1]:.3g}\u00a0%"
        finding += f" Boldest at {level}: standard deviation {100 * std[-1]:.1f} points, before {100 * std[0]:.1f}."
    return {
        "view": path.view,
        "title": path.title,
        "aside": aside,
        "finding": finding,
        "n": int(path.n.sum()),
        "weight": float(path.w.sum()),
        "path_points": len(path.probabilities),
        "moved": path.mean_change,
        "delta": path.delta,
        "gamma": path.gamma,
        "posterior_predicted": float(path.posterior[0]),
        "posterior_best_fit": float(path.posterior[1]) if path.has_finite_fit else np.nan,
        "std_predicted": float(std[0]),
        "std_best_fit": float(std[1]),
        "std_last": float(std[-1]),
    }


MAX_LINES, MAX_LINES_IN_GRID = 24, 12  # for each outcome, in a single panel and in a grid; more lines would merge
_MIN_OPACITY, _MAX_OPACITY = 0.5, 0.95  # opacity of a line with share 0 and with the largest share
_MIN_LINE_WIDTH, _MAX_LINE_WIDTH = 0.7, 1.6  # their widths in points


@dataclass(frozen=True, eq=False)
class RecalibrationPath:
    """Probabilities of one event at each path point, with its outcomes."""

    view: str
    title: str
    probabilities: (
        Array  # (path_points, n) probabilities; the first as predicted, the others from log odds with `min_prob`
    )
    y: Array  # (n,) shares
    w: Array  # (n,)
    n: Array  # (n,) rows in each cell
    names: tuple[str, ...]  # (path_points,)
    posterior: Array  # (path_points,)
    delta: float  # of the best fit; NaN for the baseline class
    gamma: float
    has_finite_fit: bool = True  # whether a finite fit maximizes the likelihood
    baseline: str = ""  # the baseline of a joint fit, whose posteriors are joint over all classes

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

    def line_table(self, max_lines: int, bold_levels: Sequence[str]) -> tuple[dict[str, Array], bool]:
        """The table of at most `max_lines` lines per outcome, and whether a line represents several predictions.

        `bold_levels` names the boldness path points of all panels, which follow the first two.
        """
        path_positions = np.array([0, 1, *(2 + bold_levels.index(name) for name in self.names[2:])])
        parts, has_merged_lines = [], False
        for outcome, share in ((True, self.y), (False, 1 - self.y)):
            has_weight = self.w * share > 0
            if not has_weight.any():
                continue
            w = (self.w * share)[has_weight]
            scores, score_index = np.unique(self.probabilities[0, has_weight], return_inverse=True)
            first = group_starts(np.bincount(score_index, w), max_lines)
            has_merged_lines |= len(first) < len(scores)
            line = (np.searchsorted(first, np.arange(len(scores)), side="right") - 1)[score_index]
            line_weight = np.bincount(line, w)
            means = (
                np.stack(
                    [np.bincount(line, w * probabilities) for probabilities in self.probabilities[:, has_weight]],
                    axis=1,
                )
                / line_weight[:, None]
            )
            parts.append((outcome, np.bincount(line, (self.n * share)[has_weight]), line_weight, means))
        max_line_weight = max(float(line_weight.max()) for _, _, line_weight, _ in parts)
        tables = [
            self._line_columns(outcome, n, line_weight, means, max_line_weight, path_positions)
            for outcome, n, line_weight, means in parts
        ]
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}, has_merged_lines

    def _line_columns(
        self, outcome: bool, n: Array, line_weight: Array, means: Array, max_line_weight: float, path_positions: Array
    ) -> dict[str, Array]:
        """The points of the lines of one outcome, with an opacity by their weight."""
        n_lines, n_points = means.shape
        relative_width = np.sqrt(line_weight / max_line_weight)  # so that rare outcomes are visible
        return {
            "view": np.full(n_lines * n_points, self.view, dtype=object),
            "line": np.repeat(np.arange(n_lines), n_points),
            "n": np.repeat(n, n_points),
            "weight": np.repeat(line_weight, n_points),
            "outcome": np.full(n_lines * n_points, outcome),
            "path_point": np.tile(np.array(self.names, dtype=object), n_lines),
            "place": np.tile(path_positions, n_lines),
            "posterior": np.tile(self.posterior, n_lines),
            "probability": means.ravel(),
            "share": np.repeat(line_weight / self.w.sum(), n_points),
            "opacity": np.repeat(_MIN_OPACITY + (_MAX_OPACITY - _MIN_OPACITY) * relative_width, n_points),
            "width": np.repeat(_MIN_LINE_WIDTH + (_MAX_LINE_WIDTH - _MIN_LINE_WIDTH) * relative_width, n_points),
        }


def binary_path(
    view: View, posteriors: Sequence[float], prior: float, min_prob: float
) -> tuple[RecalibrationPath, Callable[[list[Note]], RecalibrationPath]]:
    """Path with predicted probabilities and best fit, and a function that adds boldness recalibrations and notes."""
    P, Y, w = select_weighted_rows(view)
    likelihood, min_prob = LloLikelihood.from_view(view, min_prob, prior), resolve_min_prob(view, min_prob)
    spec = LloSpec(min_prob)
    calibration_map = spec.fit(P, Y, w)
    x, title = log_ratio(P, min_prob), view.name.removeprefix("class:")

    def path_point(tau: float, gamma: float) -> tuple[Array, float]:
        """Probabilities recalibrated by this shift and slope, and the posterior probability of it."""
        # With the lower bound of the fit; without it, exact zeros would stay at zero.
        return expit(tau + gamma * x), float(
            likelihood.posterior(likelihood.log_likelihood_drop(np.array([tau, gamma])))
        )

    fitted_probabilities, p = path_point(calibration_map.tau, calibration_map.gamma)
    path_to_fit = RecalibrationPath(
        view.name, title, np.stack([view.P[view.w > 0, 1], fitted_probabilities]), Y[:, 1], w, view.n[view.w > 0],
        ("predicted", "best_fit" if calibration_map.converged else "fit"), np.array([path_point(0.0, 1.0)[1], p]),
        calibration_map.delta, calibration_map.gamma, calibration_map.converged,
    )  # fmt: skip

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
        names, parts = list(path_to_fit.names), []
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
            names.append(f"{level:g}")
            parts.append(path_point(boldest.tau, boldest.gamma))
        return replace(
            path_to_fit,
            probabilities=np.stack([*path_to_fit.probabilities, *(probabilities for probabilities, _ in parts)]),
            names=tuple(names),
            posterior=np.array([*path_to_fit.posterior, *(p for _, p in parts)]),
        )

    return path_to_fit, add_boldest


def class_paths(
    view: View, names: Sequence[str], baseline: int | None, prior: float, min_prob: float, notes: list[Note]
) -> list[RecalibrationPath]:
    """Paths with predicted probabilities and the best fit against the baseline, for each class."""
    (P, Y, w), P_with_weight, min_prob = (
        select_weighted_rows(view),
        view.P[view.w > 0],
        resolve_min_prob(view, min_prob),
    )
    spec = MclloSpec(baseline=baseline, min_prob=min_prob)
    calibration_map = spec.fit(P, Y, w)
    assert isinstance(calibration_map, MclloMap)
    notes += spec.notes(calibration_map, P, Y, w)
    k, c = P.shape[1], calibration_map.baseline
    other_classes = np.delete(np.arange(k), c)
    tau, gamma = np.insert(calibration_map.tau, c, 0.0), np.insert(calibration_map.gamma, c, 1.0)
    log_p = floored_logs(P, min_prob)
    eta = (log_p - log_p[:, [c]]) * gamma + tau
    loglik_predicted, loglik_recalibrated = (
        float(w @ (Y * log_softmax(logits, axis=1)).sum(axis=1)) for logits in (log_p, eta)
    )
    # A fit with all outcomes correct, at the lower bounds of the probabilities, is none.
    has_finite_fit = calibration_map.converged and -loglik_recalibrated > SUPREMUM_TOLERANCE * float(w.sum())
    posterior = expit(
        (k - 1) * np.log(w.sum()) + logit(prior) - np.array([max(loglik_recalibrated - loglik_predicted, 0.0), 0.0])
    )
    delta, slope = np.full(k, np.nan), np.full(k, np.nan)
    delta[other_classes], slope[other_classes] = np.exp(np.minimum(calibration_map.tau, 700)), calibration_map.gamma
    rows, Q, point_names = view.n[view.w > 0], softmax(eta), ("predicted", "best_fit" if has_finite_fit else "fit")
    return [
        RecalibrationPath(
            f"class:{names[j]}", names[j], np.stack([P_with_weight[:, j], Q[:, j]]), Y[:, j], w, rows, point_names,
            posterior, float(delta[j]), float(slope[j]), has_finite_fit, names[c],
        )
        for j in range(k)
    ]  # fmt: skip
