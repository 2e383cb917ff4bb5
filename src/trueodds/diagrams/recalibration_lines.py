"""Recalibration lines: where best-fit and boldness recalibration move each predicted probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, logit

from trueodds.binning.sorted_scores import group_starts
from trueodds.calibrators._glm.log_probabilities import (
    MIN_PROB,
    MinProb,
    floored_logs,
    log_ratio,
    resolve_min_prob,
    softmax,
)
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec, baseline_index
from trueodds.core.arithmetic import decreasing_order, weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import OR_SINGLE_VALUE, Probability
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.marks import Line, Mark, PanelSize, VLine
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.llo_likelihood import LloLikelihood, format_posterior, select_weighted_rows
from trueodds.diagrams.recipe import BaselineRecipe, lens_name, panel_limit_notes
from trueodds.diagrams.table_columns import Columns, stack_tables
from trueodds.hypotests._glm.mcllo_likelihood import SUPREMUM_TOLERANCE
from trueodds.lenses.view import View, view_title

MAX_LINES, MAX_LINES_IN_GRID = 24, 12  # for each outcome, in a single panel and in a grid; more lines would merge


@dataclass(frozen=True)
class RecalibrationLines(BaselineRecipe):
    r"""Lines from each predicted probability through its recalibrated values, colored by outcome.

    The diagram shows how recalibration would change the predictions, and whether it is needed. The path points along
    the horizontal axis are the predicted probabilities, the best-fit shift and slope of the log odds (``llo``), and the
    boldest recalibrations that keep the posterior probabilities of calibration `posteriors` (``boldness``). Each path
    point is labeled with the posterior probability of calibration of its forecasts, by BIC as in ``llo_posterior``.

    Parameters
    ----------
    posteriors : sequence of float, default=(0.95, 0.9, 0.8)
        The posterior probabilities of the path points beyond the best fit.
    prior : float, default=0.5
        The prior probability of calibration.
    min_prob : float, default=1e-12
        Lower bound of the probabilities inside the logarithm of the fits.

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
        candidates = [candidate for view in views for candidate in self._path_candidates(view, notes)]
        candidates = [candidates[i] for i in decreasing_order(candidate.to_fit.mean_change for candidate in candidates)]
        # Boldness recalibrations are costly: only the paths that are drawn get them.
        paths = [candidate.complete(notes) for candidate in candidates[:MAX_PANELS]]
        paths += [candidate.to_fit for candidate in candidates[MAX_PANELS:]]
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
        table_content = "For the others the table contains only the predicted probabilities and the fit."
        notes += panel_limit_notes(len(paths), RecalibrationLinesPlot.view_order, table_content)
        rows = [_panel_row(path, len(paths)) for path in paths]
        settings = {"posteriors": self.posteriors, "prior": self.prior, "min_prob": self.min_prob}
        if any(view.joint for view in views):
            view = next(view for view in views if view.joint)
            baseline = baseline_index(self.baseline_index(view), view.p.shape[1])
            settings = {"baseline": baseline, "prior": self.prior, "min_prob": self.min_prob}
        unique_notes = dict.fromkeys(notes)
        return self.build_diagram(RecalibrationLinesPlot, lens_name(views), tables, rows, settings, unique_notes)

    def _path_candidates(self, view: View, notes: list[Note]) -> list[PathCandidate]:
        """The path of a binary view, or those of all classes of a joint view, whose notes are added to `notes`."""
        if view.joint:  # without boldness recalibrations, the paths are complete
            names = self.class_names(view.p.shape[1])
            paths = class_paths(view, names, self.baseline_index(view), self.prior, self.min_prob, notes)
            return [PathCandidate(path, lambda _, path=path: path) for path in paths]  # type: ignore[misc]
        return [binary_path(view, self.posteriors, self.prior, self.min_prob)]


def _panel_row(path: RecalibrationPath, n_panels: int) -> dict[str, Any]:
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
        return float(weighted_sum(self.w, np.abs(self.probabilities[1] - self.probabilities[0])) / self.w.sum())

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


class PathCandidate(NamedTuple):
    """A path whose costly boldness recalibrations are computed only if it is drawn."""

    to_fit: RecalibrationPath  # up to the best fit, which determines the order of the panels
    complete: Callable[[list[Note]], RecalibrationPath]  # returns all of its points, and adds its notes to the list


def binary_path(view: View, posteriors: Sequence[float], prior: float, min_prob: float) -> PathCandidate:
    P, Y, w = select_weighted_rows(view)
    likelihood = LloLikelihood.from_view(view, min_prob, prior)
    min_prob = resolve_min_prob(view, min_prob)
    spec = LloSpec(min_prob)
    calibration_map = spec.fit(P, Y, w)
    x, title = log_ratio(P, min_prob), view_title(view.name)

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

    return PathCandidate(path_to_fit, add_boldest)


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
        float(weighted_sum(w, (Y * log_softmax(logits, axis=1)).sum(axis=1))) for logits in (log_p, fitted_logits)
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


_PATH_POINT_LABELS = {"predicted": "predicted", "best_fit": "best fit", "fit": "fit"}
_SHORT_LABELS = {"predicted": "pred.", "best fit": "best", "fit": "fit", "boldest": "bold"}
_SIDE_MARGIN = 0.32  # margin beside the first and the last path point, in distances between path points
_EVENT_LINE_STYLE: dict[str, Any] = {"color": styling.INSIDE_COLOR, "linestyle": "-"}
_NONEVENT_LINE_STYLE: dict[str, Any] = {"color": styling.OUTSIDE_COLOR, "linestyle": (0, (3.5, 1.4))}


class RecalibrationLinesPlot(Diagram):
    """A line for each prediction, through its recalibrated values at the path points."""

    question = "How would recalibration change each prediction?"
    layers = ("lines", "path_points")
    row_noun = "points"
    view_order = "largest change"
    figure_size = (6.4, 5.0)

    def axis_labels(self) -> tuple[str, str]:
        x = "Posterior probability of calibration"
        return x, "Confidence" if self.lens == "confidence" else "Probability"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        rows = self.rows(panel)
        styling.style_axes(ax, size.font_size)
        ax.set_ylim(-0.02, 1.02)
        ax.set_yticks(np.arange(6) / 5 if size.height > 1.6 else np.arange(3) / 2)
        ax.yaxis.set_major_formatter(styling.format_percent_tick)
        ax.grid(False, axis="x")
        # Panels share their axes, so all have the ticks of the panel with the most path points; labels prefer own rows.
        path_positions, first = np.unique(np.concatenate([rows["place"], self.table["place"]]), return_index=True)
        names, posteriors = (
            np.concatenate([rows[name], self.table[name]])[first] for name in ("path_point", "posterior")
        )
        if (self.table["path_point"] == "fit").any():
            names[1] = "fit"  # correct for all panels
        self._label_path_points(ax, path_positions, names, posteriors)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The path points and the lines, in the order of the probabilities, so that neither outcome hides the other."""
        rows = self.rows(panel)
        n_points, scale = int(self.panels["path_points"][panel]), (1.0 if size.width > 3.4 else 0.75)
        place = rows["place"].reshape(-1, n_points)
        probability = rows["probability"].reshape(-1, n_points)
        outcomes, labels = rows["outcome"][::n_points], ("no event", "event")
        if self.lens == "confidence":
            labels = "incorrect", "correct"
        marks: list[Mark] = [
            VLine(place[0], layer="path_points", color=styling.INSIDE_BAR_COLOR, linewidth=1.2, zorder=1)
        ]
        rank = np.argsort(np.argsort(probability[:, 0], kind="stable"))
        for i in np.argsort(~outcomes, kind="stable"):  # events first, as in the legend
            line = {"linewidth": scale * rows["width"][i * n_points], "alpha": rows["opacity"][i * n_points]}
            line |= _EVENT_LINE_STYLE if outcomes[i] else _NONEVENT_LINE_STYLE
            line |= {"zorder": 3 + rank[i] / len(rank), "key": {"linewidth": 1.6, "alpha": 1}}
            marks.append(Line(place[i], probability[i], layer="lines", label=labels[int(outcomes[i])], **line))
        return marks

    def _label_path_points(self, ax: Any, path_positions: Any, names: Any, posteriors: Any) -> None:
        """Label each path point with its name and posterior probability, on one line if there is no room for two."""
        posterior_texts = [_format_posterior(float(p)) for p in posteriors]
        long_names = [_PATH_POINT_LABELS.get(name, "boldest") for name in names]
        short_names = [_SHORT_LABELS[name] for name in long_names]
        label_choices: list[list[str]] = []  # the most complete first
        if len(self.panels["view"]) == 1 and ax.figure.get_layout_engine() is not None:
            # The layout engine makes room for a second line.
            label_choices += [
                _join_labels(long_names, posterior_texts, "\n"),
                _join_labels(short_names, posterior_texts, "\n"),
            ]
        if self._has_shared_posteriors:
            # Otherwise, those of the lowest panel must not label all panels.
            label_choices += [
                _join_labels(long_names, posterior_texts, " "),
                _join_labels(short_names, posterior_texts, " "),
            ]
        label_choices.append(
            [p if name == "bold" else name for name, p in zip(short_names, posterior_texts, strict=True)]
        )
        size = styling.font_size(ax) - 0.5
        labels = next((candidate for candidate in label_choices if _labels_fit(ax, candidate, size)), label_choices[-1])
        while size > 5 and not _labels_fit(ax, labels, size):
            size -= 0.5
        if not _labels_fit(ax, labels, size):
            labels = [labels[0], *[""] * (len(labels) - 2), labels[-1]]
        # Two invisible ticks beyond the ends, so that the layout does not move the outer labels.
        ax.set_xticks([-2, *path_positions, len(path_positions) + 1], ["", *labels, ""], fontsize=size)
        ax.set_xlim(-_SIDE_MARGIN, len(path_positions) - 1 + _SIDE_MARGIN)

    @property
    def _has_shared_posteriors(self) -> bool:
        """Whether all panels have the same posteriors, so that the tick labels of the lowest panel can show them."""
        posteriors = np.stack([self.panels["posterior_predicted"], self.panels["posterior_best_fit"]])
        return len(self.panels["view"]) == 1 or bool(((posteriors == posteriors[:, :1]) | np.isnan(posteriors)).all())


def _join_labels(names: list[str], posteriors: list[str], separator: str) -> list[str]:
    return [f"{name}{separator}{p}" for name, p in zip(names, posteriors, strict=True)]


def _labels_fit(ax: Any, labels: list[str], size: float) -> bool:
    spacing = styling.POINTS_PER_INCH * styling.size_in_inches(ax)[0] / (len(labels) - 1 + 2 * _SIDE_MARGIN)
    widths = [max(styling.text_width(line, size) for line in label.split("\n")) for label in labels]
    inside = max(widths[0], widths[-1]) / 2 <= _SIDE_MARGIN * spacing + 4
    return inside and max(a + b for a, b in pairwise(widths)) / 2 + 4 <= spacing


def _format_posterior(p: float) -> str:
    if p < 1e-3:
        return "< 0.1\u00a0%"
    return "> 99.9\u00a0%" if p > 0.999 else f"{100 * p:.1f}".removesuffix(".0") + "\u00a0%"
