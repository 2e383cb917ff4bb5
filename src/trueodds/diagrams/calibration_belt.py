"""The GiViTI calibration belt: confidence regions of a polynomial calibration curve in the log odds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from trueodds.binning.uniform import Uniform
from trueodds.core.arithmetic import decreasing_order, weighted_sum
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.settings import OR_SINGLE_VALUE, Integer, Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import styling
from trueodds.diagrams._style.formatting import (
    TALLY_NOTE,
    bias_words,
    format_level,
    format_pvalue,
    format_range,
    join_words,
    merge_notes,
)
from trueodds.diagrams._style.marks import Band, Line, Mark, PanelSize, Points, Segments
from trueodds.diagrams._style.reliability_plots import UnitSquarePlot
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import BinnedView
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, Recipe, lens_name, panel_limit_notes
from trueodds.diagrams.table_columns import part_rows, select_part, stack_tables
from trueodds.estimators._glm.logits import Logits, MinProb
from trueodds.hypotests._glm.calibration_belt import Belt, condense_view, fit_belt
from trueodds.hypotests.giviti import GiViTI
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.lenses.view import View, view_title

CURVE_POINTS = 51  # points evenly spaced in p, and as many in its log odds
GRID_CURVE_POINTS = 26  # the same for several panels
STRIP_BINS = 20  # bins of the strip; their edges are edges of a tally's cells too
# From the widest band inward; distinct in gray. There are at most as many bands.
BAND_SHADES = ("#E1E6EB", "#BCC6D0", "#96A3B0", "#73818F")
TEST_ALPHA = 0.05  # a smaller p-value is reported as a rejection even if the band contains the diagonal


@dataclass(frozen=True)
class CalibrationBelt(Recipe):
    r"""GiViTI calibration belt: the calibration curves that the data do not reject, with the fitted curve.

    The curve is a polynomial of the predicted log odds. Where the widest band excludes the diagonal, the model is
    miscalibrated.

    Parameters
    ----------
    levels : sequence of float, default=(0.8, 0.95)
        Levels of one to four nested bands. `level=` gives a single one.
    fitted : bool, default=False
        Whether the probabilities come from a logistic model that was fitted on these rows (givitiR's `internal`).
    max_degree : int, default=4
        Largest degree that forward selection may choose.
    min_prob : float, default=0.0
        Lower bound for probabilities, and 1 − min_prob the upper one; a note counts the rows. 0 means no clipping.

    Raises
    ------
    InputError
        TO203 for invalid settings. TO205 for a joint view, for a probability of 0 or 1 without `min_prob`, and if
        `fitted` leaves nothing to bound.

    See Also
    --------
    giviti : The test of the same polynomial.

    Notes
    -----
    Forward selection chooses the degree M (see the test `giviti`). At each p the band of a level spans the values of

    .. math:: \mathrm{expit}\sum_{j \le M} b_j (\mathrm{logit}\,p)^j \quad\text{for all } b \text{ with}\quad
        2[\ell(\hat b) - \ell(b)] \le F_M^{-1}(\text{level}),

    where :math:`F_M` is the null distribution of the test statistic given M. The band is simultaneous: it contains the
    whole curve with that probability. The test may reject although the band contains the whole diagonal. The bands span
    the range of the predictions.

    Views: binary, one panel each, ordered by p-value; bands only for the panels that are drawn. Rows, or cells of a
    tally at their mean prediction. With more than 1,024 distinct scores, curve and test use as many cells
    (`condense_view`). In checks on 10,000 rows, bounds and statistic agreed with those of all rows to 1e-9 and 1e-8,
    and on 3,000 rows with weights of 1 or 5 to 2e-6 and 1e-4.

    Units: probability. Cost: O(n), and about 0.1 s per panel: 1e6 rows take about 0.6 s.

    Columns of `table`: view part level side x_low x_high rate low high. The values of `part` are `curve` (the fitted
    rate at x_low = x_high), `belt` (its limits low and high there, at a level), `range` (the predictions from x_low to
    x_high at which the band of that level is `above` or `below` the diagonal) and `strip` (share of rows, in rate).
    Columns that a part does not use are NaN. `panels` holds degree, statistic and p-value; `ranges()` returns the
    ranges.

    References
    ----------
    .. [1] Nattino, Finazzi & Bertolini (2014, 2016).
    .. [2] R package givitiR.

    Examples
    --------
    >>> import numpy as np
    >>> import trueodds as to
    >>> p = np.tile(np.linspace(0.1, 0.9, 9), 40)
    >>> diagram = to.draw(np.repeat(np.arange(40), 9) < 40 * p**2, p, "calibration_belt")
    >>> diagram.finding.replace("\u00a0", " ")
    'The 95 % band is below the diagonal (overpredicts) from 10 % to 88 % (p < 0.001).'
    """

    name: ClassVar[str] = "calibration_belt"
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    levels: Annotated[Sequence[Level], OR_SINGLE_VALUE] = (0.8, 0.95)
    fitted: bool = False
    max_degree: Integer = 4
    min_prob: MinProb = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(set(self.levels)) <= len(BAND_SHADES):
            raise InputError(
                "TO203",
                "levels must hold one to four levels.",
                describe(self.levels),
                "For instance levels=[0.8, 0.95].",
            )
        object.__setattr__(self, "levels", tuple(sorted({float(level) for level in self.levels})))
        self._calibration_test()

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """Names of the settings that `draw` may pass; `level` is a single one of `levels`."""
        return ("level", *(field.name for field in fields(cls)))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> Any:
        """Build the recipe, with `level` instead of `levels` if it is given."""
        if "level" in settings:
            if "levels" in settings:
                got = f"⟨level={describe(settings['level'])}⟩, levels={describe(settings['levels'])}"
                raise InputError("TO203", "level and levels exclude each other.", got, "Pass one of them.")
            settings["levels"] = (settings.pop("level"),)
        return cls(**settings)

    def _calibration_test(self) -> GiViTI:
        return GiViTI(fitted=self.fitted, max_degree=self.max_degree, min_prob=self.min_prob)

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        all_logits = [Logits.from_view(view, self.min_prob, self.name) for view in views]
        condensed_views = [condense_view(view, logits) for view, logits in zip(views, all_logits, strict=True)]
        results = [self._calibration_test().evaluate(view) for view in condensed_views]
        order = decreasing_order([-result.pvalue for result in results], [result.statistic for result in results])
        tables, panels, notes_by_view, max_share = [], [], list[tuple[str, list[Note]]](), 0.0
        for rank, i in enumerate(order):
            view, belt = views[i], None
            warnings = [Note("TN260", warning) for warning in results[i].asymptotic_warnings]
            notes_by_view.append((view.name, [*all_logits[i].notes(view, self.min_prob), *results[i].notes, *warnings]))
            if rank < MAX_PANELS:
                belt = self._fit_belt(condensed_views[i], CURVE_POINTS if len(views) == 1 else GRID_CURVE_POINTS)
                strip = BinnedView(view, Uniform(STRIP_BINS)).columns
                max_share = max(max_share, float(strip["share"].max()))
                tables.append(_table_rows(view.name, belt, strip))
            panels.append(_panel_row(view, results[i], belt, len(views)))
        for panel in panels:
            panel["tallest"] = max_share
        notes = *merge_notes(notes_by_view), *_notes_on_views(views)
        return self.build_diagram(CalibrationBeltPlot, lens_name(views), tables, panels, self._settings, notes)

    def _fit_belt(self, view: View, n_points: int) -> Belt:
        """Fit the belt at `n_points` probabilities evenly spaced in p, and as many in the log odds."""
        p = view.p[view.w > 0]
        low, high = float(p.min()), float(p.max())
        even_log_odds = expit(np.linspace(logit(low), logit(high), n_points))[1:-1]
        points = np.sort(np.concatenate([np.linspace(low, high, n_points), even_log_odds]))
        points = points[np.diff(points, prepend=-1.0) > 1e-9 * points]  # drops points that are equal up to rounding
        return fit_belt(view, self.levels, points, fitted=self.fitted, max_degree=self.max_degree)


def _panel_row(view: View, result: ViewResult, belt: Belt | None, n_views: int) -> dict[str, Any]:
    """Return the row of `panels` for one view, without `tallest`; `belt` is None if the view is not drawn."""
    title = view_title(view.name)
    text = "" if belt is None else _describe_finding(view.name, result.pvalue, belt)
    return {
        "view": view.name,
        "title": title,
        "aside": format_pvalue(result.pvalue),
        "finding": f"{title}: {text[0].lower()}{text[1:]}" if n_views > 1 and text else text,
        "n": view.n_rows,
        "weight": view.total,
        "statistic": result.statistic,
        "pvalue": result.pvalue,
        "degree": int(result.parts["curve"]["degree"]),
        "effect": result.effect,
    }


def _notes_on_views(views: tuple[View, ...]) -> list[Note]:
    notes = []
    panels_content = "Only they have bands; panels holds the tests of all."
    notes += panel_limit_notes(len(views), CalibrationBeltPlot.view_order, panels_content)
    if any(not np.isclose(view.sums("wyy").sum(), weighted_sum(view.w, view.y), rtol=1e-9) for view in views):
        text = "Outcomes are shares of votes, which vary less than single labels: band and p-value are conservative."
        notes.append(Note("TN262", text))
    if not all(view.is_rows for view in views):
        notes.append(TALLY_NOTE)
    return notes


def _describe_finding(name: str, pvalue: float, belt: Belt) -> str:
    """Return the sentence on where the widest band excludes the diagonal; `name` is that of the view."""
    band = f"The {100 * belt.levels[-1]:.4g}\u00a0% band"
    segments_outside = [segment for segment in belt.segments if segment.level == belt.levels[-1]]
    if not segments_outside:
        contrast = ", but the test rejects calibration" if pvalue < TEST_ALPHA else ""
        return f"{band} contains the whole diagonal{contrast} ({format_pvalue(pvalue)})."
    underestimates, overestimates = bias_words(name)
    phrases: list[str] = []
    for side, bias in (("above", underestimates), ("below", overestimates)):
        ranges = [format_range(segment.start, segment.stop) for segment in segments_outside if segment.side == side]
        if ranges:
            phrases.append(f"{side} {'it' if phrases else 'the diagonal'} ({bias}) {join_words(ranges)}")
    return f"{band} is {join_words(phrases)} ({format_pvalue(pvalue)})."


COLUMN_NAMES = ("view", "part", "level", "side", "x_low", "x_high", "rate", "low", "high")


def _table_rows(name: str, belt: Belt, strip: dict[str, Array]) -> dict[str, Array]:
    """Return the rows of `table` for one view: curve, bands, ranges, and the histogram `strip` of its scores."""
    belt_table = belt.table
    points = {"x_low": belt_table["p"], "x_high": belt_table["p"]}
    parts: list[dict[str, Any]] = [{"part": "curve", **points, "rate": belt_table["curve"]}]
    for level in belt.levels:
        limits = {"low": belt_table[f"low_{level:g}"], "high": belt_table[f"high_{level:g}"]}
        parts.append({"part": "belt", "level": level, **points, **limits})
    for segment in belt.segments:
        ends = {"x_low": segment.start, "x_high": segment.stop}
        parts.append({"part": "range", "level": segment.level, "side": segment.side, **ends})
    parts.append({"part": "strip", "x_low": strip["low"], "x_high": strip["high"], "rate": strip["share"]})
    return stack_tables([part_rows(COLUMN_NAMES, {"view": name, "side": ""} | part) for part in parts])


OUTLINE_COLOR = "#75828F"  # outline of the widest band, which keeps it visible where it is hardly wider than the next


class CalibrationBeltPlot(UnitSquarePlot):
    """The calibration belt: nested bands, curve, diagonal and the strip of predictions."""

    layers = ("belt", "curve", "diagonal", "ranges", "strip")
    view_order = "smallest p"
    figure_size = (5.2, 6.4)

    def ranges(self) -> dict[str, Array]:
        """Return the ranges over which each band excludes the diagonal.

        Returns
        -------
        dict of str to ndarray
            view, level, side (`above` or `below` the diagonal), start and stop; one entry per range.
        """
        mask = self.table["part"] == "range"
        names = {"view": "view", "level": "level", "side": "side", "start": "x_low", "stop": "x_high"}
        return {name: self.table[column][mask] for name, column in names.items()}

    def marks(self, panel: int, size: PanelSize) -> list[Mark]:
        rows = self.rows(panel)
        marks: list[Mark] = []
        for i, (level, shade) in enumerate(self._shades_by_level()):
            mask = (rows["part"] == "belt") & (rows["level"] == level)
            x, low, high = (rows[name][mask] for name in ("x_low", "low", "high"))
            label = f"{format_level(level)} {'simultaneous ' if self.has_long_labels else ''}band"
            style: dict[str, Any] = {
                "layer": "belt",
                "name": f"belt {level:g}",
                "label": label,
                "zorder": 1.3 + i / 100,
            }
            if len(x) == 1:  # a single predicted probability
                marks.append(Segments(x, x, low, high, color=shade, linewidth=7, **style))
            else:  # only the widest band has an outline
                outline: dict[str, Any] = {"edgecolor": "none" if i else OUTLINE_COLOR, "linewidth": 0 if i else 0.8}
                marks.append(Band(x, low, high, facecolor=shade, **outline, **style))
        curve = {name: column[rows["part"] == "curve"] for name, column in rows.items()}
        dot: dict[str, Any] = {"marker": "o", "markersize": 4} if len(curve["rate"]) == 1 else {}
        degrees = self.panels["degree"]
        degree_text = f", degree {degrees[0]}" if len(degrees) == 1 and self.has_long_labels else ""
        curve_style: dict[str, Any] = {"color": styling.INSIDE_COLOR, "linewidth": 1.8 if size.is_wide else 1.3}
        curve_style |= {"layer": "curve", "label": f"fitted curve{degree_text}", "zorder": 3} | dot
        strip = select_part(rows, "strip")
        edges_and_shares = strip["x_low"], strip["x_high"], strip["rate"]
        return [
            *marks,
            Line(curve["x_low"], curve["rate"], **curve_style),
            self.diagonal(),
            *self._range_marks(rows),
            self.strip(*edges_and_shares, float(self.panels["tallest"][panel]), size),
        ]

    def _range_marks(self, rows: Mapping[str, Array]) -> list[Mark]:
        """The ranges of the diagonal that the widest band excludes; a range of one score is a square."""
        widest = self.settings["levels"][-1]
        mask = (rows["part"] == "range") & (rows["level"] == widest)
        low, high = rows["x_low"][mask], rows["x_high"][mask]
        label = f"diagonal outside the {format_level(widest)} band" if self.has_long_labels else "outside"
        style: dict[str, Any] = {"layer": "ranges", "name": "range", "color": styling.OUTSIDE_COLOR, "zorder": 2.5}
        points, is_point = low[low == high], low == high
        return [
            Segments(
                low[~is_point], high[~is_point], low[~is_point], high[~is_point], label=label, linewidth=3, **style
            ),
            Points(points, points, label=label, marker="s", markersize=4, **style),
        ]

    def _shades_by_level(self) -> list[tuple[float, str]]:
        """The levels, widest band first, and their colors."""
        levels = self.settings["levels"][::-1]
        return list(zip(levels, BAND_SHADES[::2] if len(levels) == 2 else BAND_SHADES, strict=False))
