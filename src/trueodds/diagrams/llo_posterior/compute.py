"""Compute the posterior probability of calibration over a grid of shifts and slopes of the log odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, floor_notes, min_prob_for
from trueodds.core.errors import Note
from trueodds.core.settings import ONE, Probability, Range
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import stack_tables
from trueodds.diagrams.llo_likelihood import LloLikelihood, format_posterior, rows_with_weight
from trueodds.diagrams.llo_posterior.plot import PosteriorPlot
from trueodds.diagrams.recipe import Recipe, lens_of
from trueodds.lenses.view import View

OUTER_POSTERIOR = 0.01  # the posterior whose contour the picture holds
_MAX_ENLARGEMENT = 2.5  # times as wide or high may the picture become so that the identity is in it


@dataclass(frozen=True)
class LloPosterior(Recipe):
    r"""The posterior probability of calibration after every shift δ and slope γ of the log odds, as a map with contours.

    Answers: which recalibrations are believable, is leaving the forecasts as they are one of them, and how bold may one
    be? With :math:`\mathrm{logit}\,q = \log\delta + \gamma\,\mathrm{logit}\,p` and :math:`F = -\log L`, BIC gives

    .. math:: P(\text{calibrated} \mid y, q) =
        \mathrm{logit}^{-1}\big[\log n + \mathrm{logit}\,\pi - (F(\delta, \gamma) - F_{\min})\big]

    with π = `prior`. Drawn are the map, the contours of the probabilities `posteriors`, the best fit, the boldest map on
    each contour (`boldness`) and (1, 1), which leaves everything as it is; where that lies far off, an arrow points to it.

    Views: binary, one panel each, on shared axes, the least probable as said first, and those without a finite best fit
    last. Of more than 12 views the first 12 are drawn; of the others `table` holds the best fit and what was said
    (note TN245). Weights count as numbers of rows. Beyond 1,024 distinct scores the map,
    the contours and the boldest maps are made of as many groups of neighbors, and the boldest then of every row. Where no finite δ and γ are best
    the picture is empty and says so (note TN251). Units: probability. Cost: O(n log n), and resolution² passes over
    1,024 groups: 1e6 rows take some 1.1 s. Raises TO203 for unknown settings, TO205 for a joint view.
    Source: Guthrie & Franck (2024), R package BRcal (plot_params).

    Parameters
    ----------
    posteriors : sequence of float
        The probabilities whose contours are drawn.
    prior : float
        The probability of calibration beforehand, π.
    resolution : int
        How many values of δ, and of γ, the map has.
    floor : float
        Stands in for smaller probabilities; a note counts them.

    Columns of `table`: view kind level delta gamma posterior loglik; kind is grid, contour, boldest (both with the
    posterior asked for as level), best or identity.

    >>> view = View([0.7, 0.3] * 40, [1, 0, 1, 0, 1, 0, 0, 1] * 10, name="positive")
    >>> table = LloPosterior(resolution=11)([view]).table
    >>> table["posterior"][table["kind"] == "boldest"].round(6).tolist()
    [0.95, 0.9, 0.8]
    """

    name: ClassVar[str] = "llo_posterior"
    posteriors: Annotated[Sequence[Probability], ONE] = (0.95, 0.9, 0.8)
    prior: Probability = 0.5
    resolution: Annotated[int, Range(2, 1000)] = 61
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "posteriors", tuple(sorted(set(self.posteriors), reverse=True)))

    def of(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The map of each view that is drawn, the least believable first."""
        planes = [LloLikelihood.of(view, self.min_prob, self.prior) for view in views]
        rises = np.array([float(plane.rise(_UNCHANGED)) for plane in planes])
        order = np.lexsort([-rises, np.array([not plane.finite for plane in planes])])
        views, planes = tuple(views[i] for i in order), [planes[i] for i in order]
        shown = [plane for plane in planes if plane.finite][: layout.MAX_PANELS]
        frames = [_map_limits(plane) for plane in shown]
        low, high = (
            (np.min([frame[0] for frame in frames], axis=0), np.max([frame[1] for frame in frames], axis=0))
            if frames
            else (np.array([-1.0, 0.0]), np.array([1.0, 2.0]))
        )
        tables, notes = [], list[Note]()
        for i, (view, plane) in enumerate(zip(views, planes, strict=True)):
            P, Y, _ = rows_with_weight(view)
            notes += floor_notes(P, Y, min_prob_for(view, self.min_prob))
            tables.append(self._rows(view.name, plane, low, high, notes, mapped=i < layout.MAX_PANELS))
        rows = [self._panel(view, plane, low, high) for view, plane in zip(views, planes, strict=True)]
        kinds = {"view": object, "title": object, "aside": object, "finding": object}
        panels = {name: np.array([row[name] for row in rows], dtype=kinds.get(name)) for name in rows[0]}
        if len(views) > layout.MAX_PANELS:
            text = f"Drawn are the {layout.MAX_PANELS} least probable of {len(views)} views; of the others the table holds the best fit and what was said."
            notes.append(Note("TN245", text))
        return PosteriorPlot(
            name=self.name,
            lens=lens_of(views),
            table=stack_tables(tables),
            panels=stack_tables([panels]),
            settings={
                "posteriors": self.posteriors,
                "prior": self.prior,
                "resolution": self.resolution,
                "min_prob": self.min_prob,
            },
            notes=tuple(dict.fromkeys(notes)),
        )

    def _rows(
        self, name: str, plane: LloLikelihood, low: Array, high: Array, notes: list[Note], *, mapped: bool
    ) -> dict[str, Array]:
        """Map, contours and marks of one view; of one that is not drawn the marks."""
        if not plane.finite:
            text = f"{name}: no finite shift and slope are best, since the scores separate the outcomes or are all equal; there is no map."
            notes.append(Note("TN251", text))
            return _table(name, [])
        marks = [_mark("best", np.nan, plane.theta, plane), _mark("identity", np.nan, _UNCHANGED, plane)]
        if not mapped:
            return _table(name, marks, plane)
        tau, gamma = (np.linspace(low[i], high[i], self.resolution) for i in (0, 1))
        grid = np.stack(np.meshgrid(tau, gamma), axis=-1).reshape(-1, 2)
        parts = [("grid", np.nan, grid, plane.rises(tau, gamma).ravel())]
        for level in self.posteriors:
            line = plane.contour(level)
            if line is None:
                text = f"{plane.n:,.0f} rows cannot make calibration as probable as {level:g}: no contour and no mark for it."
                notes.append(Note("TN250", text))
                continue
            fall = np.log(plane.n / level * (1 - level) * self.prior / (1 - self.prior))
            parts.append(("contour", level, line, np.full(len(line), fall)))
            bold = plane.boldest(level, self.min_prob)
            parts.append(_mark("boldest", level, np.array([bold.tau, bold.gamma]), plane))
        return _table(name, parts + marks, plane)

    def _panel(self, view: View, plane: LloLikelihood, low: Array, high: Array) -> dict[str, Any]:
        rise = plane.rise(_UNCHANGED)
        before, after = float(plane.posterior(rise)), float(plane.posterior(np.zeros(())))
        title = view.name.removeprefix("class:")
        inside = bool((low <= _UNCHANGED).all() and (high >= _UNCHANGED).all())
        if plane.finite:
            aside = f"as said {format_posterior(before).replace('under', '<').replace('over', '>')}"
            finding = (
                f"{title + ': a' if view.name.startswith('class:') else 'A'}s they are, the forecasts are calibrated with "
                f"probability {format_posterior(before)}; after the best fit, δ\u00a0=\u00a0{np.exp(plane.theta[0]):.3g} and "
                f"γ\u00a0=\u00a0{plane.theta[1]:.3g}, with {format_posterior(after)}."
            )
        else:
            aside = "no finite fit"
            finding = f"{title}: no finite shift and slope are best, so there is no map."
        return {
            "view": view.name,
            "title": title,
            "aside": aside,
            "finding": finding,
            "n": view.n_rows,
            "weight": view.total,
            "posterior_as_said": before,
            "posterior_at_best": after,
            "finite": plane.finite,
            "identity_inside": inside,
            "delta_low": float(np.exp(low[0])),
            "delta_high": float(np.exp(high[0])),
            "gamma_low": float(low[1]),
            "gamma_high": float(high[1]),
        }


_UNCHANGED = np.array([0.0, 1.0])


def _map_limits(plane: LloLikelihood) -> tuple[Array, Array]:
    """The corners of the picture in τ and γ: the faintest contour, and the identity if it is near."""
    line = plane.contour(OUTER_POSTERIOR)
    if line is None:  # a handful of rows: some standard errors instead
        line = plane.contour(0.5 * float(plane.posterior(np.zeros(()))))
    assert line is not None
    low, high = line.min(axis=0), line.max(axis=0)
    wide = high - low
    with_it = np.minimum(low, _UNCHANGED), np.maximum(high, _UNCHANGED)
    if (with_it[1] - with_it[0] <= _MAX_ENLARGEMENT * wide).all():
        low, high = with_it
    margin = 0.06 * (high - low)
    return low - margin, high + margin


def _mark(kind: str, level: float, theta: Array, plane: LloLikelihood) -> tuple[str, float, Array, Array]:
    return kind, level, theta[None, :], plane.rise(theta).reshape(1)


def _table(
    name: str, parts: Sequence[tuple[str, float, Array, Array]], plane: LloLikelihood | None = None
) -> dict[str, Array]:
    theta = np.concatenate([np.empty((0, 2)), *(part[2] for part in parts)])
    rise = np.concatenate([np.empty(0), *(part[3] for part in parts)])
    times = [len(part[2]) for part in parts]
    return {
        "view": np.full(len(rise), name, dtype=object),
        "kind": np.repeat(np.array([part[0] for part in parts], dtype=object), times),
        "level": np.repeat(np.array([part[1] for part in parts], dtype=float), times),
        "delta": np.exp(theta[:, 0]),
        "gamma": theta[:, 1],
        "posterior": rise if plane is None else plane.posterior(rise),
        "loglik": rise if plane is None else -plane.min_loss - rise,
    }
