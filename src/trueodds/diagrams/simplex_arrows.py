"""Arrows from mean prediction to outcome frequency in the cells of a simplex: settings, tests, table and finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincc, chdtri

from trueodds.binning.partition import Partition, resolve_n_bins
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError, Note
from trueodds.core.pvalues import holm
from trueodds.core.settings import Level
from trueodds.core.typing import Array
from trueodds.data.class_names import looks_like_a_number
from trueodds.data.predictions import Predictions
from trueodds.diagrams import simplex_geometry
from trueodds.diagrams._style.formatting import TALLY_NOTE, format_percent
from trueodds.diagrams._style.styling import MAX_PANELS
from trueodds.diagrams.base import Diagram
from trueodds.diagrams.bins import is_significant
from trueodds.diagrams.recipe import IMPORTANCE_WEIGHT_EXEMPTION, BinnedRecipe, Models
from trueodds.diagrams.table_columns import Columns
from trueodds.hypotests.bins import CountTails, VectorTails
from trueodds.lenses.base import Lens
from trueodds.lenses.classes import Canonical, Groups, class_number
from trueodds.lenses.ranked import TopK
from trueodds.lenses.view import View
from trueodds.tallies.tally import Tally, lens_views


@dataclass(frozen=True)
class SimplexRecipe(BinnedRecipe):
    """Settings of a diagram of joint views whose corners are labeled with the outcomes."""

    lens: ClassVar[str | None] = "canonical"
    accepts_joint_views: ClassVar[bool] = True
    exemptions: ClassVar[dict[str, str]] = IMPORTANCE_WEIGHT_EXEMPTION
    level: Level = 0.95
    simultaneous: bool = True

    def draw_models(self, models: Models, lens: Lens, rng: int | np.random.Generator = 0) -> Diagram:
        """The diagram of one model, with outcome names at the corners."""
        if len(models) != 1:
            return super().draw_models(models, lens, rng)
        (data,) = models.values()
        return self.diagram_with_outcome_names(lens_views(data, lens), outcome_names(data, lens))

    def compute(self, views: tuple[View, ...], rng: np.random.Generator) -> Diagram:
        """The diagram of joint views, with numbered outcomes."""
        return self.diagram_with_outcome_names(views, None)

    def diagram_with_outcome_names(self, views: tuple[View, ...], names: tuple[str, ...] | None) -> Diagram:
        """The diagram of joint views whose outcomes have these names; None numbers them."""
        raise NotImplementedError


REST_LABEL = "rest"  # name of all other outcomes together


def outcome_names(data: Predictions | Tally, lens: Lens) -> tuple[str, ...] | None:
    """The names of the outcomes of a joint lens; None if they have no names.

    They are the classes, the groups of classes, or the ranks of the most probable classes and the rest.
    """
    names = [str(label) for label in data.classes]
    if isinstance(lens, Canonical):
        return tuple(names)
    if isinstance(lens, Groups):
        return tuple(" + ".join(names[class_number(c, data.classes)] for c in block) for block in lens.blocks)
    if isinstance(lens, TopK):
        return (*(_name_choice(rank) for rank in range(1, lens.size + 1)), REST_LABEL)
    return None


def label_outcomes(view: View, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the outcomes of a view, or numbers if it has no names."""
    m = view.p.shape[1]
    return tuple(names) if names is not None and len(names) == m else tuple(str(k) for k in range(m))


def check_joint(view: View, name: str) -> None:
    if not view.joint:
        raise InputError(
            "TO704",
            f"The diagram {name} requires a probability vector per row.",
            f"the view {view.name!r} with one probability per row",
            "For two outcomes or a single class, use the diagram reliability; for more classes, use"
            " ⟨lens='canonical'⟩.",
        )


def _name_choice(rank: int) -> str:
    """Name the outcome with the largest probability (rank 1), the second largest, and so on.

    >>> _name_choice(2), _name_choice(4)
    ('2nd choice', '4th choice')
    """
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(rank, "th")
    return f"{rank}{suffix} choice"


MAX_TALLY_BINS = 3840  # largest number of bins per axis of a tally


class CellArrows:
    """The arrows of the occupied cells of one joint view, in the order of the partition.

    Parameters
    ----------
    view : View
        A joint view of m outcomes.
    partition : Partition
        The cells.
    corners : sequence of str (m,)
        The names of the outcomes.
    title : str
        Name of the triangle or the tetrahedron in the picture.
    level : float
        A cell is significant if its p-value is at most 1 − `level`.

    Attributes
    ----------
    bin_index_of_rows : ndarray (n,)
        The cell of each row.
    tests : CellTests
        The calibration tests of the occupied cells.
    columns : dict of str to ndarray (occupied cells,)
        The columns of the table for this view, without those that depend on other views.
    """

    def __init__(self, view: View, partition: Partition, corners: Sequence[str], title: str, level: float) -> None:
        self.view, self.corners, self.title = view, tuple(corners), title
        _check_nested(partition, view)
        self.partition = partition
        self.fitted_partition = self.partition.fit(view)
        self.bin_index_of_rows = np.asarray(view.assign(self.fitted_partition))
        self.tests = evaluate_cell_tests(view, self.bin_index_of_rows, self.fitted_partition.size, 1 - level)
        binned = self.tests.binned
        bin_index = np.asarray(binned.bin_index)
        low, high = self._cell_boxes(bin_index)
        self.columns: Columns = {
            "view": np.full(len(bin_index), view.name, dtype=object),
            "cell": bin_index,
            "n": binned.n.astype(np.int64),
            "weight": binned.w,
            "share": binned.w / binned.w.sum(),
            **_number_columns("mean_prediction", binned.p),
            **_number_columns("outcome_frequency", binned.y),
            "distance": np.abs(binned.y - binned.p).sum(axis=1) / 2,
            "statistic": self.tests.statistic,
            "df": self.tests.df,
            "distribution": self.tests.method,
            "pvalue": np.exp(self.tests.log_p),
            **_number_columns("low", low),
            **_number_columns("high", high),
        }

    def _cell_boxes(self, bin_index: Array) -> tuple[Array, Array]:
        """Lower and upper bounds of the probabilities in these cells, (cells, m) each; NaN if cells are not boxes."""
        bounds = simplex_geometry.cell_bounds(self.partition, self.fitted_partition, self.view, self.bin_index_of_rows)
        if bounds is None:
            missing = np.full((len(bin_index), self.view.p.shape[1]), np.nan)
            return missing, missing
        low, high = bounds
        return low[bin_index], high[bin_index]

    @property
    def error(self) -> float:
        """The error of the view: mean total-variation distance of the cells, weighted by their share of rows."""
        return float(self.columns["share"] @ self.columns["distance"])

    @property
    def log_adjusted_pvalue(self) -> float:
        """Log of the smallest p-value times the number of cells (Bonferroni)."""
        return float(min(self.tests.log_p.min() + np.log(len(self.tests.log_p)), 0.0))

    def ellipse_columns(self, level: float) -> Columns:
        """Columns of the ellipse around each mean prediction that contains the outcome frequency if it is calibrated.

        It does so with probability `level`, by the normal distribution.
        """
        view, m = self.view, self.view.p.shape[1]
        ww = view.sums("ww")
        residual = view.y - view.p
        p = view.p.astype(np.float64)
        uses_votes = (self.tests.method == VOTES).all()
        bin_index = np.asarray(self.tests.binned.bin_index)
        covariance = np.empty((len(bin_index), m, m))  # of the outcome frequency in each cell
        for a in range(m):
            for b in range(m):
                terms = residual[:, a] * residual[:, b] if uses_votes else (a == b) * p[:, a] - p[:, a] * p[:, b]
                sums = np.bincount(self.bin_index_of_rows, ww * terms, self.fitted_partition.size)
                covariance[:, a, b] = sums[bin_index]
        covariance /= self.columns["weight"][:, None, None] ** 2
        major, minor, angle = simplex_geometry.covariance_ellipses(covariance, float(np.sqrt(chdtri(2, 1 - level))))
        return {"ellipse_long": major, "ellipse_short": minor, "ellipse_angle": angle}


def add_holm_pvalues(arrows: Sequence[CellArrows], level: float, *, simultaneous: bool) -> list[Columns]:
    """The table of each view, with p-values adjusted over all cells of the diagram, and whether a cell is significant.

    A cell is significant (`beyond`) by its adjusted p-value (`holm`) if `simultaneous`, otherwise by its own.
    """
    adjusted = np.array(holm(np.concatenate([cell_arrows.columns["pvalue"] for cell_arrows in arrows]).tolist()))
    tables, start = [], 0
    for cell_arrows in arrows:
        holm_pvalues = adjusted[start : start + len(cell_arrows.columns["cell"])]
        start += len(holm_pvalues)
        is_outside = is_significant(holm_pvalues if simultaneous else cell_arrows.columns["pvalue"], level)
        tables.append({**cell_arrows.columns, "holm": holm_pvalues, "beyond": is_outside})
    return tables


def default_grid(view: View, max_bins: int) -> Partition:
    """A grid with `max_bins` bins per axis; for a tally, the finest grid up to that size that nests in its own."""
    tally_bins = _tally_bin_count(view)
    if tally_bins is None:
        return SimplexGrid(max_bins)
    nested_bin_counts = [k for k in range(3, max_bins + 1) if tally_bins % k == 0]
    return SimplexGrid(max(nested_bin_counts, default=tally_bins))


def method_notes(arrows: Sequence[CellArrows], level: float, *, simultaneous: bool) -> list[Note]:
    """Notes on the null distributions of the cell tests other than χ²."""
    methods = np.concatenate([cell_arrows.tests.method for cell_arrows in arrows])
    n_approximate = sum(int(cell_arrows.tests.lacks_exact_test.sum()) for cell_arrows in arrows)
    notes = []
    if exact := int((methods == BY_OUTCOME).sum()):
        subject = "This cell is" if exact == 1 else "These cells are"
        text = (
            f"χ² rejects {exact} of {len(methods)} cells although fewer than 5 rows of some outcome are expected there,"
            f" where it is inaccurate. {subject} tested by exact Poisson-binomial tests of the outcomes with Bonferroni"
            " correction instead."
        )
        notes.append(Note("TN252", text))
    if n_approximate:
        text = (
            f"χ² rejects {n_approximate} of {len(methods)} cells although fewer than 5 rows of some outcome are"
            " expected there, where it is inaccurate. No exact test replaces it, because weights are unequal."
        )
        notes.append(Note("TN254", text))
    if (methods == VOTES).any():
        text = "Outcomes are shares of votes. Cells are tested with the empirical covariance of residuals, not exactly."
        notes.append(Note("TN243", text))
    if not all(cell_arrows.view.is_rows for cell_arrows in arrows):
        notes.append(TALLY_NOTE)
    if not simultaneous:
        text = (
            f"Cells are tested without adjustment: up to {100 * (1 - level):.3g} % are significant for a calibrated "
            "model."
        )
        notes.append(Note("TN246", text))
    return notes


def _number_columns(name: str, columns: Array) -> Columns:
    """Name the columns (cells, m) of an array `name_0`, `name_1`, …."""
    return {f"{name}_{k}": np.ascontiguousarray(column) for k, column in enumerate(columns.T)}


def _check_nested(partition: Partition, view: View) -> None:
    """Raise TO205 if a grid splits the cells of a tally."""
    tally_bins = _tally_bin_count(view)
    if tally_bins is not None and isinstance(partition, (Uniform, SimplexGrid)):
        k = resolve_n_bins(partition.bins, view)
        if tally_bins % k:
            raise InputError(
                "TO205",
                "The cells of a tally cannot be split: its number of bins must be a multiple of that of the diagram.",
                f"{k} bins per axis, and a tally with {tally_bins}",
                f"Use ⟨bins={tally_bins}⟩ or a divisor of it, or pass the rows.",
            )


def _tally_bin_count(view: View) -> int | None:
    """The number of bins per axis of a tally with a grid; None for rows."""
    if view.is_rows or view.partition_values is view.p:
        return None
    midpoints = np.unique(view.partition_values)  # of the bins of the tally on each axis
    # With k bins, k times each midpoint is half an integer.
    bin_counts = (
        k for k in range(1, MAX_TALLY_BINS + 1) if np.allclose(np.mod(midpoints * k, 1.0), 0.5, rtol=0, atol=1e-6)
    )
    return next(bin_counts, None)


def panel_rows(arrows: Sequence[CellArrows], tables: Sequence[Columns]) -> list[dict[str, Any]]:
    """The rows of `panels`: one per triangle or tetrahedron, all with the same scale of shades."""
    low, high, is_logarithmic = share_scale(np.concatenate([table["share"] for table in tables[:MAX_PANELS]]))
    rows: list[dict[str, Any]] = []
    for cell_arrows, table in zip(arrows, tables, strict=True):
        n_significant, n_cells = int(table["beyond"].sum()), len(table["beyond"])
        text = describe_arrows(table, cell_arrows.corners)
        rows.append(
            {
                "view": cell_arrows.view.name,
                "title": cell_arrows.title,
                "aside": f"{n_significant} of {n_cells} significant",
                "finding": f"Strongest evidence: {cell_arrows.title}. {text}" if len(arrows) > 1 and not rows else text,
                **{f"corner_{k}": name for k, name in enumerate(cell_arrows.corners)},
                "n": int(table["n"].sum()),
                "weight": float(table["weight"].sum()),
                "error": cell_arrows.error,
                "cells": n_cells,
                "cells_beyond": n_significant,
                "smallest_pvalue": float(table["pvalue"].min()),
                "votes": bool((table["distribution"] == VOTES).any()),
                "share_low": low,
                "share_high": high,
                "share_log": is_logarithmic,
            }
        )
    return rows


LOG_SCALE_RATIO = 30.0  # ratio of the largest to the smallest share, above which the scale is logarithmic


def share_scale(shares: Array) -> tuple[float, float, bool]:
    """The ends of the scale for these shares, and whether it is logarithmic."""
    low, high = float(shares.min()), float(shares.max())
    is_logarithmic = high > LOG_SCALE_RATIO * low
    return (low if is_logarithmic else 0.0), high, is_logarithmic


def describe_arrows(table: Columns, corners: tuple[str, ...]) -> str:
    """Describe the error of the significant cells, and how many there are."""
    significant, n_cells = table["beyond"], len(table["beyond"])
    n_significant = int(significant.sum())
    if n_significant == 0:
        subject = "The only cell does not deviate" if n_cells == 1 else f"None of {n_cells} cells deviates"
        return f"{subject} significantly."
    text = _describe_error({name: column[significant] for name, column in table.items()}, corners)
    verb = "deviates" if n_significant == 1 else "deviate"
    subject = "The only cell deviates" if n_cells == 1 else f"{n_significant} of {n_cells} cells {verb}"
    share = format_percent(float(table["share"][significant].sum()))
    return f"{text} {subject} significantly, with {share} of the predictions."


def _describe_error(table: Columns, corners: tuple[str, ...]) -> str:
    """Describe the error of the cells of a table: of the most probable outcome, or of single outcomes.

    It is that of the most probable outcome if that outcome, whichever it is in a cell, has the larger mean error.
    """
    predicted, observed = stack_outcomes(table, "mean_prediction"), stack_outcomes(table, "outcome_frequency")
    share = table["share"]
    predicted_corner = np.argmax(predicted, axis=1)
    corner_text = _describe_corner(share * np.abs(predicted - observed).sum(axis=1), predicted_corner, corners)
    cell_index = np.arange(len(predicted_corner))
    top_predicted, top_observed = (
        float(share @ x[cell_index, predicted_corner] / share.sum()) for x in (predicted, observed)
    )
    net_error = share @ (predicted - observed) / share.sum()  # (m,), of each outcome over all cells
    if abs(top_predicted - top_observed) > np.abs(net_error).sum() / 2:
        direction = "Overconfident" if top_predicted > top_observed else "Underconfident"
        return (
            f"{direction} in the most probable outcome{corner_text}: predicted {format_percent(top_predicted)}, "
            f"observed {format_percent(top_observed)}."
        )
    overpredicted = _name_corner(corners[int(np.argmax(net_error))])
    underpredicted = _name_corner(corners[int(np.argmin(net_error))])
    return (
        f"Overpredicts {overpredicted} ({_format_points(net_error.max())}) and underpredicts {underpredicted} "
        f"({_format_points(net_error.min())}){corner_text}."
    )


def stack_outcomes(table: Columns, name: str) -> np.ndarray:
    """The columns of all outcomes, (cells, m)."""
    m = sum(key.startswith("mean_prediction_") for key in table)
    return np.stack([table[f"{name}_{k}"] for k in range(m)], axis=1)


def _describe_corner(deviation: np.ndarray, predicted_corner: np.ndarray, corners: tuple[str, ...]) -> str:
    """Name the outcome that is the most probable one in cells with more than half of the total deviation, if any.

    `deviation` and `predicted_corner`, (cells,) each, are the deviation of each cell and its most probable outcome.
    """
    by_corner = np.bincount(predicted_corner, deviation, len(corners))
    corner = int(np.argmax(by_corner))
    corner_text = f", mostly where {_name_corner(corners[corner])} is most probable"
    return corner_text if by_corner[corner] > by_corner.sum() / 2 else ""


def _name_corner(corner: str) -> str:
    """Name a corner in a sentence; a number alone could be read as a value."""
    return f"class {corner}" if looks_like_a_number(corner) else corner


def _format_points(x: float) -> str:
    return f"{100 * abs(x):.1f} points"


MIN_EXPECTED = 5.0  # expected rows of an outcome, below which χ² is inaccurate
CHI2, BY_OUTCOME, VOTES = "chi-square", "exact by outcome", "votes"


@dataclass(frozen=True, slots=True)
class CellTests:
    """The calibration test of each occupied cell of a joint view."""

    binned: View  # the view with one row per occupied cell
    statistic: Array  # (cells,) X²
    df: Array  # (cells,) degrees of freedom
    log_p: Array  # (cells,) log of the p-value
    method: Array  # (cells,) null distribution: one of CHI2, BY_OUTCOME and VOTES
    lacks_exact_test: Array  # (cells,) whether χ² rejects where it is inaccurate, and no exact test replaces it


def evaluate_cell_tests(view: View, bin_index: Array, n_bins: int, alpha: float) -> CellTests:
    r"""Test calibration in each cell by X² = dᵀV⁺d, with d = Σw(y − p) and the exact covariance V = Σw²(diag p − ppᵀ).

    `bin_index` (n,) is the cell of each row, from 0 to `n_bins` − 1.

    `chi-square`: the null distribution is χ² with the rank of V as degrees of freedom. It is inaccurate if an outcome
    is expected fewer than 5 times. A p-value of at most `alpha` is then replaced, for rows of equal weight, by
    `exact by outcome`: m times the smallest two-sided Poisson-binomial p-value of the m outcomes (Bonferroni), which
    is valid for any n. `votes`: if outcomes are shares, V = Σw²(y − p)(y − p)ᵀ, and X²/n has the distribution
    Beta(r/2, (n − r)/2) for normal residuals.
    """
    if view.is_rows and ((view.y > 0) & (view.y < 1)).any():
        return _test_votes(view, bin_index, n_bins)
    tails = VectorTails(view, bin_index, n_bins)
    binned = tails.binned
    wy = binned.w[:, None] * binned.y
    log_p, method = tails.log_p(wy), np.full(len(binned.w), CHI2, dtype=object)
    ww = binned.sums("ww")
    expected = np.where(tails.has_no_variance, np.inf, binned.p * (binned.w**2 / ww)[:, None])
    small_expected = (
        (expected.min(axis=1) < MIN_EXPECTED * (1 - 1e-9)) & (log_p <= np.log(alpha + 1e-12)) & np.isfinite(log_p)
    )
    # Cauchy–Schwarz: (Σw)² = n Σw² where, and only where, all weights are equal.
    uses_exact_test = small_expected & np.isclose(binned.w**2, binned.n * ww, rtol=1e-9, atol=0)
    if uses_exact_test.any():
        rows = np.flatnonzero(np.isin(bin_index, np.asarray(binned.bin_index)[uses_exact_test]) & (view.w > 0))
        min_log_p = np.min([_outcome_log_p(view, rows, bin_index, n_bins, k) for k in range(view.p.shape[1])], axis=0)
        log_p[uses_exact_test] = np.minimum(min_log_p + np.log(view.p.shape[1]), 0.0)  # Bonferroni
        method[uses_exact_test] = BY_OUTCOME
    return CellTests(binned, tails.statistic(wy), tails.df, log_p, method, small_expected & ~uses_exact_test)


def _outcome_log_p(view: View, rows: Array, bin_index: Array, n_bins: int, outcome: int) -> Array:
    """Log p-value of one outcome in each cell that contains some of these rows."""
    p, y, w = view.p[rows, outcome].astype(np.float64), view.y[rows, outcome], view.w[rows]
    if view.is_rows:
        outcome_view = View(p, y, None if view.is_unweighted else w)
    else:  # all rows of a fine cell have its mean prediction
        ww = view.sums("ww")[rows]
        sums = {"ww": ww, "wpp": w * p * p, "wpy": w * p * y, "wyy": w * y}
        sums |= {"wwv": ww * p * (1 - p), "wwr": ww * np.maximum(y - 2 * p * y + p * p, 0.0)}
        outcome_view = View(p, y, w, n=view.n[rows], sums=sums)
    tails = CountTails(outcome_view, bin_index[rows], n_bins)
    return tails.log_p(tails.binned.w * tails.binned.y)


def _test_votes(view: View, bin_index: Array, n_bins: int) -> CellTests:
    """Test each cell by the empirical covariance of its residuals, for shares of votes."""
    binned = view.pool(bin_index, n_bins)
    rows = np.flatnonzero(view.w > 0)
    rows = rows[np.argsort(bin_index[rows], kind="stable")]
    residual = view.w[rows, None] * (view.y[rows] - view.p[rows])
    starts = np.searchsorted(bin_index[rows], np.asarray(binned.bin_index))
    tests = [_self_normalized_test(residuals_of_cell) for residuals_of_cell in np.split(residual, starts[1:])]
    statistic, df, log_p = (np.array(x) for x in zip(*tests, strict=True))
    method = np.full(len(df), VOTES, dtype=object)
    return CellTests(binned, statistic, df, log_p, method, np.zeros(len(df), dtype=bool))


def _self_normalized_test(residual: Array) -> tuple[float, int, float]:
    """X² of residuals (n, m), the rank of their second moments, and the log p-value."""
    d, n = residual.sum(axis=0), len(residual)
    second_moments = residual.T @ residual
    diagonal = np.diagonal(second_moments)
    scale = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 0.0)
    values, vectors = np.linalg.eigh(scale[:, None] * second_moments * scale)
    is_positive = values > 1e-10
    rank = int(is_positive.sum())
    x = float((((d * scale) @ vectors[:, is_positive]) ** 2 / values[is_positive]).sum())
    if n <= rank:  # with so few rows X² always attains its maximum
        return x, rank, 0.0
    p = float(betaincc(rank / 2, (n - rank) / 2, min(x / n, 1.0))) if rank else 1.0
    return x, rank, float(np.log(p)) if p > 0 else -np.inf
