"""What would recalibration make of each prediction, and how probable is calibration then?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators.likelihood.baseline import baseline_of
from trueodds.calibrators.likelihood.logs import MIN_PROB, MinProb
from trueodds.core.errors import Note
from trueodds.core.settings import ONE, Probability
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned.bins import stacked
from trueodds.diagrams.drawing import layout
from trueodds.diagrams.odds import path_points
from trueodds.diagrams.odds.class_names import Named
from trueodds.diagrams.odds.line_plot import LinePlot
from trueodds.diagrams.odds.path_points import FEWER, LINES, PathPoints
from trueodds.diagrams.odds.shift_and_slope import probable
from trueodds.diagrams.recipe import lens_of
from trueodds.lenses.view import View


@dataclass(frozen=True)
class RecalibrationLines(Named):
    r"""Each prediction from what was said through the best fit to bolder versions, as lines colored by what came.

    Answers: what would recalibration do to the predictions, and is it needed? Every station says the posterior
    probability of calibration of the forecasts there, by BIC as in `llo_posterior`. The first is what was said, the
    second the most likely shift and slope of the log odds (`llo`), then the boldest ones that keep the probabilities
    `posteriors` (`boldness`); a station that too few rows reach is left out (note TN250), and where no finite fit is
    best there are none (note TN251) and the second is called fit instead of best. Stations after the first are of log
    odds with the floor, as the posteriors are. Through the lens canonical of
    more than two classes there are two stations, said and `mcllo`, and a panel for each class.

    More than 24 distinct predictions of an outcome, in a grid more than 12, are drawn as so many groups of neighbors of
    equal weight, at the mean of their rows at each station; the smaller the share of rows behind a line, the fainter
    and thinner it is (note TN249).

    Views: binary, one panel each, or joint, a panel for each class; most moved first. Of more than 12 panels the first
    12 are drawn; the others have no boldest stations (note TN245). Weights count as numbers of rows. Units: probability.
    Cost: O(n log n) and some 15 passes over 1,024 groups of scores for each posterior: 1e6 rows take some 1.9 s. Raises
    TO203 for unknown settings. Source: Guthrie & Franck (2024), R package BRcal (lineplot).

    Parameters
    ----------
    posteriors : sequence of float
        The stations beyond the best fit.
    prior : float
        The probability of calibration beforehand.
    baseline : int or str, optional
        The class whose odds the joint fit is against, by number or as `class:cat`; by default the last.
    floor : float
        Stands in for smaller probabilities in the fits.
    classes : sequence of str, optional
        What the classes of a joint view are called; the data's names where they are known.

    Columns of `table`: view line n weight outcome station place posterior probability share opacity width; a row for
    each line at each station. `outcome` is whether the event came, `place` counts the stations of all panels from 0,
    `share` is that of the view's weight, `width` is in points. Delta, gamma and the standard deviation at each station
    stand in `panels`.

    >>> view = View([0.7, 0.3] * 40, [1, 0, 1, 0, 1, 0, 0, 1] * 10, name="positive")
    >>> table = RecalibrationLines(posteriors=[0.95])([view]).table
    >>> first = (table["line"] == 0) & table["outcome"]
    >>> table["station"][first].tolist(), table["probability"][first].round(3).tolist()
    (['said', 'best', '0.95'], [0.3, 0.25, 0.174])
    """

    name: ClassVar[str] = "recalibration_lines"
    vectors: ClassVar[bool] = True
    posteriors: Annotated[Sequence[Probability], ONE] = (0.95, 0.9, 0.8)
    prior: Probability = 0.5
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "posteriors", tuple(sorted(set(self.posteriors), reverse=True)))

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """Lines of every view, the most moved first."""
        notes: list[Note] = []
        candidates = [way for view in views for way in self._ways(view, notes)]
        candidates = [candidates[i] for i in np.argsort([-way.moved for way, _ in candidates], kind="stable")]
        ways = [add_boldest(notes) for _, add_boldest in candidates[: layout.PANELS]] + [
            way for way, _ in candidates[layout.PANELS :]
        ]
        met = {name for way in ways for name in way.names[2:]}
        bold = [name for name in (f"{level:g}" for level in self.posteriors) if name in met]
        max_lines = LINES if len(ways) == 1 else FEWER
        tables, merged = zip(*(way.lines(max_lines, bold) for way in ways), strict=True)
        if any(merged):
            text = f"Lines stand for groups of neighboring predictions, at most {max_lines} of each outcome, and are fainter and thinner the fewer rows they hold."
            notes.append(Note("TN249", text))
        if len(ways) > layout.PANELS:
            text = f"Drawn are the {layout.PANELS} most moved of {len(ways)} views; of the others the table holds what was said and the fit."
            notes.append(Note("TN245", text))
        rows = [_panel(way, len(ways)) for way in ways]
        kinds = {"view": object, "title": object, "aside": object, "finding": object}
        settings = {"posteriors": self.posteriors, "prior": self.prior, "min_prob": self.min_prob}
        if any(view.joint for view in views):
            view = next(view for view in views if view.joint)
            against = baseline_of(self.against(view), view.p.shape[1])
            settings = {"baseline": against, "prior": self.prior, "min_prob": self.min_prob}
        return LinePlot(
            name=self.name,
            lens=lens_of(views),
            table=stacked(tables),
            panels=stacked([{name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}]),
            settings=settings,
            notes=tuple(dict.fromkeys(notes)),
        )

    def _ways(self, view: View, notes: list[Note]) -> list[tuple[PathPoints, Callable[[list[Note]], PathPoints]]]:
        """What was said and the fit, by which panels are ordered, and what makes all stations of it."""
        if view.joint:
            names = self.names(view.p.shape[1])
            ways = path_points.joint(view, names, self.against(view), self.prior, self.min_prob, notes)
            return [(way, lambda _, way=way: way) for way in ways]  # type: ignore[misc]
        return [path_points.binary(view, self.posteriors, self.prior, self.min_prob)]


def _panel(way: PathPoints, panels: int) -> dict[str, Any]:
    std, points = way.std, f"{100 * way.moved:.1f} points"
    before, after = (probable(float(p)) for p in way.posterior[:2])
    fit = f" (δ\u00a0=\u00a0{way.delta:.3g}, γ\u00a0=\u00a0{way.gamma:.3g})" if np.isfinite(way.delta) else ""
    aside = f"moves {points}" if way.against else f"as said {before.replace('under', '<').replace('over', '>')}"
    if not way.finite:
        aside = "no finite fit"
        moves = (
            "a fit in their stead moves it"
            if way.against
            else "the fit drawn, with one more outcome of either kind imagined, moves a prediction"
        )
        finding = f"{way.title}: no finite shift and slope are best; {moves} by {points} on average."
    elif way.against:
        finding = (
            f"All classes together are calibrated with probability {before} as said and {after} after the best fit, "
            f"which moves {way.title}{fit} by {points} on average."
        )
    else:
        finding = (
            f"{way.title + ': c' if panels > 1 else 'C'}alibrated with probability {before} as said and {after} after "
            f"the best fit{fit}, which moves a prediction by {points} on average."
        )
    if len(std) > 2:
        level = f"{100 * way.posterior[-1]:.3g}\u00a0%"
        finding += (
            f" Boldest at {level}: a standard deviation of {100 * std[-1]:.1f} points, where it was {100 * std[0]:.1f}."
        )
    return {
        "view": way.view,
        "title": way.title,
        "aside": aside,
        "finding": finding,
        "n": int(way.n.sum()),
        "weight": float(way.w.sum()),
        "stations": len(way.at),
        "moved": way.moved,
        "delta": way.delta,
        "gamma": way.gamma,
        "posterior_said": float(way.posterior[0]),
        "posterior_best": float(way.posterior[1]) if way.finite else np.nan,
        "spread_said": float(std[0]),
        "spread_best": float(std[1]),
        "spread_last": float(std[-1]),
    }
