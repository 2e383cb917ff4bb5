"""Arrows from mean prediction to outcome frequency in each cell of a probability simplex: table, notes and finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import chdtri

from trueodds.binning.partition import Partition, resolve_n_bins
from trueodds.binning.simplex_grid import SimplexGrid
from trueodds.binning.uniform import Uniform
from trueodds.core.errors import InputError, Note
from trueodds.core.typing import Array
from trueodds.data.class_names import looks_like_a_number
from trueodds.diagrams import simplex_geometry
from trueodds.diagrams._style.formatting import format_percent
from trueodds.diagrams._style.panel_grid import MAX_PANELS
from trueodds.diagrams.bin_intervals import is_significant
from trueodds.diagrams.simplex_cell_tests import BY_OUTCOME, VOTES, evaluate_cell_tests
from trueodds.diagrams.table_columns import Columns, rows_to_columns
from trueodds.kernels.holm import holm
from trueodds.lenses.view import View

MAX_TALLY_BINS = 3840  # largest number of bins per axis of a tally


class Arrows:
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


def add_holm_pvalues(arrows: Sequence[Arrows], level: float, *, simultaneous: bool) -> list[Columns]:
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


def method_notes(arrows: Sequence[Arrows], level: float, *, simultaneous: bool) -> list[Note]:
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
        notes.append(Note("TN244", "The data are a tally: the mean prediction of each fine cell represents its rows."))
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
                f"Use bins={tally_bins} or a divisor of it, or pass the rows.",
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


def panel_columns(arrows: Sequence[Arrows], tables: Sequence[Columns]) -> Columns:
    """The columns of `panels`: one row per triangle or tetrahedron, all with the same scale of shades."""
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
    return rows_to_columns(rows)


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
    """Format a difference of probabilities in percentage points."""
    return f"{100 * abs(x):.1f} points"
