"""Which classes are said too seldom, and which too surely? Shift and slope of each class against a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from trueodds.calibrators.likelihood.baseline import baseline_of
from trueodds.calibrators.likelihood.logs import MIN_PROB, MinProb, min_prob_for, touched
from trueodds.core.errors import Note
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.binned.bins import stacked
from trueodds.diagrams.drawing import layout
from trueodds.diagrams.odds.class_names import Named
from trueodds.diagrams.odds.estimates import axis_limits, drawable, estimates, sides_of
from trueodds.diagrams.odds.parameter_plot import ParameterPlot
from trueodds.diagrams.odds.shift_and_slope import counted
from trueodds.diagrams.recipe import IMPORTANCE, lens_of
from trueodds.hypotests.likelihood.odds import NEAR, Odds
from trueodds.lenses.view import View


@dataclass(frozen=True)
class MclloParameters(Named):
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
        limits = axis_limits([table for table, _, _ in fits[: layout.PANELS]])
        rows = [
            self._panel(view, table, baseline, len(views)) | limits
            for view, (table, baseline, _) in zip(views, fits, strict=True)
        ]
        base = self.against(views[0])
        kinds = {"view": object, "title": object, "aside": object, "finding": object, "baseline": object}
        if len(views) > layout.PANELS:
            text = f"Drawn are the {layout.PANELS} farthest off of {len(views)} views; the table holds them all."
            notes.append(Note("TN245", text))
        return ParameterPlot(
            name=self.name,
            lens=lens_of(views),
            table=stacked([table for table, _, _ in fits]),
            panels=stacked([{name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}]),
            settings={
                "baseline": baseline_of(base, views[0].p.shape[1]) if views[0].joint else None,
                "min_prob": self.min_prob,
                "level": self.level,
                "ellipses": self.ellipses,
            },
            notes=tuple(dict.fromkeys(notes)),
        )

    def _fit_view(self, view: View, notes: list[Note]) -> tuple[dict[str, Array], str, float]:
        """The table of a view, its baseline, and how far it is from changing nothing."""
        P, Y, _ = counted(view)
        min_prob = min_prob_for(view, self.min_prob)
        notes += touched(P, Y, min_prob)
        odds = Odds.of(view, self.against(view), min_prob, self.name)
        names = self.names(view.p.shape[1]) if view.joint else ("", view.name.removeprefix("class:"))
        baseline = str(names[odds.baseline])
        theta = np.asarray(odds.mle.theta).reshape(-1, 2)
        covariance = np.full((len(theta), 2, 2), np.nan)
        # Every outcome right at the floors: the floor, and not the data, says that nothing is left to gain.
        if odds.covariance is not None and odds.mle.at.value > NEAR * float(odds.w.sum()):
            m = len(theta)
            covariance = np.asarray(odds.covariance).reshape(m, 2, m, 2)[np.arange(m), :, np.arange(m)]
        if not drawable(theta, covariance, self.level):
            text = f"{view.name}: no finite shifts and slopes are best, since some classes never came, the predictions separate the outcomes, or they take too few values; there is nothing to draw."
            notes.append(Note("TN251", text))
            theta, covariance = theta[:0], covariance[:0]
        labels = [str(names[j]) for j in odds.others][: len(theta)]
        table = estimates(view.name, labels, theta, covariance, self.level)
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
    shift, slope = sides_of(table, own, "delta"), sides_of(table, own, "gamma")
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
