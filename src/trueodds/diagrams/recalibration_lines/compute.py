"""Compute where best-fit and boldness recalibration move each predicted probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators._glm.baseline_logits import baseline_index
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb
from trueodds.core.errors import Note
from trueodds.core.ordering import decreasing_order
from trueodds.core.settings import OR_SINGLE_VALUE, Probability
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.baseline_recipe import BaselineRecipe
from trueodds.diagrams.llo_likelihood import format_posterior
from trueodds.diagrams.recalibration_lines.paths import RecalibrationPath, binary_path, class_paths
from trueodds.diagrams.recalibration_lines.plot import RecalibrationLinesPlot
from trueodds.diagrams.recipe import lens_name
from trueodds.diagrams.table_columns import rows_to_columns, stack_tables
from trueodds.lenses.view import View

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
        # Boldness recalibrations are costly: only the paths that are drawn get them.
        paths = [add_boldest(notes) for _, add_boldest in candidates[:MAX_PANELS]]
        paths += [path for path, _ in candidates[MAX_PANELS:]]
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
        if len(paths) > MAX_PANELS:
            text = (
                f"Only the {MAX_PANELS} views with the largest change of {len(paths)} are drawn. For the others "
                "the table contains only the predicted probabilities and the fit."
            )
            notes.append(Note("TN245", text))
        rows = [_panel_row(path, len(paths)) for path in paths]
        settings = {"posteriors": self.posteriors, "prior": self.prior, "min_prob": self.min_prob}
        if any(view.joint for view in views):
            view = next(view for view in views if view.joint)
            baseline = baseline_index(self.baseline_index(view), view.p.shape[1])
            settings = {"baseline": baseline, "prior": self.prior, "min_prob": self.min_prob}
        return RecalibrationLinesPlot(
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
        """Paths up to the best fit, each with a function that returns the path with all of its points.

        The best fit determines the order of the panels. The functions add their notes to the list they are passed.
        """
        if view.joint:  # without boldness recalibrations, the paths are complete
            names = self.class_names(view.p.shape[1])
            paths = class_paths(view, names, self.baseline_index(view), self.prior, self.min_prob, notes)
            return [(path, lambda _, path=path: path) for path in paths]  # type: ignore[misc]
        return [binary_path(view, self.posteriors, self.prior, self.min_prob)]


def _panel_row(path: RecalibrationPath, n_panels: int) -> dict[str, Any]:
    """The row of `panels` for one path, of `n_panels` in all."""
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
