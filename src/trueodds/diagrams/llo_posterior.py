"""Posterior probability of calibration over a grid of shifts and slopes of the log odds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from trueodds.calibrators._glm.log_probabilities import MIN_PROB, MinProb, replacement_notes, resolve_min_prob
from trueodds.core.arithmetic import decreasing_order
from trueodds.core.errors import Note
from trueodds.core.settings import OR_SINGLE_VALUE, Probability, Range
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.marks import Line, Mark, PanelSize, Points, Text
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.llo_likelihood import LloLikelihood, format_posterior, select_weighted_rows
from trueodds.diagrams.odds_plane import OddsPlane, empty_panel
from trueodds.diagrams.recipe import Recipe, lens_name, panel_limit_notes
from trueodds.lenses.view import View, view_title

OUTER_POSTERIOR = 0.01  # the posterior whose contour determines the limits of the axes
_MARGIN = 0.06  # share of the range of τ and γ that the axes extend beyond the outermost contour
_MAX_ENLARGEMENT = 2.5  # maximum factor by which the axes are enlarged to include the identity


@dataclass(frozen=True)
class LloPosterior(Recipe):
    r"""Posterior probability of calibration as a function of shift δ and slope γ of the log odds.

    The diagram shows which recalibrations are plausible, whether the unchanged forecasts (1, 1) are among them, and
    how far the forecasts may be emboldened. It contains a map of the posterior probability, contours at the
    probabilities `posteriors`, the best fit, the boldest map on each contour (see the calibrator ``boldness``) and the
    identity (1, 1). If the identity lies far outside, a mark at the edge indicates its direction.

    Parameters
    ----------
    posteriors : sequence of float, default=(0.95, 0.9, 0.8)
        The posterior probabilities whose contours are drawn.
    prior : float, default=0.5
        The prior probability of calibration π.
    resolution : int, default=61
        The number of values of δ, and of γ, in the map.
    min_prob : float, default=1e-12
        Lower bound of the probabilities inside the logarithm. A note counts the probabilities below it.

    Notes
    -----
    With :math:`\mathrm{logit}\,q = \log\delta + \gamma\,\mathrm{logit}\,p` and :math:`F = -\log L`, the BIC
    approximation of the posterior probability is

    .. math:: P(\text{calibrated} \mid y, q) =
        \mathrm{logit}^{-1}\big[\log n + \mathrm{logit}\,\pi - (F(\delta, \gamma) - F_{\min})\big]

    Views: binary, one panel each on shared axes. Views whose unchanged forecasts are least probable come first, those
    without a finite best fit last. Only the first 12 views are drawn; for the others ``table`` contains the best fit
    and the identity (note TN245). Weights count as numbers of rows. More than 1,024 distinct scores are combined into
    1,024 groups of neighboring scores for the map and the contours; the boldest maps are then refined on all rows. If
    no finite δ and γ maximize the likelihood, the panel is empty (note TN251). Units: probability.

    Columns of ``table``: ``view kind level delta gamma posterior loglik``. ``kind`` is ``grid``, ``contour`` or
    ``boldest`` (both with the requested posterior as ``level``), ``best_fit`` or ``identity``.

    Cost: O(n log n), and resolution² passes over 1,024 groups: 1e6 rows take about 1.1 s.

    References
    ----------
    .. [1] Guthrie & Franck (2024), R package BRcal (plot_params).

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 0, 1, 0, 0, 1] * 10, [0.7, 0.3] * 40
    >>> table = to.draw(y, p, "llo_posterior", lens="positive", resolution=11).table
    >>> table["posterior"][table["kind"] == "boldest"].round(6).tolist()
    [0.95, 0.9, 0.8]
    """

    name: ClassVar[str] = "llo_posterior"
    posteriors: Annotated[Sequence[Probability], OR_SINGLE_VALUE] = (0.95, 0.9, 0.8)
    prior: Probability = 0.5
    resolution: Annotated[int, Range(2, 1000)] = 61
    min_prob: MinProb = MIN_PROB

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "posteriors", tuple(sorted(set(self.posteriors), reverse=True)))

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The map of each view that is drawn, the least probable first."""
        likelihoods = [LloLikelihood.from_view(view, self.min_prob, self.prior) for view in views]
        drops = [float(likelihood.log_likelihood_drop(_IDENTITY_THETA)) for likelihood in likelihoods]
        order = decreasing_order([likelihood.has_finite_maximum for likelihood in likelihoods], drops)
        views, likelihoods = tuple(views[i] for i in order), [likelihoods[i] for i in order]
        drawn_likelihoods = [likelihood for likelihood in likelihoods if likelihood.has_finite_maximum][:MAX_PANELS]
        low, high = _common_limits([_map_limits(likelihood) for likelihood in drawn_likelihoods])
        tables, notes = [], list[Note]()
        for i, (view, likelihood) in enumerate(zip(views, likelihoods, strict=True)):
            P, Y, _ = select_weighted_rows(view)
            notes += replacement_notes(P, Y, resolve_min_prob(view, self.min_prob))
            tables.append(self._view_columns(view.name, likelihood, low, high, notes, has_map=i < MAX_PANELS))
        rows = [
            self._panel_row(view, likelihood, low, high) for view, likelihood in zip(views, likelihoods, strict=True)
        ]
        table_content = "For the others the table contains only the best fit and the identity."
        notes += panel_limit_notes(len(views), LloPosteriorPlot.view_order, table_content)
        unique_notes = dict.fromkeys(notes)
        return self.build_diagram(LloPosteriorPlot, lens_name(views), tables, rows, self._settings, unique_notes)

    def _view_columns(
        self, name: str, likelihood: LloLikelihood, low: Array, high: Array, notes: list[Note], *, has_map: bool
    ) -> dict[str, Array]:
        """Map, contours and marks of one view; only the marks if it is not drawn. Adds the notes on it to `notes`."""
        if not likelihood.has_finite_maximum:
            text = (
                f"{name}: no finite shift and slope maximize the likelihood, because the scores separate the outcomes "
                "or are all equal. There is no map."
            )
            notes.append(Note("TN251", text))
            return _table_columns(name, [])
        marks = [
            _marked_point("best_fit", np.nan, likelihood.theta, likelihood),
            _marked_point("identity", np.nan, _IDENTITY_THETA, likelihood),
        ]
        if not has_map:
            return _table_columns(name, marks, likelihood)
        tau, gamma = (np.linspace(low[i], high[i], self.resolution) for i in (0, 1))
        grid = np.stack(np.meshgrid(tau, gamma), axis=-1).reshape(-1, 2)
        parts = [_TablePart("grid", np.nan, grid, likelihood.log_likelihood_drops(tau, gamma).ravel())]
        for level in self.posteriors:
            contour = likelihood.posterior_contour(level)
            if contour is None:
                text = (
                    f"With {likelihood.n:,.0f} rows the posterior probability of calibration cannot reach {level:g}:"
                    " its contour and its mark are omitted."
                )
                notes.append(Note("TN250", text))
                continue
            max_drop = np.log(likelihood.n / level * (1 - level) * self.prior / (1 - self.prior))
            parts.append(_TablePart("contour", level, contour, np.full(len(contour), max_drop)))
            boldest = likelihood.boldest_map(level, self.min_prob)
            parts.append(_marked_point("boldest", level, np.array([boldest.tau, boldest.gamma]), likelihood))
        return _table_columns(name, parts + marks, likelihood)

    def _panel_row(self, view: View, likelihood: LloLikelihood, low: Array, high: Array) -> dict[str, Any]:
        """The row of `panels` for one view, whose map spans `low` to `high` in tau and gamma."""
        identity_drop = likelihood.log_likelihood_drop(_IDENTITY_THETA)
        posterior_predicted = float(likelihood.posterior(identity_drop))
        posterior_of_fit = float(likelihood.posterior(np.zeros(())))
        title = view_title(view.name)
        is_identity_inside = bool((low <= _IDENTITY_THETA).all() and (high >= _IDENTITY_THETA).all())
        if likelihood.has_finite_maximum:
            aside = f"posterior {format_posterior(posterior_predicted).replace('under', '<').replace('over', '>')}"
            finding = (
                f"{title + ': c' if view.name.startswith('class:') else 'C'}alibrated with posterior probability "
                f"{format_posterior(posterior_predicted)}, and {format_posterior(posterior_of_fit)} after the best "
                f"fit (δ\u00a0=\u00a0{np.exp(likelihood.theta[0]):.3g}, γ\u00a0=\u00a0{likelihood.theta[1]:.3g})."
            )
        else:
            aside = "no finite fit"
            finding = f"{title}: no finite shift and slope maximize the likelihood, so there is no map."
        return {
            "view": view.name,
            "title": title,
            "aside": aside,
            "finding": finding,
            "n": view.n_rows,
            "weight": view.total,
            "posterior_predicted": posterior_predicted,
            "posterior_best_fit": posterior_of_fit,
            "finite": likelihood.has_finite_maximum,
            "identity_inside": is_identity_inside,
            "delta_low": float(np.exp(low[0])),
            "delta_high": float(np.exp(high[0])),
            "gamma_low": float(low[1]),
            "gamma_high": float(high[1]),
        }


_IDENTITY_THETA = np.array([0.0, 1.0])


def _map_limits(likelihood: LloLikelihood) -> tuple[Array, Array]:
    """Limits of the map in τ and γ: they include the outermost contour, and the identity if it is near."""
    contour = likelihood.posterior_contour(OUTER_POSTERIOR)
    if contour is None:  # very few rows: some standard errors instead
        contour = likelihood.posterior_contour(0.5 * float(likelihood.posterior(np.zeros(()))))
    assert contour is not None
    low, high = contour.min(axis=0), contour.max(axis=0)
    width = high - low
    limits_with_identity = np.minimum(low, _IDENTITY_THETA), np.maximum(high, _IDENTITY_THETA)
    if (limits_with_identity[1] - limits_with_identity[0] <= _MAX_ENLARGEMENT * width).all():
        low, high = limits_with_identity
    margin = _MARGIN * (high - low)
    return low - margin, high + margin


def _common_limits(limits_of_maps: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Limits in τ and γ that contain those of all maps; without a map, those of δ from 1/e to e and γ from 0 to 2."""
    if not limits_of_maps:
        return np.array([-1.0, 0.0]), np.array([1.0, 2.0])
    lows, highs = zip(*limits_of_maps, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


class _TablePart(NamedTuple):
    """Rows of the table of one kind."""

    kind: str
    level: float  # posterior probability of a contour or of the boldest map; NaN for other kinds
    theta: Array  # (m, 2) τ and γ
    drops: Array  # (m,) decrease of the log-likelihood from the best fit


def _marked_point(kind: str, level: float, theta: Array, likelihood: LloLikelihood) -> _TablePart:
    return _TablePart(kind, level, theta[None, :], likelihood.log_likelihood_drop(theta).reshape(1))


def _table_columns(name: str, parts: Sequence[_TablePart], likelihood: LloLikelihood | None = None) -> dict[str, Array]:
    """Concatenate parts into the columns of the table for the view `name`; without parts `likelihood` is None."""
    theta = np.concatenate([np.empty((0, 2)), *(part.theta for part in parts)])
    drops = np.concatenate([np.empty(0), *(part.drops for part in parts)])
    sizes = [len(part.drops) for part in parts]
    return {
        "view": np.full(len(drops), name, dtype=object),
        "kind": np.repeat(np.array([part.kind for part in parts], dtype=object), sizes),
        "level": np.repeat(np.array([part.level for part in parts], dtype=float), sizes),
        "delta": np.exp(theta[:, 0]),
        "gamma": theta[:, 1],
        "posterior": drops if likelihood is None else likelihood.posterior(drops),
        "loglik": drops if likelihood is None else -likelihood.min_loss - drops,
    }


_POSTERIOR_SHADES = ("#FFFFFF", "#E3EEF7", "#C4DCEE", styling.STRIP_COLOR)
_OPTIMUM_STYLE: dict[str, Any] = {"marker": "o", "color": styling.INSIDE_COLOR, "markersize": 7}
_IDENTITY_STYLE: dict[str, Any] = {"marker": "X", "color": styling.OUTSIDE_COLOR, "markersize": 9}
_BOLDEST_STYLE: dict[str, Any] = {"marker": "D", "color": styling.TEXT_COLOR, "markersize": 5}


class Shades(Mark):
    """Shades of the posterior probability z over a grid: `Shades(x, y, z)`, (k, k) each."""

    def draw(self, ax: Any) -> Iterable[Any]:
        from matplotlib.colors import LinearSegmentedColormap

        colormap = LinearSegmentedColormap.from_list("posterior", _POSTERIOR_SHADES)
        levels = np.arange(21) / 20
        return [ax.contourf(*self.coordinates, levels=levels, cmap=colormap, antialiased=False, zorder=0.5)]

    def legend_handle(self) -> Any:
        from matplotlib.patches import Patch

        return Patch(facecolor=_POSTERIOR_SHADES[-1])


class LloPosteriorPlot(OddsPlane):
    """The posterior probability of calibration: shades, contours, and marks of the best fit and other maps."""

    question = "Which shifts and slopes of the log odds are compatible with calibration?"
    layers = ("map", "contours", "marks")
    row_noun = "points"
    view_order = "least probable"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        """Without a grid, which the shades would cover."""
        super().set_axes(ax, panel, size)
        ax.grid(False)

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        """The shades, the contours, and the marked maps, the most important one on top."""
        rows, limits = self.rows(panel), self.panel_values(panel)
        if not limits["finite"]:
            return empty_panel("no finite shift\nand slope", size)
        resolution, is_grid = self.settings["resolution"], rows["kind"] == "grid"
        grid = (rows[name][is_grid].reshape(resolution, resolution) for name in ("delta", "gamma", "posterior"))
        marks: list[Mark] = [Shades(*grid, layer="map", label="posterior near 100\u00a0%"), *self.unchanged_lines()]
        scale = 1.0 if size.width > 2.4 else 0.7
        levels = self._levels_with_contour
        level_texts = ", ".join(f"{100 * level:.4g}" for level in levels) + "\u00a0%"
        line: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.2 * scale**2, "zorder": 2}
        for level in levels:
            contour = (rows["kind"] == "contour") & (rows["level"] == level)
            x, y = rows["delta"][contour], rows["gamma"][contour]
            marks.append(Line(x, y, layer="contours", name="contour", label=f"posterior {level_texts}", **line))

        def points(kind: str, label: str, style: dict[str, Any], zorder: float, **more: Any) -> Points:
            """The marked maps of this kind, inside the axes or at their edge."""
            is_kind = rows["kind"] == kind
            x = np.clip(rows["delta"][is_kind], limits["delta_low"], limits["delta_high"])
            y = np.clip(rows["gamma"][is_kind], limits["gamma_low"], limits["gamma_high"])
            marker = style | {"markersize": scale * style["markersize"], "markeredgecolor": "white", "zorder": zorder}
            return Points(x, y, layer="marks", label=label, name=kind, **(marker | more))

        is_inside = bool(limits["identity_inside"])
        boldest_label = "boldest on each contour" if len(levels) > 1 else f"boldest at {level_texts}"
        identity = points("identity", "unchanged (1, 1)", _IDENTITY_STYLE, 4.1, clip_on=is_inside)
        marks += [
            identity,
            points("best_fit", "best fit", _OPTIMUM_STYLE, 4.2),
            points("boldest", boldest_label, _BOLDEST_STYLE, 4.0),
        ]
        if not is_inside:
            marks.append(_pointer_text(identity, limits, size))
        return marks

    @property
    def _levels_with_contour(self) -> list[float]:
        """The posterior probabilities that some view attains."""
        attained = set(self.table["level"][self.table["kind"] == "contour"].tolist())
        return [level for level in self.settings["posteriors"] if level in attained]


def _pointer_text(identity: Points, limits: Mapping[str, Any], size: PanelSize) -> Text:
    """A text inside the axes beside the mark at their edge, which points to (1, 1) outside of them."""
    (x,), (y,) = identity.coordinates
    if x == limits["delta_high"]:
        horizontal, x_offset = "right", -7
    elif x == limits["delta_low"]:
        horizontal, x_offset = "left", 7
    else:
        horizontal, x_offset = "center", 0
    vertical, y_offset = ("bottom", 7) if y == limits["gamma_low"] else ("top", -7)
    style: dict[str, Any] = {"color": styling.OUTSIDE_COLOR, "fontsize": size.font_size - 1, "ha": horizontal}
    style |= {"va": vertical, "xytext": (x_offset, y_offset), "textcoords": "offset points"}
    return Text(x, y, "(1, 1) is outside", layer="marks", **style)
