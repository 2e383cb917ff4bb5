"""Estimate shift and slope of the log odds of each class, with Wald intervals and confidence ellipses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtrc, ndtri

from trueodds.calibrators._glm.baseline_logits import baseline_index
from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, floor_notes, min_prob_for
from trueodds.core.errors import Note
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.baseline_recipe import BaselineRecipe
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.llo_likelihood import rows_with_weight
from trueodds.diagrams.mcllo_parameters.plot import ParameterPlot
from trueodds.diagrams.recipe import IMPORTANCE, lens_of
from trueodds.hypotests._glm.mcllo_likelihood import NEAR, Odds
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MclloParameters(BaselineRecipe):
    r"""The most likely shift δ and slope γ of each class's log odds against a baseline, with how sure they are.

    Answers: in :math:`\log(q_j/q_c) = \log\delta_j + \gamma_j \log(p_j/p_c)`, which classes came more often, against
    the baseline c, than was said (δ > 1), and for which were the odds too extreme (γ < 1)? Drawn are the intervals of
    both, symmetric in log δ and γ, and the ellipse :math:`(\theta - \hat\theta)^\top \Sigma^{-1} (\theta - \hat\theta)
    \le \chi^2_2(\text{level})` in (log δ, γ), against the point (1, 1), which changes nothing. Each interval and each
    ellipse holds for its class alone: of 19 right classes one ellipse of 95 % misses on average; the test `mcllo` judges
    all at once. Σ is the inverse information, with unequal weights the sandwich. Where no finite parameters are best
    the picture is empty and says so (note TN251); so it is where the ellipses reach beyond factors of e^300, or all
    outcomes had probabilities of 1 but for the floor. The fills of more than 12 classes would hide each other: there only
    the ellipses that miss (1, 1) are filled, lightly.

    Views: joint, or binary (then it is `llo`, and the baseline does not matter). Units: none. Cost: O(nK²) for each of
    some 6 Newton steps. Raises TO203 for unknown settings. Source: Vennos, Xing & Franck (2026).

    Parameters
    ----------
    baseline : int or str, optional
        The class c by number, negative ones counted from the last, or as `class:cat`; by default the last.
    floor : float
        Stands in for smaller probabilities; a note counts them.
    level : float
        Of the intervals and ellipses.
    ellipses : bool
        Whether they are drawn.
    classes : sequence of str, optional
        What the classes of a joint view are called; the data's names where they are known.

    Columns of `table`: view class kind tau delta gamma delta_low delta_high gamma_low gamma_high statistic pvalue
    outside; τ is log δ; kind is estimate, or ellipse for the corners of its outline. `statistic` and `pvalue` are Wald's for (1, 1), 2 d.f.

    >>> view = View([0.8, 0.2] * 20, [1, 0, 1, 0, 1, 1, 0, 0] * 5, name="positive")
    >>> table = MclloParameters()([view]).table
    >>> [table[name][0].round(4).item() for name in ("delta", "gamma", "gamma_low", "gamma_high")]
    [1.0, 0.7925, 0.2762, 1.3087]
    """

    name: ClassVar[str] = "mcllo_parameters"
    lens: ClassVar[str | None] = "canonical"
    vectors: ClassVar[bool] = True
    exempt: ClassVar[dict[str, str]] = IMPORTANCE
    min_prob: MinProb = MIN_PROB
    level: Level = 0.95
    ellipses: bool = True

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The parameters of each view, the farthest off first."""
        notes: list[Note] = []
        fits = [self._fit_view(view, notes) for view in views]
        order = np.argsort([-distance for _, _, distance in fits], kind="stable")
        views, fits = tuple(views[i] for i in order), [fits[i] for i in order]
        limits = axis_limits([table for table, _, _ in fits[: layout.MAX_PANELS]])
        rows = [
            self._panel(view, table, baseline, len(views)) | limits
            for view, (table, baseline, _) in zip(views, fits, strict=True)
        ]
        base = self.against(views[0])
        kinds = {"view": object, "title": object, "aside": object, "finding": object, "baseline": object}
        if len(views) > layout.MAX_PANELS:
            text = f"Drawn are the {layout.MAX_PANELS} farthest off of {len(views)} views; the table holds them all."
            notes.append(Note("TN245", text))
        return ParameterPlot(
            name=self.name,
            lens=lens_of(views),
            table=stack_tables([table for table, _, _ in fits]),
            panels=stack_tables(
                [{name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}]
            ),
            settings={
                "baseline": baseline_index(base, views[0].p.shape[1]) if views[0].joint else None,
                "min_prob": self.min_prob,
                "level": self.level,
                "ellipses": self.ellipses,
            },
            notes=tuple(dict.fromkeys(notes)),
        )

    def _fit_view(self, view: View, notes: list[Note]) -> tuple[dict[str, Array], str, float]:
        """The table of a view, its baseline, and how far it is from changing nothing."""
        P, Y, _ = rows_with_weight(view)
        min_prob = min_prob_for(view, self.min_prob)
        notes += floor_notes(P, Y, min_prob)
        odds = Odds.of(view, self.against(view), min_prob, self.name)
        names = self.names(view.p.shape[1]) if view.joint else ("", view.name.removeprefix("class:"))
        baseline = str(names[odds.baseline])
        theta = np.asarray(odds.mle.theta).reshape(-1, 2)
        covariance = np.full((len(theta), 2, 2), np.nan)
        # Every outcome right at the floors: the floor, and not the data, says that nothing is left to gain.
        if odds.covariance is not None and odds.mle.at.value > NEAR * float(odds.w.sum()):
            m = len(theta)
            covariance = np.asarray(odds.covariance).reshape(m, 2, m, 2)[np.arange(m), :, np.arange(m)]
        if not is_drawable(theta, covariance, self.level):
            text = f"{view.name}: no finite shifts and slopes are best, since some classes never came, the predictions separate the outcomes, or they take too few values; there is nothing to draw."
            notes.append(Note("TN251", text))
            theta, covariance = theta[:0], covariance[:0]
        labels = [str(names[j]) for j in odds.others][: len(theta)]
        table = wald_table(view.name, labels, theta, covariance, self.level)
        distance = float(np.abs(theta - [1.0, 0.0]).sum(axis=1).max(initial=0.0))
        return table, baseline, distance

    def _panel(self, view: View, table: dict[str, Array], baseline: str, panels: int) -> dict[str, Any]:
        own = table["kind"] == "estimate"
        count, outside = int(own.sum()), int(table["outside"][own].sum())
        title = view.name.removeprefix("class:")
        return {
            "view": view.name,
            "title": title,
            "baseline": baseline,
            "aside": _aside(table, own),
            "finding": _finding(table, own, title, view.joint, self.level, panels),
            "n": view.n_rows,
            "weight": view.total,
            "classes": count,
            "classes_outside": outside,
        }


def _aside(table: dict[str, Array], own: Array) -> str:
    if not own.any():
        return "no finite fit"
    if own.sum() == 1:
        return f"δ\u00a0{table['delta'][own][0]:.3g}, γ\u00a0{table['gamma'][own][0]:.2f}"
    return f"{int(table['outside'][own].sum())} of {int(own.sum())} outside"


def _finding(table: dict[str, Array], own: Array, title: str, joint: bool, level: float, panels: int) -> str:
    if not own.any():
        return f"{title}: no finite shifts and slopes are best, so there is nothing to draw."
    delta, gamma, outside = (table[name][own] for name in ("delta", "gamma", "outside"))
    shift, slope = interval_sides(table, own, "delta"), interval_sides(table, own, "gamma")
    if not joint:
        parts = [
            "said too seldom" if shift[0] > 0 else "said too often" if shift[0] < 0 else "",
            "too sure" if slope[0] < 0 else "too timid" if slope[0] > 0 else "",
        ]
        words = " and ".join(part for part in parts if part)
        text = words or ("both together are off beyond chance" if outside[0] else "chance explains both")
        if words and not outside[0]:
            text += " by its own interval; taken together, chance explains both"
        return (
            f"{title + ': ' if panels > 1 else ''}δ\u00a0=\u00a0{delta[0]:.3g}, γ\u00a0=\u00a0{gamma[0]:.3g}: {text}."
        )
    shift, slope = shift[outside], slope[outside]  # by the ellipse, which judges both at once
    counts = [
        (int((slope < 0).sum()), "too sure"),
        (int((slope > 0).sum()), "too timid"),
        (int((shift > 0).sum()), "said too seldom"),
        (int((shift < 0).sum()), "said too often"),
        (int(((shift == 0) & (slope == 0)).sum()), "only in both together"),
    ]
    text = ", ".join(f"{count} {what}" for count, what in counts if count)
    many = f"{int(outside.sum()) or 'None'} of {len(outside)} classes"
    verb = "is" if outside.sum() <= 1 else "are"
    return f"{many} {verb} off beyond chance at {100 * (1 - level):.3g}\u00a0% each{': ' + text if text else ''}."


_CORNERS = 72  # of an ellipse
_MIN_SPAN = 0.02  # of log δ and of γ: what the picture spans at least
_MAX_LOG_DELTA = 300.0  # of log δ: its axis is one of floating-point numbers, with margins
_MAX_GAMMA = 1e6  # of γ, with what it may be off by


def is_drawable(theta: Array, covariance: Array, level: float) -> bool:
    """Whether each θ = (γ, τ) is told so well that its ellipse has a place on an axis of δ.

    >>> is_drawable(np.array([[1.0, 0.0]]), np.eye(2)[None], 0.95), drawable(np.array([[1.0, 0.0]]), 1e8 * np.eye(2)[None], 0.95)
    (True, False)
    """
    if not (np.isfinite(theta).all() and np.isfinite(covariance).all()):
        return False
    extent = np.abs(theta) + _ellipse_radius(level) * np.sqrt(np.einsum("mii->mi", covariance))
    return bool((extent <= [_MAX_GAMMA, _MAX_LOG_DELTA]).all())


def wald_table(name: str, labels: list[str], theta: Array, covariance: Array, level: float) -> dict[str, Array]:
    """A row for each class, and the outlines of the ellipses below them; θ is (γ, τ) of each."""
    m = len(theta)
    se = np.sqrt(np.einsum("mii->mi", covariance))
    z, radius = float(ndtri((1 + level) / 2)), _ellipse_radius(level)
    low, high = theta - z * se, theta + z * se
    away = np.array([1.0, 0.0]) - theta
    statistic = np.einsum("mi,mi->m", away, np.linalg.solve(covariance, away[..., None])[..., 0]) if m else np.zeros(0)
    angles = np.linspace(0, 2 * np.pi, _CORNERS + 1)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)])
    outline = (
        theta[:, None, :] + np.swapaxes(np.linalg.cholesky(covariance) @ circle, 1, 2) if m else np.empty((0, 0, 2))
    )
    outline, corners = outline.reshape(-1, 2), len(angles) if m else 0
    gaps = np.full(len(outline), np.nan)
    names = np.array(labels, dtype=object)

    def column(values: Array, below: Array = gaps) -> Array:
        return np.concatenate([values, below])

    outside, tau = statistic > radius**2, column(theta[:, 1], outline[:, 1])
    return {
        "view": np.full(m + len(outline), name, dtype=object),
        "class": column(names, np.repeat(names, corners)),
        "kind": np.array(["estimate"] * m + ["ellipse"] * len(outline), dtype=object),
        "tau": tau,
        "delta": np.exp(tau),
        "gamma": column(theta[:, 0], outline[:, 0]),
        "delta_low": column(np.exp(low[:, 1])),
        "delta_high": column(np.exp(high[:, 1])),
        "gamma_low": column(low[:, 0]),
        "gamma_high": column(high[:, 0]),
        "statistic": column(statistic),
        "pvalue": column(chdtrc(2, statistic)),
        "outside": column(outside, np.repeat(outside, corners)).astype(bool),
    }


def axis_limits(tables: list[dict[str, Array]]) -> dict[str, float]:
    """The corners of the picture: all estimates and (1, 1), and every ellipse that is not far wider than most."""
    theta, ends = [np.array([[0.0, 1.0]])], [np.zeros((0, 2, 2))]
    for table in tables:
        own = table["kind"] == "estimate"
        if not own.any():
            continue
        both = np.stack([table["tau"], table["gamma"]], axis=1)
        outlines = both[~own].reshape(int(own.sum()), -1, 2)
        theta.append(both[own])
        ends.append(np.stack([outlines.min(axis=1), outlines.max(axis=1)], axis=1))
    points, outer = np.concatenate(theta), np.concatenate(ends)
    low, high = points.min(axis=0), points.max(axis=0)
    if len(outer):
        margin = np.maximum(high - low, np.median(outer[:, 1] - outer[:, 0], axis=0))
        low = np.minimum(low, np.maximum(outer[:, 0].min(axis=0), low - margin))
        high = np.maximum(high, np.minimum(outer[:, 1].max(axis=0), high + margin))
    wide = np.maximum(high - low, _MIN_SPAN)
    middle = (low + high) / 2
    low, high = middle - 0.57 * wide, middle + 0.57 * wide
    return {
        "delta_low": float(np.exp(low[0])),
        "delta_high": float(np.exp(high[0])),
        "gamma_low": float(low[1]),
        "gamma_high": float(high[1]),
    }


def _ellipse_radius(level: float) -> float:
    """Of an ellipse, in standard deviations: χ² with 2 d.f. is exponential."""
    return float(np.sqrt(-2 * np.log1p(-level)))


def interval_sides(table: dict[str, Array], own: Array, name: str) -> Array:
    """+1 and −1 where the interval lies above and below 1, else 0."""
    low, high = table[f"{name}_low"][own], table[f"{name}_high"][own]
    return np.asarray((low > 1).astype(int) - (high < 1))
