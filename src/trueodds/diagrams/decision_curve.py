"""Decision curves: net benefit by threshold of one or several models, treating everyone and treating no one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from trueodds.core.arithmetic import decreasing_order, weighted_sum
from trueodds.core.errors import InputError, Note
from trueodds.core.results import Interval
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, Range
from trueodds.core.typing import Array
from trueodds.diagrams import model_strips_and_table
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import TALLY_NOTE, format_range, format_share, join_words
from trueodds.diagrams._style.marks import HLine, Line, Mark, PanelSize
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.model_results import (
    are_equal,
    legend_name,
    marks_thresholds,
    match_views,
    sentence_name,
)
from trueodds.diagrams.recipe import (
    IMPORTANCE_WEIGHT_EXEMPTION,
    BandDraws,
    Models,
    Recipe,
    lens_name,
    panel_limit_notes,
)
from trueodds.diagrams.table_columns import Columns, part_rows, select_part_of_model
from trueodds.estimators.threshold_scores import MIN_OUTCOMES, net_benefit, treat_all_net_benefit
from trueodds.lenses.base import Lens
from trueodds.lenses.effective_sample_size import effective_n, effective_sample_size
from trueodds.lenses.view import View, view_title
from trueodds.resampling.bootstrap import MAX_RESAMPLED_ROWS
from trueodds.resampling.draws import Bootstrap, FixedCells
from trueodds.resampling.intervals.method import interval_of_mean
from trueodds.resampling.intervals.percentile import jackknife_mean, percentile_interval

# Default thresholds are equally spaced from 0 to an end.
SCORE_QUANTILE = 0.99  # the end is at least this quantile of the predictions
DEFAULT_ENDS = (0.01, 0.02, *(i / 20 for i in range(1, 20)))  # the smallest one that is large enough
STEPS_PER_UNIT, MIN_STEPS = (100, 200, 500, 1000, 5000), 50  # the coarsest spacing with so many steps up to the end
ROUNDING_ERROR = 1e-12  # differences of net benefits up to this count as 0
STRIP_BINS = 40  # bins of the strip of predictions
# The y-axis shows negative net benefits at least, and at most, down to these shares of the height above 0.
MIN_DEPTH, MAX_DEPTH = 0.12, 0.4
LIMIT_COLUMNS = ("low", "high", "difference", "difference_low", "difference_high", "beyond")
COLUMN_NAMES = ("view", "model", "part", "threshold", "net_benefit", "treat_all", *LIMIT_COLUMNS, "share")


@dataclass(frozen=True)
class DecisionCurve(Recipe):
    r"""Decision curve: net benefit of treating above a threshold, compared with treating everyone and treating no one.

    The diagram shows for which thresholds decisions based on the predictions are better than the same decision for
    everyone. The threshold is the probability from which on a user treats: at t, treating 1/t − 1 rows without the
    event is as bad as not treating one with it. At a threshold, the strategy with the highest net benefit is best.

    Parameters
    ----------
    thresholds : int or sequence of float, optional
        The thresholds in [0, 1), or a number of equal steps. By default they reach from 0 to the 99 % quantile of the
        predictions, rounded up to a multiple of 5 % (1 % or 2 % if it is smaller), in 50 to 125 round steps.
    band : {"auto", "bootstrap"} or None, default="auto"
        ``"auto"`` draws confidence bands for one or two models, ``"bootstrap"`` for all. None draws no resamples.
    level : float, default=0.95
        Confidence level of the bands.
    resamples : int, default=2000
        The number of bootstrap resamples.

    Raises
    ------
    InputError
        TO203 for an invalid setting; TO205 for a joint view; TO705 for more than eight models.

    See Also
    --------
    murphy : The expected loss at every threshold, in which a lower curve is better.

    Notes
    -----
    The net benefit at the threshold t is that of the estimator ``net_benefit``,

    .. math:: \mathrm{NB}_t = \frac{\mathrm{TP}}{n} - \frac{\mathrm{FP}}{n} \frac{t}{1 - t}

    where rows with p ≥ t are treated. Treating no one has a net benefit of 0, and treating everyone
    :math:`\bar y - (1 - \bar y) t/(1 - t)`, which is cut off where it is far below 0.

    Limits are pointwise BCa intervals of resampled rows, or of resampled clusters if there are any: those of
    ``to.measure(preds, "net_benefit", threshold=t)``. For a tally, and for more than 200,000 independent rows, counts
    are resampled. The band ends where fewer than 5 events or 5 nonevents are treated, because resamples then
    underestimate the uncertainty. The finding states where the model is significantly better than both other
    strategies: where the intervals of the net benefit and of its difference to treating everyone are above 0. It does
    not adjust for the number of thresholds. With several models, ``to.compare(first, second, "net_benefit",
    threshold=t)`` tests the difference.

    Views: binary, one panel each. Weights are importance weights. Units: true positives per row; larger is better.

    Columns of ``table``: ``view model part threshold net_benefit treat_all low high difference difference_low
    difference_high beyond share``. ``part`` is ``curve`` (the net benefit with its limits, its difference to treating
    everyone, and ``beyond``: 1 if both differences are significantly above 0, −1 if one is below) or ``strip`` (share
    of rows with predictions from low to high). Entries that do not apply are NaN.

    Cost: O(n log n), and O(resamples · n) for a band.

    References
    ----------
    .. [1] Vickers & Elkin (2006). Medical Decision Making 26.
    .. [2] Vickers, Van Calster & Steyerberg (2016). BMJ 352, i6.

    Examples
    --------
    At a threshold of 0.2, a false positive costs a quarter of a true positive: 1/3 − 1/3 · 0.25.

    >>> import trueodds as to
    >>> diagram = to.draw([0, 0, 1], [0.1, 0.7, 0.9], "decision_curve", thresholds=[0.2], band=None)
    >>> diagram.table["net_benefit"][diagram.table["part"] == "curve"].round(4).tolist()
    [0.25]
    """

    name: ClassVar[str] = "decision_curve"
    accepts_several_models: ClassVar[bool] = True
    supports_clusters: ClassVar[bool] = True
    random_columns: ClassVar[tuple[str, ...]] = ("low", "high", "difference_low", "difference_high", "beyond")
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION | {
        "tally": "a row is treated if its exact score reaches the threshold, and a tally has the mean of a cell",
    }
    thresholds: Annotated[int, Range(2, 100_000)] | Sequence[Annotated[float, Range(0, 1, closed="left")]] | None = None
    band: Literal["auto", "bootstrap"] | None = "auto"
    level: Level = 0.95
    resamples: BandDraws = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds == ():
            problem = "thresholds must be numbers from 0 to below 1, or the number of steps."
            raise InputError("TO203", problem, "an empty sequence", "For instance thresholds=50 or [0.1, 0.2].")

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        return self._build_diagram({"": views}, {"": None}, rng)

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """The diagram of named models, with the clusters of their rows."""
        clusters = {name: data.cluster for name, data in models.items()}
        return self._build_diagram(match_views(models, lens, self.name), clusters, as_generator(rng))

    def _build_diagram(
        self,
        views_by_model: Mapping[str, tuple[View, ...]],
        clusters: Mapping[str, Array | None],
        rng: np.random.Generator,
    ) -> Diagram:
        """Compute the curves of all models and views, and the diagram; `clusters` holds those of each model's rows."""
        names = list(views_by_model)
        shows_bands = self.band == "bootstrap" or (self.band == "auto" and len(names) <= 2)
        first_views = views_by_model[names[0]]
        n_views = len(first_views)
        thresholds = self._resolve_thresholds([view for views in views_by_model.values() for view in views])
        curves_by_view = [
            {name: NetBenefitCurve(views[i], thresholds) for name, views in views_by_model.items()}
            for i in decreasing_order([float(weighted_sum(view.w, view.y) / view.total) for view in first_views])
        ]
        panels: list[list[Columns]] = []
        tables: list[Columns] = []
        notes: list[Note] = []
        for i, curves in enumerate(curves_by_view):
            panels.append([])
            for name, curve in curves.items():
                has_limits = shows_bands and i < MAX_PANELS and len(curve.view) > 1
                limits = curve.limits(clusters[name], self.level, self.resamples, rng) if has_limits else None
                panels[-1].append(_curve_rows(name, curve, limits))
            tables += [*panels[-1], *(_strip_rows(name, curve) for name, curve in curves.items())]
            if not are_equal([curve.event_rate for curve in curves.values()]):
                text = "The models have different outcomes: the line of treating all is for the first model."
                notes.append(Note("TN263", text))
        limits_of_axes = _axis_limits(thresholds, panels[:MAX_PANELS])
        rows = [
            self._panel_row(curves, curve_rows) | limits_of_axes
            for curves, curve_rows in zip(curves_by_view, panels, strict=True)
        ]
        table_content = "The table contains all of them, but bands only of those drawn."
        notes += panel_limit_notes(n_views, DecisionCurveDiagram.view_order, table_content)
        if not all(view.is_rows for views in views_by_model.values() for view in views):
            notes.append(TALLY_NOTE)
        thresholds_setting = list(self.thresholds) if isinstance(self.thresholds, Sequence) else self.thresholds
        settings = self._settings | {"thresholds": thresholds_setting, "models": names, "banded": shows_bands}
        return self.build_diagram(
            DecisionCurveDiagram, lens_name(first_views), tables, rows, settings, dict.fromkeys(notes)
        )

    def _resolve_thresholds(self, views: Sequence[View]) -> Array:
        """The increasing thresholds (t,): those of the setting, or equally spaced ones that suit all views."""
        if isinstance(self.thresholds, Sequence):
            return np.unique(np.asarray(self.thresholds, dtype=np.float64))
        quantile = max(_score_quantile(view) for view in views)
        end = next((end for end in DEFAULT_ENDS if end >= quantile), DEFAULT_ENDS[-1])
        # Integers are divided only once, so that the threshold 0.3 is the float that "0.3" parses to, and a score of
        # 0.3 equals it.
        if self.thresholds is not None:
            return np.arange(self.thresholds + 1) * round(100 * end) / (100 * self.thresholds)
        steps_per_unit = next(steps for steps in STEPS_PER_UNIT if round(steps * end) >= MIN_STEPS)
        return np.arange(round(steps_per_unit * end) + 1) / steps_per_unit

    def _panel_row(self, curves: Mapping[str, NetBenefitCurve], tables: Sequence[Columns]) -> dict[str, Any]:
        names, first_curve = list(curves), next(iter(curves.values()))
        is_single = len(names) == 1
        return {
            "view": first_curve.view.name,
            "title": view_title(first_curve.view.name),
            "aside": describe_share_of_thresholds(tables[0]) if is_single else f"{len(names)} models",
            "finding": (
                describe_one_model(names[0], tables[0], self.level)
                if is_single
                else describe_several_models(names, tables)
            ),
            "n": max(curve.view.n_rows for curve in curves.values()),
            "event_rate": first_curve.event_rate,
        }


def _axis_limits(thresholds: Array, panels: Sequence[Sequence[Columns]]) -> dict[str, float]:
    tables = [table for tables in panels for table in tables]
    highest = max(float(np.nanmax([*table["net_benefit"], *table["high"], table["treat_all"][0]])) for table in tables)
    lowest = min(float(np.nanmin([*table["net_benefit"], *table["low"]])) for table in tables)
    high = 1.05 * max(highest, 1e-6)
    return {
        "x_low": float(thresholds[0]),
        "x_high": float(thresholds[-1]),
        "y_low": float(np.clip(1.05 * lowest, -MAX_DEPTH * high, -MIN_DEPTH * high)),
        "y_high": high,
    }


def _score_quantile(view: View) -> float:
    """The weighted quantile of the predictions up to which default thresholds reach."""
    order = np.argsort(view.p, kind="stable")
    cumulative_share = np.cumsum(view.w[order]) / view.w.sum()
    rank = int(np.searchsorted(cumulative_share, SCORE_QUANTILE - 1e-12))  # 1e-12: a share may be rounded down
    return float(view.p[order[min(rank, len(order) - 1)]])


def _curve_rows(name: str, curve: NetBenefitCurve, limits: tuple[Limits, Limits] | None) -> Columns:
    """The net benefit by threshold, with its limits and its difference to treating everyone."""
    columns: dict[str, Any] = {
        "view": curve.view.name,
        "model": name,
        "part": "curve",
        "threshold": curve.thresholds,
        "net_benefit": curve.values,
        "treat_all": curve.treat_all,
        "difference": curve.values - curve.treat_all,
    }
    if limits is not None:
        limits_to_none, limits_to_all = limits
        columns |= {"low": limits_to_none.low, "high": limits_to_none.high}
        columns |= {"difference_low": limits_to_all.low, "difference_high": limits_to_all.high}
        is_better = (limits_to_none.low > ROUNDING_ERROR) & (limits_to_all.low > ROUNDING_ERROR)
        is_worse = (limits_to_none.high < -ROUNDING_ERROR) | (limits_to_all.high < -ROUNDING_ERROR)
        columns["beyond"] = is_better.astype(float) - is_worse
    return part_rows(COLUMN_NAMES, columns)


def _strip_rows(name: str, curve: NetBenefitCurve) -> Columns:
    """The histogram of the predictions between the first and the last threshold."""
    low, high = (curve.thresholds[0], curve.thresholds[-1]) if len(curve.thresholds) > 1 else (0.0, 1.0)
    edges = low + (high - low) * np.arange(STRIP_BINS + 1) / STRIP_BINS
    # Bins are closed on the right, the first on both sides. Numbers 0 and STRIP_BINS + 1 are those of predictions below
    # the first and above the last edge, which are not drawn.
    bin_index = np.searchsorted(edges, curve.view.p.astype(np.float64, copy=False), "left")
    bin_index[curve.view.p == low] = 1
    share = np.bincount(bin_index, curve.view.w, STRIP_BINS + 2)[1:-1] / curve.view.w.sum()
    occupied = share > 0
    columns = {"low": edges[:-1][occupied], "high": edges[1:][occupied], "share": share[occupied]}
    return part_rows(COLUMN_NAMES, {"view": curve.view.name, "model": name, "part": "strip", **columns})


MIN_RELATIVE_WIDTH = 0.2  # ranges of thresholds narrower than this share of the widest range are not named
MAX_RANGES = 2  # largest number of ranges of thresholds that a sentence names: the widest ones
TIE_TOLERANCE = 1e-12  # net benefits whose difference is smaller count as equal


def threshold_ranges(thresholds: Array, mask: Array) -> list[tuple[float, float]]:
    """The ranges of successive thresholds at which a condition holds.

    >>> threshold_ranges(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, True]))
    [(0.1, 0.2), (0.4, 0.4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(mask).astype(int), [0]])))
    return [(float(thresholds[a]), float(thresholds[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def format_ranges(thresholds: Array, mask: Array) -> str:
    """The widest ranges of thresholds at which a condition holds, as a phrase; empty if there are none.

    >>> format_ranges(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, True])).replace("\u00a0", " ")
    'mainly from 10 % to 20 %'
    """
    ranges = threshold_ranges(thresholds, mask)
    if not ranges:
        return ""
    by_width = sorted(ranges, key=lambda ends: ends[0] - ends[1])
    min_width = MIN_RELATIVE_WIDTH * (by_width[0][1] - by_width[0][0])
    shown = sorted(ends for ends in by_width[:MAX_RANGES] if ends[1] - ends[0] >= min_width)
    return f"{'mainly ' if len(shown) < len(ranges) else ''}{join_words([format_range(*ends) for ends in shown])}"


def describe_one_model(name: str, curve: Mapping[str, Array], level: float) -> str:
    """Describe where the net benefit of a model exceeds that of both default strategies, and where significantly."""
    x, max_default = curve["threshold"], np.maximum(curve["treat_all"], 0.0)
    model = name or "The model"
    is_higher = curve["net_benefit"] > max_default + TIE_TOLERANCE
    ranges_higher = format_ranges(x, is_higher)
    text = f"{model} has a higher net benefit than treating all and treating none {ranges_higher or 'at no threshold'}"
    if np.isnan(curve["low"]).all():
        return f"{text}."
    ranges_significantly_higher = format_ranges(x, curve["beyond"] > 0)
    if ranges_significantly_higher and ranges_higher:
        text += f"; significantly ({100 * level:.4g}\u00a0%, pointwise) {ranges_significantly_higher}"
    elif ranges_higher:
        text += "; nowhere significantly"
    ranges_significantly_lower = format_ranges(x, curve["beyond"] < 0)
    if ranges_significantly_lower:
        return f"{text}. Significantly lower than one of them {ranges_significantly_lower}."
    return f"{text}."


def describe_several_models(names: Sequence[str], curves: Sequence[Mapping[str, Array]]) -> str:
    """Describe the share of the thresholds at which each model, or a default strategy, has the highest net benefit."""
    default = np.maximum(curves[0]["treat_all"], 0.0)
    values = np.stack([default, *(curve["net_benefit"] for curve in curves)])
    is_highest = values >= values.max(axis=0) - TIE_TOLERANCE
    # Where treating all or none is as good, no model is needed.
    is_highest[1:] &= ~is_highest[0]
    n_ties = is_highest.sum(axis=0)
    shares = (is_highest / n_ties).mean(axis=1)
    labels = ["treating all or none", *map(sentence_name, names)]
    order = sorted(range(len(labels)), key=lambda i: (-round(float(shares[i]), 12), labels[i]))
    phrases = [f"{labels[i]} ({100 * shares[i]:.0f}\u00a0%)" for i in order if shares[i] >= 0.005]
    phrases[0] = phrases[0].replace(")", " of the thresholds)")
    return f"Highest net benefit: {join_words(phrases)}."


def describe_share_of_thresholds(curve: Mapping[str, Array]) -> str:
    """Name the share of thresholds at which the model is better than both default strategies, in a short phrase."""
    is_higher = curve["net_benefit"] > np.maximum(curve["treat_all"], 0.0) + TIE_TOLERANCE
    return f"higher at {format_share(float(is_higher.mean()))} of thresholds"


ALL_STYLE: dict[str, Any] = {"color": styling.MUTED_COLOR, "linewidth": 1.3, "linestyle": (0, (5, 1.6)), "zorder": 2.2}
NONE_STYLE: dict[str, Any] = {"color": styling.TEXT_COLOR, "linewidth": 1.1, "zorder": 2}
X_MARGIN = 0.015  # share of the width on either side of the thresholds


class DecisionCurveDiagram(model_strips_and_table.DiagramWithStrips):
    """Net benefit of each model with its band, the two default strategies, and strips of the predictions."""

    labels = "Threshold probability", "Net benefit"
    layers = ("band", "curves", "all", "none", "strip")
    row_noun = "table rows"
    view_order = "highest event rate"
    figure_size = (6.4, 4.8)

    def default_title(self) -> str:
        if len(self.names) == 1:
            return "Is treating by the model better than treating all or none?"
        return "Which model has the higher net benefit, and at which thresholds?"

    def set_axes(self, ax: Any, panel: int, size: PanelSize) -> None:
        x_low, x_high, y_low, y_high = (
            float(self.panels[name][panel]) for name in ("x_low", "x_high", "y_low", "y_high")
        )
        styling.style_axes(ax, size.font_size)
        _set_threshold_axis(ax, x_low, x_high, size.width)
        styling.set_limits_above_strip(ax, y_low, y_high, self.strip_height)
        ax.set_yticks(styling.round_ticks(ax, y_low, y_high, (7, 4, 2), [1, 2, 2.5, 5, 10]))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}".replace("-", "−"))

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows = self.rows(panel)
        curves = [select_part_of_model(rows, name, "curve") for name in self.names]
        level = f"{self.level_text} {'pointwise ' if self.has_long_labels else ''}band"
        has_markers = marks_thresholds(self.settings["thresholds"])
        marks: list[Mark] = []
        for i, curve in enumerate(curves):
            line = model_strips_and_table.model_line(i, size, has_markers=has_markers)
            name = legend_name(self.names[i])
            marks.append(Line(curve["threshold"], curve["net_benefit"], layer="curves", label=name, **line))
        if self.settings["banded"]:
            for i, curve in enumerate(curves):
                limits = curve["threshold"], curve["low"], curve["high"]
                marks.append(self.model_band(i, *limits, label=level, has_markers=has_markers))
        marks += [
            Line(curves[0]["threshold"], curves[0]["treat_all"], layer="all", label="treat all", **ALL_STYLE),
            HLine(0.0, layer="none", label="treat none", **NONE_STYLE),
        ]
        return marks + self.strips([select_part_of_model(rows, name, "strip") for name in self.names])


def _set_threshold_axis(ax: Any, low: float, high: float, width: float) -> None:
    """Set up an axis of thresholds along x, with a few round ticks in percent."""
    from matplotlib.ticker import MaxNLocator

    margin = X_MARGIN * max(high - low, 0.01)
    ax.set_xlim(low - margin, high + margin)
    locator = MaxNLocator(8 if width > 4.5 else 5 if width > 2.2 else 2, steps=[1, 2, 2.5, 5, 10])
    ticks = [float(tick) for tick in locator.tick_values(low, high) if low - 1e-9 <= tick <= high + 1e-9]
    ax.set_xticks(ticks, [f"{100 * tick:.3g}\u00a0%" for tick in ticks])
    if width <= 2.2:  # a panel of a grid
        styling.align_outer_labels(ax)


class Limits(NamedTuple):
    """Confidence limits at each threshold, (t,) each."""

    low: Array
    high: Array


class NetBenefitCurve:
    """Net benefit of a binary view at increasing thresholds (t,).

    A row is treated at all thresholds that its prediction reaches. Rows treated at equally many thresholds are summed.

    Attributes
    ----------
    n_treating : ndarray (n,)
        The number of thresholds at which each row is treated, 0 to t.
    w, wy : ndarray (t + 1,)
        The sums Σw and Σwy of the rows that are treated at 0, 1, … t thresholds.
    """

    def __init__(self, view: View, thresholds: Array) -> None:
        self.view, self.thresholds = view, thresholds
        self.n_treating = np.searchsorted(thresholds, view.p.astype(np.float64, copy=False), "right")
        size = len(thresholds) + 1
        self.w = np.bincount(self.n_treating, view.w, size)
        self.wy = np.bincount(self.n_treating, view.w * view.y, size)

    @property
    def event_rate(self) -> float:
        """The event rate, which is the net benefit of a perfect model."""
        return float(self.wy.sum() / self.w.sum())

    @property
    def values(self) -> Array:
        return _net_benefit_of_sums(self.w, self.wy, self.thresholds)

    @property
    def treat_all(self) -> Array:
        """Net benefit of treating everyone at each threshold."""
        return treat_all_net_benefit(self.event_rate, self.thresholds)

    def has_enough_outcomes(self, *, treated: bool) -> Array:
        """Whether enough events and nonevents for an interval are treated, or are not treated, at each threshold."""
        rows_per_weight = self.view.n_rows / self.w.sum()
        counts = []
        for sums in (self.wy, self.w - self.wy):
            n_treated = _sum_treated(sums) * rows_per_weight
            counts.append(n_treated if treated else sums.sum() * rows_per_weight - n_treated)
        return np.minimum(*counts) >= MIN_OUTCOMES * (1 - 1e-9)

    def limits(
        self, cluster: Array | None, level: float, resamples: int, rng: np.random.Generator
    ) -> tuple[Limits, Limits]:
        """Limits of the net benefit, and of its difference to treating everyone.

        They are limits from resampled rows or clusters, as those of `net_benefit`. For a tally, and for more than
        200,000 independent rows, they are percentiles of resampled counts. The limits of the net benefit are NaN at
        thresholds at which fewer than 5 events or 5 nonevents are treated, and those of the difference where fewer are
        not treated.
        """
        if self.view.is_rows and (cluster is not None or len(self.view) <= MAX_RESAMPLED_ROWS):
            intervals = self._intervals_of_means(cluster, level, resamples, rng)
        else:
            w, wy = self._resample_counts(resamples, rng)
            intervals = [
                [percentile_interval(draws_at_threshold, level) for draws_at_threshold in draws.T]
                for draws in self._benefits_of_draws(w, wy)
            ]
        limits = []
        for intervals_of_quantity, treated in zip(intervals, (True, False), strict=True):
            bounds = np.array([(interval.low, interval.high) for interval in intervals_of_quantity])
            bounds[~self.has_enough_outcomes(treated=treated)] = np.nan
            limits.append(Limits(*bounds.T))
        return limits[0], limits[1]

    def _benefits_of_draws(self, w: Array, wy: Array) -> tuple[Array, Array]:
        """Net benefit and its difference to treating everyone, (resamples, t) each, from resampled Σw and Σwy."""
        event_rates = (wy.sum(axis=1) / w.sum(axis=1))[:, None]
        draws = _net_benefit_of_sums(w, wy, self.thresholds)
        return draws, draws - treat_all_net_benefit(event_rates, self.thresholds)

    def _intervals_of_means(
        self, cluster: Array | None, level: float, resamples: int, rng: np.random.Generator
    ) -> list[list[Interval]]:
        """Intervals at each threshold, of the net benefit and of its difference to treating everyone."""
        draws, difference_draws = self._benefits_of_draws(*self._resample_units(cluster, resamples, rng))
        clusters = None if cluster is None else effective_sample_size([self.view], cluster)
        unit = np.arange(len(self.view)) if cluster is None else cluster
        y = self.view.y.astype(np.float64, copy=False)
        values, differences = self.values, self.values - self.treat_all
        intervals: list[Interval] = []
        difference_intervals: list[Interval] = []
        for j, threshold in enumerate(self.thresholds):
            treated = self.n_treating > j
            benefit_of_rows = net_benefit(treated * y, treated * (1 - y), threshold)
            jackknife = jackknife_mean(benefit_of_rows, self.view.w, unit)
            intervals.append(interval_of_mean(values[j], draws[:, j], jackknife, level, clusters))
            difference_of_rows = benefit_of_rows - treat_all_net_benefit(y, threshold)
            jackknife = jackknife_mean(difference_of_rows, self.view.w, unit)
            difference_intervals.append(
                interval_of_mean(differences[j], difference_draws[:, j], jackknife, level, clusters)
            )
        return [intervals, difference_intervals]

    def _resample_units(self, cluster: Array | None, resamples: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Σw and Σwy of resampled rows or clusters by number of thresholds, (resamples, t + 1) each."""
        cells = FixedCells(self.n_treating, len(self.w))

        def drawn_sums(_v: int, w: Array, _wp: Array, wy: Array) -> tuple[Array, Array]:
            """The sums of some resamples; one whose rows all have weight 0 is left out."""
            has_weight = w.sum(axis=1) > 0
            return w[has_weight], wy[has_weight]

        (blocks,) = Bootstrap(len(self.view), cluster, resamples, rng).map_cells([(self.view, cells)], drawn_sums)
        w_blocks, wy_blocks = zip(*blocks, strict=True)
        return np.concatenate(w_blocks), np.concatenate(wy_blocks)

    def _resample_counts(self, resamples: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """As `_resample_units`, from multinomial counts of events and nonevents with the effective sample size."""
        size = len(self.w)
        share = np.clip(np.concatenate([self.wy, self.w - self.wy]), 0.0, None)
        n = max(1, round(effective_n(self.view)))
        counts = rng.multinomial(n, share / share.sum(), size=resamples).astype(np.float64)
        return counts[:, :size] + counts[:, size:], counts[:, :size]


def _net_benefit_of_sums(w: Array, wy: Array, thresholds: Array) -> Array:
    """Net benefit at each threshold, (…, t), from Σw and Σwy by number of thresholds, (…, t + 1)."""
    total = w.sum(axis=-1, keepdims=True)
    treated, true_positives = _sum_treated(w) / total, _sum_treated(wy) / total
    return net_benefit(true_positives, treated - true_positives, thresholds)


def _sum_treated(sums: Array) -> Array:
    """Sum over the rows treated at each threshold, (…, t), from sums by number of thresholds, (…, t + 1).

    The rows treated at threshold j are those that are treated at more than j thresholds.

    >>> _sum_treated(np.array([1.0, 10.0, 100.0])).tolist()
    [110.0, 100.0]
    """
    return np.asarray(np.cumsum(sums[..., ::-1], axis=-1)[..., -2::-1])
