"""Shift and slope of the log odds of each class, with Wald intervals and confidence ellipses."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, replacement_notes, resolve_min_prob
from trueodds.calibrators.mcllo import baseline_index
from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import Note
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.marks import Mark, PanelSize, Points, Polygons, Segments, Text
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.llo_likelihood import select_weighted_rows
from trueodds.diagrams.odds_plane import OddsPlane, empty_panel
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BaselineRecipe, lens_name, panel_limit_notes
from trueodds.hypotests._glm.mcllo_likelihood import SUPREMUM_TOLERANCE, MclloModel
from trueodds.lenses.view import View, view_title


@dataclass(frozen=True)
class MclloParameters(BaselineRecipe):
    r"""Maximum-likelihood shift δ and slope γ of the log odds of each class, with confidence regions.

    In :math:`\log(q_j/q_c) = \log\delta_j + \gamma_j \log(p_j/p_c)`, a class with δ > 1 is underpredicted relative to
    the baseline class c, and γ < 1 means that the predictions are overconfident. The diagram shows the confidence
    intervals of both parameters and their confidence ellipse, and the point (1, 1), which leaves predictions
    unchanged.

    Parameters
    ----------
    min_prob : float, default=1e-12
        Lower bound of the probabilities inside the logarithm. A note counts the probabilities below it.
    level : float, default=0.95
        Confidence level of the intervals and ellipses.
    ellipses : bool, default=True
        Whether to draw the ellipses.

    Notes
    -----
    The confidence ellipse is :math:`(\theta - \hat\theta)^\top \Sigma^{-1} (\theta - \hat\theta) \le
    \chi^2_2(\text{level})` in :math:`\theta = (\log\delta, \gamma)`. The intervals are symmetric in log δ and γ. Σ is
    the inverse information matrix, or the sandwich covariance if weights are unequal. Each interval and each ellipse
    holds for its class separately: of 19 calibrated classes, one 95 % ellipse excludes (1, 1) on average. The test
    ``mcllo`` tests all classes jointly.

    The panel is empty (note TN251) if no finite parameters maximize the likelihood, if the ellipses extend beyond
    factors of e^300, or if every outcome had probability 1 apart from the lower bound. With more than 12 classes, only
    the ellipses that exclude (1, 1) are filled, lightly, because fills would hide each other.

    Views: joint, or binary, in which case the model is ``llo`` and the baseline does not matter. Units: none.

    Columns of ``table``: ``view class kind tau delta gamma delta_low delta_high gamma_low gamma_high statistic pvalue
    outside``. ``tau`` is log δ. ``kind`` is ``estimate``, or ``ellipse`` for the vertices of its outline. ``statistic``
    and ``pvalue`` are those of the Wald test of (1, 1) with 2 degrees of freedom.

    Cost: O(nK²) for each of about 6 Newton steps.

    References
    ----------
    .. [1] Vennos, Xing & Franck (2026).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 0, 1, 1, 0, 0] * 5, [0.8, 0.2] * 20
    >>> table = to.draw(y, p, "mcllo_parameters", lens="positive").table
    >>> [table[name][0].round(4).item() for name in ("delta", "gamma", "gamma_low", "gamma_high")]
    [1.0, 0.7925, 0.2762, 1.3087]
    """

    name: ClassVar[str] = "mcllo_parameters"
    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    min_prob: MinProb = MIN_PROB
    level: Level = 0.95
    ellipses: bool = True

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The parameters of each view, those farthest from (1, 1) first."""
        notes: list[Note] = []
        fitted_views = [self._fit_view(view, notes) for view in views]
        fitted_views = [fitted_views[i] for i in decreasing_order(view_fit.distance for view_fit in fitted_views)]
        limits = axis_limits([view_fit.table for view_fit in fitted_views[:MAX_PANELS]])
        notes += panel_limit_notes(len(views), MclloParametersPlot.view_order)
        first = fitted_views[0].view
        baseline = baseline_index(self.baseline_index(first), first.p.shape[1]) if first.joint else None
        tables = [view_fit.table for view_fit in fitted_views]
        rows = [self._panel_row(view_fit, len(views)) | limits for view_fit in fitted_views]
        names = ("min_prob", "level", "ellipses")
        settings = {"baseline": baseline} | {name: self._settings[name] for name in names}
        unique_notes = dict.fromkeys(notes)
        return self.build_diagram(MclloParametersPlot, lens_name(views), tables, rows, settings, unique_notes)

    def _fit_view(self, view: View, notes: list[Note]) -> FittedView:
        """Fit one view, and add the notes on it to `notes`."""
        P, Y, _ = select_weighted_rows(view)
        min_prob = resolve_min_prob(view, self.min_prob)
        notes += replacement_notes(P, Y, min_prob)
        model = MclloModel.from_view(view, self.baseline_index(view), min_prob, self.name)
        names = self.class_names(view.p.shape[1]) if view.joint else ("", view_title(view.name))
        baseline = str(names[model.baseline])
        theta = np.asarray(model.mle.theta).reshape(-1, 2)
        covariance = np.full((len(theta), 2, 2), np.nan)
        # If every outcome has probability 1 apart from the lower bound, the bound determines the fit, not the data.
        if model.covariance is not None and model.mle.likelihood.value > SUPREMUM_TOLERANCE * float(model.w.sum()):
            m = len(theta)
            covariance = np.asarray(model.covariance).reshape(m, 2, m, 2)[np.arange(m), :, np.arange(m)]
        if not is_drawable(theta, covariance, self.level):
            text = (
                f"{view.name}: no finite shifts and slopes maximize the likelihood, because some classes were never "
                "observed, the predictions separate the outcomes, or they take too few values. Nothing is drawn."
            )
            notes.append(Note("TN251", text))
            theta, covariance = theta[:0], covariance[:0]
        labels = [str(names[j]) for j in model.free_classes][: len(theta)]
        table = wald_table(view.name, labels, theta, covariance, self.level)
        distance = float(np.abs(theta - [1.0, 0.0]).sum(axis=1).max(initial=0.0))
        return FittedView(view, table, baseline, distance)

    def _panel_row(self, view_fit: FittedView, n_panels: int) -> dict[str, Any]:
        """The row of `panels` without the limits of the axes."""
        view, table = view_fit.view, view_fit.table
        is_estimate = table["kind"] == "estimate"
        n_classes, n_outside = int(is_estimate.sum()), int(table["outside"][is_estimate].sum())
        title = view_title(view.name)
        return {
            "view": view.name,
            "title": title,
            "baseline": view_fit.baseline,
            "aside": _summarize_fits(table, is_estimate),
            "finding": _describe_finding(table, is_estimate, title, view.joint, self.level, n_panels),
            "n": view.n_rows,
            "weight": view.total,
            "classes": n_classes,
            "classes_outside": n_outside,
        }


class FittedView(NamedTuple):
    """The fit of one view."""

    view: View
    table: dict[str, Array]  # its rows of the table of the diagram
    baseline: str  # name of the baseline class
    distance: float  # largest |γ − 1| + |log δ| of a class; 0 without a finite fit


def _summarize_fits(table: dict[str, Array], is_estimate: Array) -> str:
    """Summarize the estimates in a few words: the values of a single one, or how many regions exclude (1, 1)."""
    if not is_estimate.any():
        return "no finite fit"
    if is_estimate.sum() == 1:
        return f"δ\u00a0{table['delta'][is_estimate][0]:.3g}, γ\u00a0{table['gamma'][is_estimate][0]:.2f}"
    return f"{int(table['outside'][is_estimate].sum())} of {int(is_estimate.sum())} miscalibrated"


def _describe_finding(
    table: dict[str, Array], is_estimate: Array, title: str, is_joint: bool, level: float, n_panels: int
) -> str:
    if not is_estimate.any():
        return f"{title}: no finite shifts and slopes maximize the likelihood, so nothing is drawn."
    delta, gamma, is_outside = (table[name][is_estimate] for name in ("delta", "gamma", "outside"))
    shift, slope = interval_sides(table, is_estimate, "delta"), interval_sides(table, is_estimate, "gamma")
    if not is_joint:
        shift_text = {1: "underpredicted", 0: "", -1: "overpredicted"}[int(shift[0])]
        slope_text = {1: "underconfident", 0: "", -1: "overconfident"}[int(slope[0])]
        text = " and ".join(filter(None, (shift_text, slope_text)))
        if not text:
            text = "shift and slope are jointly significant" if is_outside[0] else "neither is significant"
        elif not is_outside[0]:
            text += " by its own interval, but shift and slope are not jointly significant"
        prefix = f"{title}: " if n_panels > 1 else ""
        return f"{prefix}δ\u00a0=\u00a0{delta[0]:.3g}, γ\u00a0=\u00a0{gamma[0]:.3g}: {text}."
    shift, slope = shift[is_outside], slope[is_outside]  # by the ellipse, which tests both jointly
    counts = [
        (int((slope < 0).sum()), "overconfident"),
        (int((slope > 0).sum()), "underconfident"),
        (int((shift > 0).sum()), "underpredicted"),
        (int((shift < 0).sum()), "overpredicted"),
        (int(((shift == 0) & (slope == 0)).sum()), "only jointly"),
    ]
    text = ", ".join(f"{count} {description}" for count, description in counts if count)
    n_outside_text = f"{int(is_outside.sum()) or 'None'} of {len(is_outside)} classes"
    verb = "is" if is_outside.sum() <= 1 else "are"
    return (
        f"{n_outside_text} {verb} significantly miscalibrated at {100 * (1 - level):.3g}\u00a0% "
        f"each{': ' + text if text else ''}."
    )


_N_ELLIPSE_VERTICES = 72  # vertices of an ellipse
_HALF_SPAN_WITH_MARGIN = 0.57  # half of the length of an axis, relative to the range of what it shows
_MIN_SPAN = 0.02  # minimum range of log δ and γ in the figure
_MAX_LOG_DELTA = 300.0  # limit of |log δ|: δ must stay a floating-point number, with margins
_MAX_GAMMA = 1e6  # limit of |γ| plus the radius of its ellipse


def is_drawable(theta: Array, covariance: Array, level: float) -> bool:
    """Whether the ellipses around all θ = (γ, τ) are finite and fit on an axis of δ.

    >>> theta, covariance = np.array([[1.0, 0.0]]), np.eye(2)[None]
    >>> is_drawable(theta, covariance, 0.95), is_drawable(theta, 1e8 * covariance, 0.95)
    (True, False)
    """
    if not (np.isfinite(theta).all() and np.isfinite(covariance).all()):
        return False
    max_distance = np.abs(theta) + _ellipse_radius(level) * np.sqrt(np.einsum("mii->mi", covariance))
    return bool((max_distance <= [_MAX_GAMMA, _MAX_LOG_DELTA]).all())


def wald_table(name: str, labels: list[str], theta: Array, covariance: Array, level: float) -> dict[str, Array]:
    """The table of one view: a row for each class, followed by the vertices of the outline of each ellipse.

    `theta` (m, 2) holds (γ, τ) of the m classes, and `covariance` (m, 2, 2) the covariance of their estimates.
    """
    m = len(theta)
    se = np.sqrt(np.einsum("mii->mi", covariance))
    z, radius = float(ndtri((1 + level) / 2)), _ellipse_radius(level)
    low, high = theta - z * se, theta + z * se
    to_identity = np.array([1.0, 0.0]) - theta
    statistic = (
        np.einsum("mi,mi->m", to_identity, np.linalg.solve(covariance, to_identity[..., None])[..., 0])
        if m
        else np.zeros(0)
    )
    angles = np.linspace(0, 2 * np.pi, _N_ELLIPSE_VERTICES + 1)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)])
    outline = (
        theta[:, None, :] + np.swapaxes(np.linalg.cholesky(covariance) @ circle, 1, 2) if m else np.empty((0, 0, 2))
    )
    outline, n_vertices = outline.reshape(-1, 2), len(angles) if m else 0
    missing = np.full(len(outline), np.nan)
    names = np.array(labels, dtype=object)

    def column(values: Array, outline_values: Array = missing) -> Array:
        """Concatenate values of the classes with those of the points on their outlines."""
        return np.concatenate([values, outline_values])

    is_outside, tau = statistic > radius**2, column(theta[:, 1], outline[:, 1])
    return {
        "view": np.full(m + len(outline), name, dtype=object),
        "class": column(names, np.repeat(names, n_vertices)),
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
        "outside": column(is_outside, np.repeat(is_outside, n_vertices)).astype(bool),
    }


def axis_limits(tables: list[dict[str, Array]]) -> dict[str, float]:
    """Limits of the axes, which contain (1, 1), all estimates, and all ellipses but parts of very wide ones.

    An ellipse extends the limits by at most the range of the estimates or the median size of an ellipse.
    """
    # All points and ellipses in coordinates (τ, γ), in which (1, 1) is (0, 1).
    point_arrays, low_arrays, high_arrays = [np.array([[0.0, 1.0]])], [np.empty((0, 2))], [np.empty((0, 2))]
    for table in tables:
        is_estimate = table["kind"] == "estimate"
        if not is_estimate.any():
            continue
        tau_and_gamma = np.stack([table["tau"], table["gamma"]], axis=1)
        outlines = tau_and_gamma[~is_estimate].reshape(int(is_estimate.sum()), -1, 2)  # (classes, vertices, 2)
        point_arrays.append(tau_and_gamma[is_estimate])
        low_arrays.append(outlines.min(axis=1))
        high_arrays.append(outlines.max(axis=1))
    points = np.concatenate(point_arrays)
    ellipse_low, ellipse_high = np.concatenate(low_arrays), np.concatenate(high_arrays)
    low, high = points.min(axis=0), points.max(axis=0)
    if len(ellipse_low):
        margin = np.maximum(high - low, np.median(ellipse_high - ellipse_low, axis=0))
        low = np.minimum(low, np.maximum(ellipse_low.min(axis=0), low - margin))
        high = np.maximum(high, np.minimum(ellipse_high.max(axis=0), high + margin))
    span = np.maximum(high - low, _MIN_SPAN)
    center = (low + high) / 2
    low, high = center - _HALF_SPAN_WITH_MARGIN * span, center + _HALF_SPAN_WITH_MARGIN * span
    return {
        "delta_low": float(np.exp(low[0])),
        "delta_high": float(np.exp(high[0])),
        "gamma_low": float(low[1]),
        "gamma_high": float(high[1]),
    }


def _ellipse_radius(level: float) -> float:
    """Radius of an ellipse in standard deviations: χ² with 2 degrees of freedom is exponential."""
    return float(np.sqrt(-2 * np.log1p(-level)))


def interval_sides(table: dict[str, Array], is_estimate: Array, name: str) -> Array:
    """+1 and −1 where the interval of `name`, `delta` or `gamma`, lies above and below 1, else 0."""
    low, high = table[f"{name}_low"][is_estimate], table[f"{name}_high"][is_estimate]
    return np.asarray((low > 1).astype(int) - (high < 1))


_INSIDE_STYLE: dict[str, Any] = {"color": styling.INSIDE_COLOR, "marker": "o", "markerfacecolor": "white"}
_OUTSIDE_STYLE: dict[str, Any] = {"color": styling.OUTSIDE_COLOR, "marker": "D", "markeredgecolor": "white"}
_ELLIPSE_OPACITY = 0.13  # opacity of ellipses
_MAX_CLASSES_WITH_FILLS = 12  # of more classes only the ellipses that exclude (1, 1) are filled: fills hide each other


class MclloParametersPlot(OddsPlane):
    """Shift and slope of each class: intervals as crosses, and confidence ellipses."""

    layers = ("ellipses", "intervals", "names", "marks", "sides")
    row_noun = "table rows"
    view_order = "farthest from (1, 1)"
    strip_height = 0.08

    def default_title(self) -> str:
        if len(self.panels["view"]) == 1 and self.panels["baseline"][0]:
            return "For which classes are predictions biased or overconfident?"
        return "Are the predictions biased or overconfident?"

    def axis_labels(self) -> tuple[str, str]:
        baseline = self.panels["baseline"][0]
        return f"Shift δ of the odds{f' against {baseline}' if baseline else ''}", "Slope γ of the log odds"

    def _region_labels(self) -> tuple[str, str]:
        """The labels of the classes whose region contains (1, 1), and of the others."""
        n_classes, n_outside = (self.panels[name][:MAX_PANELS] for name in ("classes", "classes_outside"))
        has_ellipses = self.settings["ellipses"] and self.has("ellipses")
        region = f"{self.level_text} {'ellipse' if has_ellipses else 'region'}"
        any_inside = bool((n_classes > n_outside).any())
        return f"{region} contains it", "excludes it" if any_inside else f"{region} excludes it"

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The point (1, 1), then ellipse, intervals and estimate of each class, and its name."""
        rows, totals = self.rows(panel), self.panel_values(panel)
        if not totals["classes"]:
            return empty_panel("no finite shifts\nand slopes", size)
        is_wide, is_estimate = size.width > 2.4, rows["kind"] == "estimate"
        has_many_classes = totals["classes"] > _MAX_CLASSES_WITH_FILLS
        fill_opacity = min(_ELLIPSE_OPACITY, 0.6 / totals["classes"]) if has_many_classes else _ELLIPSE_OPACITY
        identity = {"marker": "+", "markersize": 11, "markeredgewidth": 1.8, "color": styling.TEXT_COLOR, "zorder": 5}
        key = {"markersize": 9, "markeredgewidth": 1.6}
        marks: list[Mark] = [
            *self.unchanged_lines(),
            Points(1, 1, layer="marks", name="identity", label="(1, 1): calibrated", key=key, **identity),
        ]
        outlines = np.stack([rows["delta"], rows["gamma"]], axis=1)[~is_estimate].reshape(int(is_estimate.sum()), -1, 2)
        alpha, marker_size = (0.45 if has_many_classes else None), (4 if has_many_classes or not is_wide else 6)
        styles = (~rows["outside"], _INSIDE_STYLE), (rows["outside"], _OUTSIDE_STYLE)
        for label, (has_style, style) in zip(self._region_labels(), styles, strict=True):
            estimates = {name: column[has_style & is_estimate] for name, column in rows.items()}
            delta, gamma, color = estimates["delta"], estimates["gamma"], style["color"]
            if self.settings["ellipses"]:
                shapes = list(outlines[has_style[is_estimate]])
                edge: dict[str, Any] = {"edgecolor": color, "facecolor": "none", "alpha": alpha, "zorder": 2}
                edge |= {"linewidth": 0.5 if has_many_classes else 0.9, "label": "" if self.has("intervals") else label}
                marks.append(Polygons(shapes, layer="ellipses", **edge))
                if not has_many_classes or style is _OUTSIDE_STYLE:
                    fill = {"facecolor": color, "edgecolor": "none", "alpha": fill_opacity, "zorder": 1.8}
                    marks.append(Polygons(shapes, layer="ellipses", name="fills", **fill))
            bar: dict[str, Any] = {"layer": "intervals", "label": label, "color": color, "alpha": alpha, "zorder": 3}
            bar |= {"linewidth": 0.4 if has_many_classes else 1.1, "key": {"linewidth": 1.2, "alpha": 1}}
            point = style | {"layer": "marks", "label": label, "markersize": marker_size, "key": {"markersize": 6}}
            marks += [
                Segments(estimates["delta_low"], estimates["delta_high"], gamma, gamma, **bar),
                Segments(delta, delta, estimates["gamma_low"], estimates["gamma_high"], **bar),
                Points(delta, gamma, name="estimates", zorder=4, **point),
            ]
        if totals["classes"] > 1:
            marks += _class_names({name: column[is_estimate] for name, column in rows.items()}, totals, size)
        return marks + (_side_labels(totals, size.font_size - 1.5) if is_wide else [])


def _side_labels(totals: Mapping[str, Any], font_size: float) -> list[Mark]:
    """The directions along the x-axis, and at the end of the line γ = 1 that is farther from (1, 1)."""
    style: dict[str, Any] = {"layer": "sides", "fontsize": font_size, "color": styling.MUTED_COLOR, "zorder": 3.5}
    is_left = totals["delta_low"] * totals["delta_high"] < 1
    x, horizontal = (0.01, "left") if is_left else (0.99, "right")
    beside_line = style | {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "ha": horizontal}
    below = style | {"xycoords": "axes fraction", "va": "bottom"}
    return [
        Text(0.01, 0.012, "← overpredicted", ha="left", **below),
        Text(0.99, 0.012, "underpredicted →", ha="right", **below),
        Text(x, 1, "↑ underconfident", xytext=(0, 3), va="bottom", **beside_line),
        Text(x, 1, "↓ overconfident", xytext=(0, -3), va="top", **beside_line),
    ]


def _class_names(rows: Mapping[str, Array], panel_row: Mapping[str, Any], panel_size: PanelSize) -> list[Mark]:
    """The name of each class near its estimate, where it is closest to it and overlaps no other name.

    A name that has no place beside its estimate is written farther away, with a line to it, unless there are many.
    """
    width, height = (styling.POINTS_PER_INCH * side for side in (panel_size.width, panel_size.height))
    size, names = panel_size.font_size - 1, list[Mark]()
    left, right = np.log(panel_row["delta_low"]), np.log(panel_row["delta_high"])
    # Positions of the estimates in points. Title, legend and labels will reduce the height to about 70 %, and names
    # must not overlap then.
    x = (rows["tau"] - left) / (right - left) * width
    gamma_range = panel_row["gamma_high"] - panel_row["gamma_low"]
    y = (rows["gamma"] - panel_row["gamma_low"]) / gamma_range * 0.7 * height
    mark_x, mark_y = -left / (right - left) * width, (1 - panel_row["gamma_low"]) / gamma_range * 0.7 * height
    # The mark of (1, 1) reaches 6 points from its center.
    occupied = [_Box(mark_x - 6, mark_y - 6, mark_x + 6, mark_y + 6)]
    distances = _NAME_DISTANCES if panel_row["classes"] <= _MAX_CLASSES_WITH_FILLS else _NAME_DISTANCES[:1]
    for i in np.argsort(-rows["statistic"], kind="stable"):
        name = styling.shorten_text(str(rows["class"][i]), 90, size)
        is_other = np.arange(len(x)) != i
        for distance, (dx, dy) in itertools.product(distances, _NAME_DIRECTIONS):
            box = _label_box(
                float(x[i]), float(y[i]), width=styling.text_width(name, size), height=1.2 * size,
                dx=distance * dx, dy=distance * dy,
            )  # fmt: skip
            if (
                not any(box.overlaps(other) for other in occupied)
                and _distances_from_box(box, x, y)[is_other].min(initial=np.inf) > _MIN_NAME_DISTANCE
                and box.left > 2
                and box.right < width - 2
            ):
                style: dict[str, Any] = {
                    "xytext": (distance * dx, distance * dy),
                    "textcoords": "offset points",
                    "ha": ("right", "center", "left")[dx + 1],
                    "va": ("top", "center", "bottom")[dy + 1],
                    "arrowprops": _LEADER_LINE_STYLE if distance > _NAME_DISTANCES[0] else None,
                }
                names.append(
                    Text(rows["delta"][i], rows["gamma"][i], name, layer="names", fontsize=size, zorder=6, **style)
                )
                occupied.append(box)
                break
    return names


class _Box(NamedTuple):
    """A rectangle; lengths are in points from the lower left corner of the axes."""

    left: float
    low: float
    right: float
    high: float

    def overlaps(self, other: _Box) -> bool:
        return not (
            self.right < other.left or other.right < self.left or self.high < other.low or other.high < self.low
        )


def _distances_from_box(box: _Box, x: Array, y: Array) -> Array:
    """Distance of each point (n,) from a box; 0 inside."""
    left, low, right, high = box
    return np.hypot(np.maximum(np.maximum(left - x, x - right), 0), np.maximum(np.maximum(low - y, y - high), 0))


# Sides of an estimate (right and up are positive), and points from it, in the order in which they are tried for its
# name.
_NAME_DIRECTIONS = ((1, 1), (-1, 1), (1, -1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
_NAME_DISTANCES = (5.0, 20.0, 35.0, 50.0)
_MIN_NAME_DISTANCE = 11.0  # smallest distance in points from an estimate to other names
_LEADER_LINE_STYLE: dict[str, Any] = {
    "arrowstyle": "-",
    "color": styling.TEXT_COLOR,
    "linewidth": 0.7,
    "shrinkA": 0,
    "shrinkB": 4,
}


def _label_box(x: float, y: float, *, width: float, height: float, dx: float, dy: float) -> _Box:
    """Return the box of a name that lies (dx, dy) from an estimate at (x, y), centered along an axis without offset."""
    left = x + dx + (np.sign(dx) - 1) * width / 2
    low = y + dy + (np.sign(dy) - 1) * height / 2
    return _Box(left, low, left + width, low + height)
