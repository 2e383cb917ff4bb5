"""The GiViTI calibration belt: confidence regions of a polynomial calibration curve in the log odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.special import expit, logit

from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.ordering import decreasing_order
from trueodds.core.settings import ONE, Integer, Level
from trueodds.core.typing import Array
from trueodds.diagrams._style import layout
from trueodds.diagrams._style.formatting import bias_phrases, format_pvalue, format_range, join_words, merge_notes
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import BinnedView, stack_tables
from trueodds.diagrams.calibration_belt.condensed_view import condense_view
from trueodds.diagrams.calibration_belt.plot import BeltPlot
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, Recipe, lens_name
from trueodds.hypotests._glm.calibration_belt import Belt, fit_belt
from trueodds.hypotests._glm.logits import Logits, MinProb
from trueodds.hypotests.giviti import GiViTI
from trueodds.hypotests.view_statistic import ViewResult
from trueodds.lenses.view import View

CURVE_POINTS = 51  # points evenly spaced in p, and as many in its log odds
GRID_CURVE_POINTS = 26  # the same for several panels
STRIP_BINS = 20  # bins of the strip; their edges are edges of a tally's cells too
ALPHA = 0.05  # a smaller p-value is reported as a rejection even if the band contains the diagonal


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
    levels: Annotated[Sequence[Level], ONE] = (0.8, 0.95)
    fitted: bool = False
    max_degree: Integer = 4
    min_prob: MinProb = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(set(self.levels)) <= 4:
            raise InputError(
                "TO203",
                "levels must hold one to four levels.",
                describe(self.levels),
                "For instance levels=[0.8, 0.95].",
            )
        object.__setattr__(self, "levels", tuple(sorted({float(level) for level in self.levels})))
        self._test()

    @classmethod
    def accepts(cls) -> tuple[str, ...]:
        """Names of the settings that `draw` may pass; `level` is a single one of `levels`."""
        return ("level", *(field.name for field in fields(cls)))

    @classmethod
    def from_settings(cls, _name: str, **settings: Any) -> Any:
        """Build the recipe, with `level` in place of `levels` if it is given."""
        if "level" in settings:
            if "levels" in settings:
                got = f"level={describe(settings['level'])}, levels={describe(settings['levels'])}"
                raise InputError("TO203", "level and levels exclude each other.", got, "Pass one of them.")
            settings["levels"] = (settings.pop("level"),)
        return cls(**settings)

    def _test(self) -> GiViTI:
        return GiViTI(fitted=self.fitted, max_degree=self.max_degree, min_prob=self.min_prob)

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """Compute the bands of binary views."""
        all_logits = [Logits.of(view, self.min_prob, self.name) for view in views]
        condensed_views = [condense_view(view, logits) for view, logits in zip(views, all_logits, strict=True)]
        results = [self._test().evaluate(view) for view in condensed_views]
        order = decreasing_order([-one.pvalue for one in results], [one.statistic for one in results])
        tables, rows, notes_by_view, tallest = [], [], list[tuple[str, list[Note]]](), 0.0
        for place, i in enumerate(order):
            view, made = views[i], None
            doubts = [Note("TN260", doubt) for doubt in results[i].doubts]
            notes_by_view.append((view.name, [*all_logits[i].notes(view, self.min_prob), *results[i].notes, *doubts]))
            if place < layout.MAX_PANELS:
                made = self._belt(condensed_views[i], CURVE_POINTS if len(views) == 1 else GRID_CURVE_POINTS)
                strip = BinnedView(view, Uniform(STRIP_BINS)).columns
                tallest = max(tallest, float(strip["share"].max()))
                tables.append(_table(view.name, made, strip))
            rows.append(self._panel(view, results[i], made, len(views)))
        for row in rows:
            row["tallest"] = tallest
        words = {"view", "title", "aside", "finding"}
        return BeltPlot(
            name=self.name,
            lens=lens_name(views),
            table=stack_tables(tables),
            panels=stack_tables(
                [{key: np.array([row[key] for row in rows], dtype=object if key in words else None) for key in rows[0]}]
            ),
            settings={field.name: getattr(self, field.name) for field in fields(self)},
            notes=(*merge_notes(notes_by_view), *self._notes(views)),
        )

    def _belt(self, view: View, points: int) -> Belt:
        p = view.p[view.w > 0]
        low, high = float(p.min()), float(p.max())
        by_odds = expit(np.linspace(logit(low), logit(high), points))[1:-1]
        at = np.sort(np.concatenate([np.linspace(low, high, points), by_odds]))
        at = at[np.diff(at, prepend=-1.0) > 1e-9 * at]  # equal up to rounding
        return fit_belt(view, self.levels, at, fitted=self.fitted, max_degree=self.max_degree)

    def _panel(self, view: View, result: ViewResult, made: Belt | None, views: int) -> dict[str, Any]:
        title = view.name.removeprefix("class:")
        text = "" if made is None else _finding(view.name, result.pvalue, made)
        return {
            "view": view.name,
            "title": title,
            "aside": format_pvalue(result.pvalue),
            "finding": f"{title}: {text[0].lower()}{text[1:]}" if views > 1 and text else text,
            "n": view.n_rows,
            "weight": view.total,
            "statistic": result.statistic,
            "pvalue": result.pvalue,
            "degree": int(result.parts["curve"]["degree"]),
            "effect": result.effect,
        }

    def _notes(self, views: tuple[View, ...]) -> list[Note]:
        notes = []
        if len(views) > layout.MAX_PANELS:
            text = (
                f"Only the {layout.MAX_PANELS} views with the smallest p of {len(views)} are drawn, with bands. panels"
                " holds the tests of all."
            )
            notes.append(Note("TN245", text))
        if any(not np.isclose(view.sums("wyy").sum(), view.w @ view.y, rtol=1e-9) for view in views):
            text = (
                "Outcomes are shares of votes, which vary less than single labels: band and p-value are conservative."
            )
            notes.append(Note("TN262", text))
        if not all(view.is_rows for view in views):
            notes.append(
                Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows.")
            )
        return notes


def _finding(name: str, pvalue: float, made: Belt) -> str:
    band = f"The {100 * made.levels[-1]:.4g}\u00a0% band"
    outside = [segment for segment in made.segments if segment.level == made.levels[-1]]
    if not outside:
        rest = ", but the test rejects calibration" if pvalue < ALPHA else ""
        return f"{band} contains the whole diagonal{rest} ({format_pvalue(pvalue)})."
    underestimates, overestimates = (phrase.removeprefix("is ") for phrase in bias_phrases(name))
    phrases: list[str] = []
    for side, bias in (("above", underestimates), ("below", overestimates)):
        ranges = [format_range(segment.start, segment.stop) for segment in outside if segment.side == side]
        if ranges:
            phrases.append(f"{side} {'it' if phrases else 'the diagonal'} ({bias}) {join_words(ranges)}")
    return f"{band} is {join_words(phrases)} ({format_pvalue(pvalue)})."


def _table(name: str, made: Belt, strip: dict[str, Array]) -> dict[str, Array]:
    p, t = made.table["p"], made.table
    parts: list[dict[str, Any]] = [{"part": "curve", "x_low": p, "x_high": p, "rate": t["curve"]}]
    for level in made.levels:
        ends = {"low": t[f"low_{level:g}"], "high": t[f"high_{level:g}"]}
        parts.append({"part": "belt", "level": level, "x_low": p, "x_high": p, **ends})
    for segment in made.segments:
        ends = {"x_low": np.array([segment.start]), "x_high": np.array([segment.stop])}
        parts.append({"part": "range", "level": segment.level, "side": segment.side, **ends})
    parts.append({"part": "strip", "x_low": strip["low"], "x_high": strip["high"], "rate": strip["share"]})
    sizes = [len(part["x_low"]) for part in parts]
    table = {"view": np.full(sum(sizes), name, dtype=object)}
    for key in ("part", "level", "side", "x_low", "x_high", "rate", "low", "high"):
        words = key in ("part", "side")
        columns = [
            np.broadcast_to(np.asarray(part.get(key, "" if words else np.nan), dtype=object if words else None), size)
            for part, size in zip(parts, sizes, strict=True)
        ]
        table[key] = np.concatenate(columns)
    return table
