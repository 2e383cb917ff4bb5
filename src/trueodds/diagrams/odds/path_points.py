"""Which stations does each prediction pass on its way through recalibration, and which lines stand for them?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_softmax, logit

from trueodds.binning.by_score import grouped
from trueodds.calibrators.likelihood.logs import floored, log_ratio, min_prob_for, softmax
from trueodds.calibrators.llo import LloSpec
from trueodds.calibrators.mcllo import MclloMap, MclloSpec
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.diagrams.odds.shift_and_slope import Plane, counted
from trueodds.hypotests.likelihood.odds import NEAR
from trueodds.lenses.view import View

LINES, FEWER = 24, 12  # of each outcome, in a single panel and in a grid: more make a solid block
_FAINT, _STRONG = 0.5, 0.95  # how opaque the line of no and of the largest share is
_THIN, _THICK = 0.7, 1.6  # points: how wide they are


@dataclass(frozen=True, eq=False)
class PathPoints:
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
            first = grouped(np.bincount(where, w), max_lines)
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


def binary(
    view: View, posteriors: Sequence[float], prior: float, min_prob: float
) -> tuple[PathPoints, Callable[[list[Note]], PathPoints]]:
    """As said and the best shift and slope; and what adds the boldest ones, and the notes."""
    P, Y, w = counted(view)
    plane, min_prob = Plane.of(view, min_prob, prior), min_prob_for(view, min_prob)
    spec = LloSpec(min_prob)
    calibration_map = spec.fit(P, Y, w)
    x, title = log_ratio(P, min_prob), view.name.removeprefix("class:")

    def path_point(tau: float, gamma: float) -> tuple[Array, float]:
        # As scored: with the floor, without which exact zeros would stay where they are.
        return expit(tau + gamma * x), float(plane.posterior(plane.rise(np.array([tau, gamma]))))

    after, p = path_point(calibration_map.tau, calibration_map.gamma)
    short = PathPoints(
        view.name, title, np.stack([view.P[view.w > 0, 1], after]), Y[:, 1], w, view.n[view.w > 0],
        ("said", "best" if calibration_map.converged else "fit"), np.array([path_point(0.0, 1.0)[1], p]),
        calibration_map.delta, calibration_map.gamma, calibration_map.converged,
    )  # fmt: skip

    def add_boldest(notes: list[Note]) -> PathPoints:
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


def joint(
    view: View, names: Sequence[str], baseline: int | None, prior: float, min_prob: float, notes: list[Note]
) -> list[PathPoints]:
    """As said and the best shifts and slopes against the baseline, for each class."""
    (P, Y, w), stated, min_prob = counted(view), view.P[view.w > 0], min_prob_for(view, min_prob)
    spec = MclloSpec(baseline=baseline, min_prob=min_prob)
    calibration_map = spec.fit(P, Y, w)
    assert isinstance(calibration_map, MclloMap)
    notes += spec.notes(calibration_map, P, Y, w)
    k, c = P.shape[1], calibration_map.baseline
    others = np.delete(np.arange(k), c)
    tau, gamma = np.insert(calibration_map.tau, c, 0.0), np.insert(calibration_map.gamma, c, 1.0)
    log_p = floored(P, min_prob)
    eta = (log_p - log_p[:, [c]]) * gamma + tau
    before, after = (float(w @ (Y * log_softmax(logits, axis=1)).sum(axis=1)) for logits in (log_p, eta))
    finite = calibration_map.converged and -after > NEAR * float(w.sum())  # all right at the floors is no fit
    posterior = expit((k - 1) * np.log(w.sum()) + logit(prior) - np.array([max(after - before, 0.0), 0.0]))
    delta, slope = np.full(k, np.nan), np.full(k, np.nan)
    delta[others], slope[others] = np.exp(np.minimum(calibration_map.tau, 700)), calibration_map.gamma
    rows, Q, point_names = view.n[view.w > 0], softmax(eta), ("said", "best" if finite else "fit")
    return [
        PathPoints(
            f"class:{names[j]}", names[j], np.stack([stated[:, j], Q[:, j]]), Y[:, j], w, rows, point_names, posterior,
            float(delta[j]), float(slope[j]), finite, names[c],
        )
        for j in range(k)
    ]  # fmt: skip
