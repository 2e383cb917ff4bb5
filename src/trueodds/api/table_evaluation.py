"""Evaluate one column of a table of models: the estimates, the differences of models or versions, and notes on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.api.measure import measure
from trueodds.api.table_columns import MeasureColumn, TableComparison, VersionDifference
from trueodds.api.table_measures import RequestedColumn
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import VERSION_SEPARATOR, format_count
from trueodds.core.results import Estimate
from trueodds.data.predictions import Predictions
from trueodds.estimators.base import Estimator
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE, sufficient_draws
from trueodds.lenses.base import Lens
from trueodds.resampling.comparison.compare_models import ModelComparison
from trueodds.resampling.comparison.differences import MIN_DECISIVE_UNITS, ErrorDifference
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally

OTHER_SEGMENTS_TEXT = "their rows are in different segments"
UNOBSERVED_CLASS = "TN185"  # code of the note on a class that was never observed


@dataclass(frozen=True)
class ColumnEvaluation:
    """The settings of a table, which are those of every cell."""

    interval_spec: IntervalSpec
    resamples: int | None
    paired: bool | None
    weight_kind: str | None
    seed: int
    is_compared: bool
    versions: tuple[str, ...]
    are_other_segments: Callable[[str, str], bool]  # whether two models have the same rows in different segments

    def evaluate(
        self,
        column: RequestedColumn,
        lens: Lens,
        segment: str | None,
        rows: Mapping[str, Predictions | Tally],
        notify: Callable[[str], None],
    ) -> EvaluatedColumn:
        """Return a column: the estimates of all models on these rows, and the differences of models or versions.

        In a segment, a model on whose rows the measure is undefined has no estimate, but a reason.
        """
        spec, suffix = self.interval_spec, "" if segment is None else f" in {segment}"
        estimates: dict[str, Estimate] = {}
        problems: dict[str, InputError] = {}
        prepared: dict[str, tuple[Estimator, Predictions | Tally]] = {}
        for name, model in rows.items():
            notify(f"{column.label} of {name}{suffix}")
            try:
                method, prepared_rows = column.method.prepare(model)
                estimates[name] = measure(
                    prepared_rows, method, lens=lens, interval=spec.interval, level=spec.level,
                    resamples=self.resamples, weight_kind=self.weight_kind, rng=self.seed,
                )  # fmt: skip
                prepared[name] = method, prepared_rows
            except InputError as problem:
                if segment is None:
                    raise
                problems[name] = problem
        pairs: list[ErrorDifference] = []
        notes: list[Note] = []
        compared = {name: model for name, (_, model) in prepared.items()}
        if (self.is_compared or self.versions) and compared:
            notify(f"{column.label}{suffix}: comparing the {'versions' if self.versions else 'models'}")
            method = next(iter(prepared.values()))[0]
            for group in self._compared_together(compared):
                is_unpaired = bool(self.versions) and self.are_other_segments(*group)
                paired = False if is_unpaired else self.paired
                comparison = ModelComparison(method, lens, lens.aggregate, spec, paired=paired)
                group_pairs, group_notes = comparison.compare_all_pairs(group, self.seed)
                pairs += group_pairs
                notes += [note for note in group_notes if note.code == "TN227"]
                if is_unpaired:
                    text = f"Compared as independent samples ({' and '.join(group)}: {OTHER_SEGMENTS_TEXT})."
                    notes.append(Note("TN227", text))
        return EvaluatedColumn(column, str(lens), estimates, pairs, segment, self.versions, problems, notes)

    def _compared_together(self, models: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return all models, or each later version of a model with the first one."""
        if not self.versions:
            return [dict(models)] if len(models) > 1 else []
        first, *later = (f"{VERSION_SEPARATOR}{version}" for version in self.versions)
        names = [name.removesuffix(first) for name in models if name.endswith(first)]
        return [
            {f"{name}{version}": models[f"{name}{version}"], f"{name}{first}": models[f"{name}{first}"]}
            for name in names
            for version in later
            if f"{name}{version}" in models
        ]


@dataclass(frozen=True)
class EvaluatedColumn:
    """A column with the estimates of all models and the differences of all pairs of models."""

    column: RequestedColumn
    lens: str
    estimates: Mapping[str, Estimate]  # by the name of the model
    pairs: Sequence[ErrorDifference]  # of models, or of the versions of each model; empty if none are compared
    segment: str | None = None
    versions: tuple[str, ...] = ()  # of every model; the pairs are then those of versions
    problems: Mapping[str, InputError] = field(default_factory=dict)  # why models have no estimate, by name
    unpaired_notes: Sequence[Note] = ()  # on the pairs that are compared as independent samples, one for each

    def to_measure_column(
        self, adjusted_pvalue: float, alpha: float, adjusted_differences: Iterator[float]
    ) -> MeasureColumn:
        """Return the column of the result; its best value is bold if the adjusted p-value is at most `alpha`.

        `adjusted_differences` are the adjusted p-values of the differences of versions, of this column and later ones.
        """
        method = self.column.method
        direction = "lower"
        if method.best_value_setting:
            direction = "target" if method.has_target else "higher"
        comparisons, differences = [], []
        if self.versions:
            differences = [self._version_difference(pair, next(adjusted_differences)) for pair in self.pairs]
        else:
            comparisons = [TableComparison(pair.a.name, pair.b.name, pair.value, pair.pvalue) for pair in self.pairs]
        return MeasureColumn(
            self.column.label,
            method.name,
            self.lens,
            direction,
            method.best_value,
            self.estimates,
            self.candidate if adjusted_pvalue <= alpha else None,
            tuple(comparisons),
            None if np.isnan(self.pvalue) else self.pvalue,
            None if np.isnan(adjusted_pvalue) else adjusted_pvalue,
            self.segment,
            tuple(differences),
        )

    def _version_difference(self, pair: ErrorDifference, adjusted_pvalue: float) -> VersionDifference:
        """Return the difference of two versions of a model."""
        spec, first = pair.a.interval_spec, self.versions[0]
        model = pair.b.name.removesuffix(f"{VERSION_SEPARATOR}{first}")
        return VersionDifference(
            model,
            pair.a.name.removeprefix(f"{model}{VERSION_SEPARATOR}"),
            first,
            pair.value,
            None if spec.interval is None else pair.interval(spec.level),
            _tested_pvalue(pair),
            None if np.isnan(adjusted_pvalue) else adjusted_pvalue,
            pair.paired,
        )

    @property
    def difference_pvalues(self) -> list[float]:
        """The p-value of each difference of versions: 1 if it depends on too few rows, NaN if it is undefined."""
        if not self.versions:
            return []
        return [
            np.nan if (p := _tested_pvalue(pair)) is None else 1.0 if pair.is_doubtful else p for pair in self.pairs
        ]

    @cached_property
    def candidate(self) -> str | None:
        """The model with the best value, which may become bold.

        None if the models are not compared, or if a value is infinite or undefined.
        """
        losses = {
            name: float(self.column.method.as_loss(np.float64(estimate.value)))
            for name, estimate in self.estimates.items()
        }
        if self.versions or not self.pairs or not all(np.isfinite(loss) for loss in losses.values()):
            return None
        return min(losses, key=lambda name: losses[name])

    @cached_property
    def pvalue(self) -> float:
        """P-value of the claim that the candidate is better than every other model; NaN without a candidate.

        This is the largest p-value of its comparisons with the others (an intersection–union test, Berger 1982). It is
        1 if a comparison is doubtful or does not favor the candidate.
        """
        if self.candidate is None:
            return np.nan
        pvalues = [
            1.0 if pair.pvalue is None or pair.is_doubtful or not self._favors(self.candidate, pair) else pair.pvalue
            for pair in self._pairs_of_candidate
        ]
        return max(pvalues)

    @property
    def _pairs_of_candidate(self) -> list[ErrorDifference]:
        """The differences between the candidate and every other model."""
        return [pair for pair in self.pairs if self.candidate in (pair.a.name, pair.b.name)]

    @property
    def doubtful_pairs(self) -> list[ErrorDifference]:
        """The significant differences of the candidate, or of versions, that depend on too few rows."""
        pairs = self.pairs if self.versions else self._pairs_of_candidate
        pvalues = [_tested_pvalue(pair) for pair in pairs]
        return [
            pair
            for pair, p in zip(pairs, pvalues, strict=True)
            if p is not None and p <= 1 - pair.a.interval_spec.level and pair.is_doubtful
        ]

    @property
    def heading(self) -> str:
        """The heading, with the segment if there is one."""
        return self.column.label if self.segment is None else f"{self.column.label} in {self.segment}"

    def _favors(self, model: str, pair: ErrorDifference) -> bool:
        """Return whether the difference of the errors or scores a − b favors this model, one of a and b.

        It favors neither if it is 0, or if its interval lies on the other side of 0.
        """
        if pair.value == 0:
            return False
        interval = pair.interval(pair.a.interval_spec.level)
        if interval is not None and (interval.high < 0 < pair.value or pair.value < 0 < interval.low):
            return False
        method = self.column.method
        larger_is_better = bool(method.best_value_setting) and not method.has_target
        better = pair.a.name if (pair.value > 0) == larger_is_better else pair.b.name
        return better == model


def _tested_pvalue(pair: ErrorDifference) -> float | None:
    """Return the p-value of a difference; None if it is undefined, or without intervals, from which it follows."""
    if pair.a.interval_spec.interval is None or pair.pvalue is None or np.isnan(pair.pvalue):
        return None
    return pair.pvalue


def require_estimate(columns: Sequence[EvaluatedColumn]) -> None:
    """Raise the error of a measure that no cell has; `columns` are those of the measure, one per segment."""
    problems = [problem for column in columns for problem in column.problems.values()]
    if problems and not any(column.estimates for column in columns):
        raise problems[0]


def resample_notes(columns: Sequence[EvaluatedColumn], alpha: float) -> list[Note]:
    """Return a note on the columns with too few resamples for a bold value.

    In these, the smallest possible p-value of a comparison, multiplied by the number of columns (or of differences of
    versions) as by Holm's adjustment, is above `alpha`.
    """
    has_versions = any(column.versions for column in columns)
    n_tests, noun = len(columns), "columns" if any(column.segment is not None for column in columns) else "measures"
    if has_versions:
        n_tests, noun = sum(len(column.pairs) for column in columns), "differences"
    limited = [
        column.heading
        for column in columns
        if any(
            n_tests * (pair.min_pvalue or 0.0) > alpha + LEVEL_TOLERANCE
            for pair in column.pairs
            if pair.a.interval_spec.interval is not None
        )
    ]
    if not limited:
        return []
    text = (
        f"Holm's correction for {n_tests:,} {noun} may prevent bold values of {', '.join(limited)}, because "
        f"the resamples are few. Pass ⟨resamples={sufficient_draws(alpha, n_tests):,}⟩."
    )
    return [Note("TN209", text)]


def doubt_notes(columns: Sequence[EvaluatedColumn]) -> list[Note]:
    """Return a note on columns without a bold value because a significant difference depends on too few rows."""
    no_errors_text = "neither of two models made an error"
    n_rows_text = f"the effective number of rows or clusters behind a difference is below {MIN_DECISIVE_UNITS}"
    labels_of_reason: dict[str, list[str]] = {}
    for column in columns:
        reasons = [no_errors_text if pair.decisive_units == 0 else n_rows_text for pair in column.doubtful_pairs]
        for reason in dict.fromkeys(reasons):
            labels_of_reason.setdefault(reason, []).append(column.heading)
    return [
        Note("TN273", f"{', '.join(labels)}: no value is bold, because {reason}, so that its p-value is inaccurate.")
        for reason, labels in labels_of_reason.items()
    ]


def collect_notes(columns: Sequence[MeasureColumn]) -> list[Note]:
    """Return one note per code, with the cells that it concerns; of different texts, the first is given with its cell.

    The notes of every cell are those of its estimate. In a table of segments, only the first cell is named.
    """
    has_segments, n_cells = columns[0].segment is not None, sum(len(column.estimates) for column in columns)
    notes = [
        (note, name, column.label if column.segment is None else f"{column.label} in {column.segment}")
        for column in columns
        for name, estimate in column.estimates.items()
        for note in estimate.notes
        if not (has_segments and note.code == UNOBSERVED_CLASS)  # which is a fact about all rows of a model
    ]
    if has_segments:
        return merge_notes(notes, lambda cells: f"{len(cells):,} of {format_count(n_cells, 'estimate')}")
    return merge_notes(notes, lambda cells: _name_cells(cells, len(columns)))


def merge_notes(
    notes: Iterable[tuple[Note, str, str]], name_cells: Callable[[list[tuple[str, str]]], str]
) -> list[Note]:
    """Return one note per code that names the cells; of different texts, the first is given with its cell.

    Each note comes with the name of the model and the heading or segment of its cell.
    """
    notes_by_code: dict[str, list[tuple[Note, str, str]]] = {}
    for cell in notes:
        notes_by_code.setdefault(cell[0].code, []).append(cell)
    merged = []
    for cells in notes_by_code.values():
        first_note, first_name, first_label = cells[0]
        first = f", first in {first_name} ({first_label})" if any(note != first_note for note, *_ in cells) else ""
        names = name_cells([cell[1:] for cell in cells])
        merged.append(replace(first_note, text=f"{names}{first}: " + first_note.text))
    return merged


def unpaired_notes(columns: Sequence[EvaluatedColumn]) -> list[Note]:
    """Return a note on versions that are compared as independent samples, with the first reason."""
    notes = [(note, column.heading) for column in columns for note in column.unpaired_notes]
    if not notes:
        return []
    (first, heading), n_pairs = notes[0], sum(len(column.pairs) for column in columns)
    where = "" if len({note for note, _ in notes}) == 1 else f", first in {heading}"
    return [replace(first, text=f"{len(notes):,} of {format_count(n_pairs, 'difference')}{where}: " + first.text)]


def problem_notes(columns: Sequence[EvaluatedColumn]) -> list[Note]:
    """Return a note on the cells without an estimate, because the measure is undefined there."""
    texts = [
        f"{column.heading} of {name} ({problem.code}: {problem.problem.rstrip('.')})"
        for column in columns
        for name, problem in column.problems.items()
    ]
    return [Note("TN287", f"Not computed: {list_some(texts)}.")] if texts else []


def list_some(names: Sequence[str], n_named: int = 6) -> str:
    """Return the names of cells, of many the first ones and the number of the others.

    >>> list_some([f"a in {number}" for number in range(8)])
    'a in 0; a in 1; a in 2; a in 3; a in 4; a in 5; 2 more'
    """
    more = len(names) - n_named
    return "; ".join([*names[:n_named], *([f"{more:,} more"] if more > 0 else [])])


def _name_cells(cells: Sequence[tuple[str, str]], n_columns: int) -> str:
    """Return the models of cells, with the labels of their columns unless these are all columns.

    >>> _name_cells([("a", "ECE"), ("b", "ECE"), ("c", "ECE"), ("c", "NLL")], 2)
    'a, b (ECE); c'
    >>> _name_cells([("a, raw", "ECE"), ("a, scaled", "ECE")], 1)  # models with versions
    'a, raw; a, scaled'
    """
    labels_of_model: dict[str, dict[str, None]] = {}
    for name, label in cells:
        labels_of_model.setdefault(name, {})[label] = None
    models_of_labels: dict[tuple[str, ...], list[str]] = {}
    for name, labels in labels_of_model.items():
        models_of_labels.setdefault(tuple(labels), []).append(name)
    return "; ".join(
        ("; " if any(VERSION_SEPARATOR in model for model in models) else ", ").join(models)
        + ("" if len(labels) == n_columns else f" ({', '.join(labels)})")
        for labels, models in models_of_labels.items()
    )
