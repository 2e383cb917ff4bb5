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
    min_prob_for,
    softmax,
)
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.settings import ONE, Probability
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.baseline_recipe import BaselineRecipe
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.llo_likelihood import LloLikelihood, format_posterior, rows_with_weight
from trueodds.diagrams.recalibration_lines.plot import LinePlot
from trueodds.diagrams.recipe import lens_of
from trueodds.hypotests._glm.mcllo_likelihood import NEAR
from trueodds.lenses.view import View


@dataclass(frozen=True)
class RecalibrationLines(BaselineRecipe):
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
        ways = [add_boldest(notes) for _, add_boldest in candidates[: layout.MAX_PANELS]] + [
            way for way, _ in candidates[layout.MAX_PANELS :]
        ]
        met = {name for way in ways for name in way.names[2:]}
        bold = [name for name in (f"{level:g}" for level in self.posteriors) if name in met]
        max_lines = MAX_LINES if len(ways) == 1 else MAX_LINES_IN_GRID
        tables, merged = zip(*(way.lines(max_lines, bold) for way in ways), strict=True)
        if any(merged):
            text = f"Lines stand for groups of neighboring predictions, at most {max_lines} of each outcome, and are fainter and thinner the fewer rows they hold."
            notes.append(Note("TN249", text))
        if len(ways) > layout.MAX_PANELS:
            text = f"Drawn are the {layout.MAX_PANELS} most moved of {len(ways)} views; of the others the table holds what was said and the fit."
            notes.append(Note("TN245", text))
        rows = [_panel(way, len(ways)) for way in ways]
        kinds = {"view": object, "title": object, "aside": object, "finding": object}
        settings = {"posteriors": self.posteriors, "prior": self.prior, "min_prob": self.min_prob}
        if any(view.joint for view in views):
            view = next(view for view in views if view.joint)
            against = baseline_index(self.against(view), view.p.shape[1])
            settings = {"baseline": against, "prior": self.prior, "min_prob": self.min_prob}
        return LinePlot(
            name=self.name,
            lens=lens_of(views),
            table=stack_tables(tables),
            panels=stack_tables(
                [{name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}]
            ),
            settings=settings,
            notes=tuple(dict.fromkeys(notes)),
        )

    def _ways(
        self, view: View, notes: list[Note]
    ) -> list[tuple[RecalibrationPath, Callable[[list[Note]], RecalibrationPath]]]:
        """What was said and the fit, by which panels are ordered, and what makes all stations of it."""
        if view.joint:
            names = self.names(view.p.shape[1])
            ways = class_paths(view, names, self.against(view), self.prior, self.min_prob, notes)
            return [(way, lambda _, way=way: way) for way in ways]  # type: ignore[misc]
        return [binary_path(view, self.posteriors, self.prior, self.min_prob)]


def _panel(way: RecalibrationPath, panels: int) -> dict[str, Any]:
    std, points = way.std, f"{100 * way.moved:.1f} points"
    before, after = (format_posterior(float(p)) for p in way.posterior[:2])
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


MAX_LINES, MAX_LINES_IN_GRID = 24, 12  # of each outcome, in a single panel and in a grid: more make a solid block
_FAINT, _STRONG = 0.5, 0.95  # how opaque the line of no and of the largest share is
_THIN, _THICK = 0.7, 1.6  # points: how wide they are


@dataclass(frozen=True, eq=False)
class RecalibrationPath:
    """One event: its probability at every station, and whether it came."""

    view: str
    title: str
    at: Array  # (stations, n) probabilities; the first as said, the others made of log odds with the floor
    y: Array  # (n,) shares
    w: Array  # (n,)
    n: Array  # (n,) rows in each cell
    names: tuple[str, ...]  # (stations,)
    posterior: Array  # (stations,)
    delta: float  # of the best fit; NaN for a baseline
    gamma: float
    finite: bool = True  # whether a finite fit is best
    against: str = ""  # the baseline of a joint fit, whose posteriors are those of all classes together

    @property
    def moved(self) -> float:
        """The mean distance from what was said to the best fit."""
        return float(self.w @ np.abs(self.at[1] - self.at[0]) / self.w.sum())

    @property
    def std(self) -> Array:
        """The standard deviation at each station, by n − 1."""
        n = self.w.sum()
        deviation = self.at - (self.at @ self.w / n)[:, None]
        return np.asarray(np.sqrt(deviation**2 @ self.w / (n - 1))) if n > 1 else np.zeros(len(self.at))

    def lines(self, max_lines: int, bold: Sequence[str]) -> tuple[dict[str, Array], bool]:
        """A row for each of so many lines at each station, and whether a line stands for several predictions.

        `bold` names the boldest stations of all panels, which follow the first two.
        """
        places = np.array([0, 1, *(2 + bold.index(name) for name in self.names[2:])])
        parts, merged = [], False
        for outcome, share in ((True, self.y), (False, 1 - self.y)):
            live = self.w * share > 0
            if not live.any():
                continue
            w = (self.w * share)[live]
            scores, where = np.unique(self.at[0, live], return_inverse=True)
            first = group_starts(np.bincount(where, w), max_lines)
            merged |= len(first) < len(scores)
            line = (np.searchsorted(first, np.arange(len(scores)), side="right") - 1)[where]
            mass = np.bincount(line, w)
            means = np.stack([np.bincount(line, w * at) for at in self.at[:, live]], axis=1) / mass[:, None]
            parts.append((outcome, np.bincount(line, (self.n * share)[live]), mass, means))
        largest = max(float(mass.max()) for _, _, mass, _ in parts)
        tables = [self._rows(outcome, n, mass, means, largest, places) for outcome, n, mass, means in parts]
        return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}, merged

    def _rows(
        self, outcome: bool, n: Array, mass: Array, means: Array, largest: float, places: Array
    ) -> dict[str, Array]:
        m, s = means.shape
        part = np.sqrt(mass / largest)  # so that rare outcomes are seen
        return {
            "view": np.full(m * s, self.view, dtype=object),
            "line": np.repeat(np.arange(m), s),
            "n": np.repeat(n, s),
            "weight": np.repeat(mass, s),
            "outcome": np.full(m * s, outcome),
            "station": np.tile(np.array(self.names, dtype=object), m),
            "place": np.tile(places, m),
            "posterior": np.tile(self.posterior, m),
            "probability": means.ravel(),
            "share": np.repeat(mass / self.w.sum(), s),
            "opacity": np.repeat(_FAINT + (_STRONG - _FAINT) * part, s),
            "width": np.repeat(_THIN + (_THICK - _THIN) * part, s),
        }


def binary_path(
    view: View, posteriors: Sequence[float], prior: float, min_prob: float
) -> tuple[RecalibrationPath, Callable[[list[Note]], RecalibrationPath]]:
    """As said and the best shift and slope; and what adds the boldest ones, and the notes."""
    P, Y, w = rows_with_weight(view)
    plane, min_prob = LloLikelihood.of(view, min_prob, prior), min_prob_for(view, min_prob)
    spec = LloSpec(min_prob)
    calibration_map = spec.fit(P, Y, w)
    x, title = log_ratio(P, min_prob), view.name.removeprefix("class:")

    def path_point(tau: float, gamma: float) -> tuple[Array, float]:
        # As scored: with the floor, without which exact zeros would stay where they are.
        return expit(tau + gamma * x), float(plane.posterior(plane.rise(np.array([tau, gamma]))))

    after, p = path_point(calibration_map.tau, calibration_map.gamma)
    short = RecalibrationPath(
        view.name, title, np.stack([view.P[view.w > 0, 1], after]), Y[:, 1], w, view.n[view.w > 0],
        ("said", "best" if calibration_map.converged else "fit"), np.array([path_point(0.0, 1.0)[1], p]),
        calibration_map.delta, calibration_map.gamma, calibration_map.converged,
    )  # fmt: skip

    def add_boldest(notes: list[Note]) -> RecalibrationPath:
        notes += spec.notes(calibration_map, P, Y, w)
        if posteriors and not plane.finite:
            text = f"{title}: no finite shift and slope are best, since the scores separate the outcomes or are all equal; there are no boldest stations."
            notes.append(Note("TN251", text))
            return short
        names, parts = list(short.names), []
        for level in posteriors:
            try:
                bold = plane.boldest(level, min_prob)
            except InputError:  # its settings were checked, so it is the rows that are too few
                text = (
                    f"{w.sum():,.0f} rows cannot make calibration as probable as {level:g}: there is no station for it."
                )
                notes.append(Note("TN250", text))
                continue
            names.append(f"{level:g}")
            parts.append(path_point(bold.tau, bold.gamma))
        return replace(
            short,
            at=np.stack([*short.at, *(probabilities for probabilities, _ in parts)]),
            names=tuple(names),
            posterior=np.array([*short.posterior, *(p for _, p in parts)]),
        )

    return short, add_boldest


def class_paths(
    view: View, names: Sequence[str], baseline: int | None, prior: float, min_prob: float, notes: list[Note]
) -> list[RecalibrationPath]:
    """As said and the best shifts and slopes against the baseline, for each class."""
    (P, Y, w), stated, min_prob = rows_with_weight(view), view.P[view.w > 0], min_prob_for(view, min_prob)
    spec = MclloSpec(baseline=baseline, min_prob=min_prob)
    calibration_map = spec.fit(P, Y, w)
    assert isinstance(calibration_map, MclloMap)
    notes += spec.notes(calibration_map, P, Y, w)
    k, c = P.shape[1], calibration_map.baseline
    others = np.delete(np.arange(k), c)
    tau, gamma = np.insert(calibration_map.tau, c, 0.0), np.insert(calibration_map.gamma, c, 1.0)
    log_p = floored_logs(P, min_prob)
    eta = (log_p - log_p[:, [c]]) * gamma + tau
    before, after = (float(w @ (Y * log_softmax(logits, axis=1)).sum(axis=1)) for logits in (log_p, eta))
    finite = calibration_map.converged and -after > NEAR * float(w.sum())  # all right at the floors is no fit
    posterior = expit((k - 1) * np.log(w.sum()) + logit(prior) - np.array([max(after - before, 0.0), 0.0]))
    delta, slope = np.full(k, np.nan), np.full(k, np.nan)
    delta[others], slope[others] = np.exp(np.minimum(calibration_map.tau, 700)), calibration_map.gamma
    rows, Q, point_names = view.n[view.w > 0], softmax(eta), ("said", "best" if finite else "fit")
    return [
        RecalibrationPath(
            f"class:{names[j]}", names[j], np.stack([stated[:, j], Q[:, j]]), Y[:, j], w, rows, point_names, posterior,
            float(delta[j]), float(slope[j]), finite, names[c],
        )
        for j in range(k)
    ]  # fmt: skip
