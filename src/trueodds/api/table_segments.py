"""Divide the rows of models into segments for a table, and test the calibration of each model in each segment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from trueodds.api.arguments import data_notes, resolve_data, resolve_lens
from trueodds.api.table_columns import SegmentCell
from trueodds.api.table_evaluation import UNOBSERVED_CLASS, list_some, merge_notes
from trueodds.api.test import test
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_count
from trueodds.core.pvalues import holm
from trueodds.core.results import Verdict
from trueodds.data.prediction_arrays import replace_arrays
from trueodds.data.predictions import Predictions
from trueodds.data.weights import check_groups
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE, sufficient_draws
from trueodds.io.models import has_named_columns
from trueodds.io.read import read
from trueodds.lenses.base import Lens
from trueodds.lenses.effective_sample_size import equal_clusters
from trueodds.lenses.lens_by_name import default_lens
from trueodds.tallies.tally import Tally

Model = Predictions | Tally
DEFAULT_NAME = "segment"  # of the segments that are passed as an array
MIN_UNITS = 25  # rows, or clusters, of a cell that is judged; Cochran's smallest sample for a normal approximation
MIN_DRAWS, MAX_DRAWS = 999, 9999  # null draws of each test, unless more are needed to reject a single cell


def add_segments(models: Mapping[str, Any], by: Any) -> Mapping[str, Any]:
    """Return the models, with the segment of each row as a group column.

    If `by` is the name of a column, it is read with the columns of files and data frames.
    """
    if by is None:
        return models
    if isinstance(by, str):
        return {name: read(model, group=by) if has_named_columns(model) else model for name, model in models.items()}
    added = {}
    for name, model in models.items():
        preds: Any = resolve_data(model, "exact", None)  # predictions; a tally raises TO403
        group = {**preds.group, **check_groups({DEFAULT_NAME: by}, preds.n)}
        added[name] = replace_arrays(preds, group=group)
    return added


@dataclass(frozen=True)
class CellTest:
    """The test of calibration that judges a cell."""

    lens: Lens
    n_draws: int
    n_cells: int  # for which the p-values are adjusted
    alpha: float

    @property
    def settings(self) -> dict[str, Any]:
        """The settings, as the table reports them."""
        return {"test": "omnibus", "test_lens": str(self.lens), "test_resamples": self.n_draws}

    @property
    def notes(self) -> list[Note]:
        """A note if so few draws cannot make a single cell significant."""
        sufficient = sufficient_draws(self.alpha, self.n_cells)
        if self.n_draws >= sufficient:
            return []
        text = (
            f"Holm's correction for {self.n_cells:,} cells may prevent rejections, because the draws are few. Pass"
            f" ⟨resamples={sufficient:,}⟩."
        )
        return [Note("TN209", text)]

    def run(self, rows: Any, weight_kind: str | None, seed: int) -> tuple[Verdict | None, str]:
        """Return the test of the rows of a cell, or None and the reason."""
        n_units, unit = float(rows.n), "rows"
        if rows.cluster is not None:
            n_units, unit = round(equal_clusters(rows.w, rows.cluster), 6), "effective clusters"
        if n_units < MIN_UNITS:
            return None, f"fewer than {MIN_UNITS} {unit}"
        settings: dict[str, Any] = {"resamples": self.n_draws, "weight_kind": weight_kind, "rng": seed}
        try:
            verdict = test(rows, lens=self.lens, progress=False, **settings)
        except InputError as problem:
            return None, f"{problem.code}: {problem.problem}"
        return (verdict, "") if np.isfinite(verdict.pvalue) else (None, "the p-value is undefined")


@dataclass(frozen=True)
class SegmentedRows:
    """The rows of several models, divided by the values of a group column, or not divided."""

    models: Mapping[str, Model]
    name: str | None  # of the column
    values: tuple[str | None, ...]  # the segments, in the order of their values; (None,) if the rows are not divided
    parts: Mapping[str, Mapping[str, Callable[[], Model]]] = field(default_factory=dict)  # by model and segment

    @classmethod
    def split(cls, models: Mapping[str, Model], by: Any, all_rows: Sequence[Model]) -> Self:
        """Divide the rows by the column that is named `by`; raise TO409 if a model does not have it.

        `all_rows` are those of each model with the rows of weight 0, of which the segments are listed as well.
        """
        if by is None:
            return cls(models, None, (None,))
        name = by if isinstance(by, str) else DEFAULT_NAME
        parts = {model_name: _divide(model, name, model_name) for model_name, model in models.items()}
        values = {
            _segment_name(value): value
            for model_name, rows in zip(models, all_rows, strict=True)
            for value in _values(_find_column(_groups(rows), name, model_name))
        }
        are_numbers = all(isinstance(value, (int, float)) for value in values.values())
        keys = sorted(values, key=lambda key: values[key] if are_numbers else key)
        return cls(models, name, tuple(keys), parts)

    def are_other_segments(self, name: str, other_name: str) -> bool:
        """Return whether two models with equally many rows have them in different segments."""
        if self.name is None:
            return False
        groups, others = (_groups(self.models[model])[self.name] for model in (name, other_name))
        return np.shape(groups) == np.shape(others) != () and not np.array_equal(groups, others)  # () of tallies

    @property
    def is_divided(self) -> bool:
        """Whether there are segments."""
        return self.name is not None

    def rows(self, segment: str | None) -> dict[str, Model]:
        """Return the rows of each model in a segment; models without rows in it are left out."""
        if segment is None:
            return dict(self.models)
        return {name: part[segment]() for name, part in self.parts.items() if segment in part}

    def cell_test(self, lenses: Any, alpha: float, resamples: int | None) -> CellTest:
        """Return the test of every cell: its lens, and so many null draws that one cell can be significant."""
        n_cells = len(self.models) * len(self.values)
        sufficient = sufficient_draws(alpha, n_cells)
        n_draws = resamples or max(MIN_DRAWS, min(2 * sufficient + 1, MAX_DRAWS), sufficient)
        return CellTest(self._test_lens(lenses), n_draws, n_cells, alpha)

    def test_cells(
        self, cell_test: CellTest, weight_kind: str | None, seed: int, notify: Callable[[str], None]
    ) -> tuple[tuple[SegmentCell, ...], list[Note]]:
        """Test the calibration of every model in every segment, with Holm's adjustment for all cells.

        The notes are those of the tests, and those on the cells that are not judged.
        """
        cells, pvalues, notes = [], [], []
        for segment in self.values:
            rows = self.rows(segment)
            for name in self.models:
                notify(f"testing {name} in {segment}")
                n, verdict, reason = 0, None, "no rows"
                if name in rows:
                    n = rows[name].n
                    verdict, reason = cell_test.run(rows[name], weight_kind, seed)
                cells.append((name, str(segment), n, reason))
                pvalues.append(np.nan if verdict is None else verdict.pvalue)
                notes += [(note, name, str(segment)) for note in (verdict.notes if verdict else ())]
        notes = [noted for noted in notes if noted[0].code != UNOBSERVED_CLASS]
        judged = tuple(
            _judge(*cell, p, adjusted, cell_test.alpha)
            for cell, p, adjusted in zip(cells, pvalues, holm(pvalues), strict=True)
        )
        test_notes = merge_notes(notes, lambda noted: f"{len(noted):,} of {format_count(len(cells), 'cell')}")
        return judged, [*test_notes, *_not_judged_notes(judged)]

    def notes(self) -> list[Note]:
        """Return notes on all rows of each model that do not concern a single segment; none without segments."""
        notes = [
            (note, name, str(self.name))
            for name, model in self.models.items()
            for note in (data_notes(model) if self.is_divided else ())
            if note.code in ("TN167", UNOBSERVED_CLASS)
        ]
        return merge_notes(notes, lambda noted: list_some([name for name, _ in noted]))

    def _test_lens(self, lenses: Any) -> Lens:
        """Return the lens of the tests: the only one of the table, or else the default lens of the predictions."""
        first = next(iter(self.models.values()))
        lenses = lenses.tolist() if isinstance(lenses, np.ndarray) else lenses
        if isinstance(lenses, (list, tuple)):
            lenses = lenses[0] if len(lenses) == 1 else None
        return default_lens(first) if lenses is None else resolve_lens(first, lenses, None)


def _not_judged_notes(cells: Sequence[SegmentCell]) -> list[Note]:
    """Return a note on the cells that are not judged, with the reasons."""
    cells_by_reason: dict[str, list[str]] = {}
    for cell in cells:
        if cell.status == "not judged":
            cells_by_reason.setdefault(cell.reason, []).append(f"{cell.model} in {cell.segment}")
    texts = [f"{list_some(names)} ({reason})" for reason, names in cells_by_reason.items()]
    return [Note("TN287", f"Not judged: {'; '.join(texts)}.")] if texts else []


def _divide(model: Any, column: str, name: str) -> dict[str, Callable[[], Model]]:
    """Return, for each value of a group column, the function that returns the rows with this value."""
    groups = _find_column(_groups(model), column, name)
    if isinstance(groups, Mapping):
        return {_segment_name(value): partial(_identity, tally) for value, tally in groups.items() if tally.weight > 0}
    values, codes = np.unique(groups, return_inverse=True)
    order = np.argsort(codes.reshape(-1), kind="stable")
    ends = np.searchsorted(codes.reshape(-1)[order], np.arange(1, len(values)))
    parts = zip(values.tolist(), np.split(order, ends), strict=True)
    return {_segment_name(value): partial(model.__getitem__, rows) for value, rows in parts}


def _groups(model: Model) -> Mapping[str, Any]:
    return model.groups if isinstance(model, Tally) else model.group


def _values(groups: Any) -> list[Any]:
    """Return the values of a group column, or of the tallies by value."""
    return list(groups) if isinstance(groups, Mapping) else np.unique(groups).tolist()


def _segment_name(value: Any) -> str:
    """Return the name of a segment: equal numbers have the same one, because NaN makes a column of integers floats."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _find_column(groups: Mapping[str, Any], column: str, name: str) -> Any:
    """Return a group column of the model of this name, or raise TO409."""
    if column not in groups:
        got = f"{name} with {', '.join(groups) or 'no group column'}"
        fix = (
            f"Pass read(data, group={column!r}), Predictions(y, p, group={{{column!r}: …}}), or the segment of each row"
            " as by=."
        )
        raise InputError("TO409", f"The predictions have no group column {column}.", got, fix)
    return groups[column]


def _identity(tally: Tally) -> Tally:
    return tally


def _judge(name: str, segment: str, n: int, reason: str, p: float, adjusted: float, alpha: float) -> SegmentCell:
    """Return the result of a cell from its p-value, NaN if it was not judged, and the adjusted one."""
    if np.isnan(p):
        return SegmentCell(name, segment, n, None, None, "not judged", reason)
    status = "miscalibrated" if adjusted <= alpha + LEVEL_TOLERANCE else "not rejected"
    return SegmentCell(name, segment, n, p, adjusted, status)
