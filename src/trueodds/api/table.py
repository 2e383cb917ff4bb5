"""Evaluate several models by several measures, in a table for a paper with significantly best values in bold."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from trueodds.api.arguments import reported_call_settings, resolve_lens
from trueodds.api.array_arguments import accept_arrays_of_models
from trueodds.api.compare import default_model_name, name_models, prepare_models, resolve_rows_of_models
from trueodds.api.measure import measure
from trueodds.api.table_measures import Lenses, Measures, RequestedColumn, choose_columns
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.progress import Progress, report_progress
from trueodds.core.results import Estimate
from trueodds.core.rng import as_generator
from trueodds.core.settings import Level, check
from trueodds.core.table_columns import MeasureColumn, TableComparison
from trueodds.core.table_results import ResultTable
from trueodds.data.predictions import Predictions
from trueodds.hypotests.multiple_testing import LEVEL_TOLERANCE, sufficient_draws
from trueodds.io.models import is_pair
from trueodds.kernels.holm import holm
from trueodds.resampling.comparison.compare_models import ModelComparison
from trueodds.resampling.comparison.differences import MIN_DECISIVE_UNITS, ErrorDifference
from trueodds.resampling.comparison.paired_rows import align_rows, count_common_ids, same_rows
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally

DEFAULT_MEASURES = ("accuracy", "ece", "debiased_l2", "brier", "log_loss")
DEFAULT_RESAMPLES = 2000  # bootstrap resamples of the intervals


@typing.overload
def table(
    models: Mapping[str, Any] | Sequence[Any],
    measures: Measures = ...,
    lenses: Lenses = None,
    *,
    interval: str | None = "auto",
    level: float = 0.95,
    **settings: Any,
) -> ResultTable: ...
@typing.overload
def table(
    y_true: Any,
    models: Mapping[str, Any] | Sequence[Any],
    measures: Measures = ...,
    lenses: Lenses = None,
    *,
    interval: str | None = "auto",
    level: float = 0.95,
    **settings: Any,
) -> ResultTable: ...
@accept_arrays_of_models  # type: ignore[misc]  # y_true is combined with the models before the call
def table(
    models: Any,
    measures: Any = DEFAULT_MEASURES,
    lenses: Any = None,
    *,
    lens: Any = None,
    interval: str | None = "auto",
    bold: bool = True,
    level: float = 0.95,
    resamples: int | None = None,
    paired: bool | None = None,
    weight_kind: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> ResultTable:
    """Evaluate several models by several measures, as a table for a paper.

    Each cell has the value, its confidence interval and its noise floor, as `measure` returns them. A value is bold
    only if its model is significantly better than every other model of the table. No value of a column is bold if two
    models could be equally good.

    Parameters
    ----------
    models : mapping of str to Predictions, (y_true, y_prob), Source or Tally
        The models by name; a list names them `a`, `b`, `c`, …. Arrays may be passed as ``table(y_true, {"a": p_a, "b":
        p_b})``.
    measures : sequence or mapping, default=("accuracy", "ece", "debiased_l2", "brier", "log_loss")
        The columns: names of estimators (``trueodds list estimators`` prints them), instances with their settings, or
        ``"accuracy"``. A mapping sets the headings, as in ``{"ECE": "ece", "NLL": "log_loss"}``.
    lenses : sequence of str, Lens or None, optional
        Lenses through which every measure is computed, as in `measure`; each gives a column. None stands for the
        default lens of a measure. Accuracy has no other lens.
    lens : str, Lens or list, optional
        The same as `lenses`, under the name that other functions have.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None, default="auto"
        Method of the confidence intervals. None omits intervals, noise floors and bold values, which is fast.
    bold : bool, default=True
        Whether the models are compared. False omits bold values, which is faster.
    level : float, default=0.95
        Confidence level of the intervals. Bold values have a familywise error rate of at most 1 − `level`.
    resamples : int, optional
        Number of bootstrap resamples, 2,000 by default.
    paired : bool, optional
        Whether the models have predictions for the same rows. They are paired as in `compare`: by the ids of the rows
        if all models have them, else in their order. With True and ids, all cells are those of the rows that all models
        have, and note TN272 counts the others. By default pairing is inferred from equal sets of ids, else from equal
        outcomes, weights and clusters. Models with different rows are not compared, which a note reports.
    weight_kind : {"importance", "frequency"}, optional
        Whether a row of weight 2 is one row that counts double (``"importance"``, the default) or two observed rows
        (``"frequency"``). If it is not given and the weights are whole numbers, note TN286 describes the difference.
    rng : int or numpy.random.Generator, default=0
        Seed or random generator. The same call with the same seed returns the same table.
    progress : bool or callable, optional
        By default, a call that takes longer than two seconds shows a bar on a terminal or in a notebook; False turns it
        off. A function is called with the fraction of the work that is done, from 0 to 1, and the name of the current
        step.
    **settings
        Settings of the named estimators, such as `bins` or `partition`. Each applies to the measures that have it.

    Returns
    -------
    ResultTable
        The table, with `frame()`, `to_markdown()`, `to_latex()`, `to_csv()` and `to_dict()`.

    Raises
    ------
    InputError
        As for `measure`. Also TO205 for no models, for names that are not distinct, for columns with the same heading,
        and for ``paired=True`` with different rows.

    See Also
    --------
    compare : Compare two models or rank several by one measure.

    Notes
    -----
    Bold values come from the paired comparisons of `compare`. The model with the best value of a column is compared
    with every other one. It is better than all of them only if every single comparison says so, so that the largest of
    these p-values tests the claim (an intersection–union test [1]_). The p-values of the columns are adjusted by Holm's
    method [2]_. The probability that any value is bold although its model is not better than every other one is
    therefore about 1 − `level` at most, if each comparison has its nominal size. The t test of a mean does not have it
    where few rows decide, such as those of a rare outcome: a model that underestimates a rare event wins in samples
    that by chance contain too few of them. No value is therefore bold if :math:`n \\le 25 G^2` for n rows whose
    differences have a skewness G of the opposite sign of their mean (Cochran's rule [3]_); a note says so.

    In simulated tables of five measures for three models and 500 rows, 3 of 300 tables had a bold value where all
    models were equally good (Wilson 95 % interval 0.3 to 2.9 %), and 4 of 300 where two were equally good and one worse
    (0.5 to 3.4 %). Where one model was better, a value was bold in 279 of 300 tables (90 to 95 %).

    References
    ----------
    .. [1] Berger (1982). Multiparameter hypothesis testing and acceptance sampling.
    .. [2] Holm (1979). A simple sequentially rejective multiple test procedure.
    .. [3] Cochran (1977). Sampling Techniques, third edition, section 2.15.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25
    >>> table = to.table(y, {"informed": p, "constant": [0.75] * 100}, ["brier", "log_loss"])
    >>> table.bold
    {'brier': 'informed', 'log_loss': 'informed'}
    """
    named_models, progress_context = _name_models(models), report_progress(progress)
    generator, level = as_generator(rng), check("level", level, Level, 0.95)
    seed = int(rng) if isinstance(rng, (int, np.integer)) else int(generator.integers(2**31))
    interval_spec = IntervalSpec(interval, level, DEFAULT_RESAMPLES if resamples is None else resamples)
    bold = check("bold", bold, bool)
    if lens is not None:
        if lenses is not None:
            raise InputError("TO202", "lens and lenses are the same argument.", "both", "Pass one of them.")
        lenses = lens
    columns = choose_columns(measures, lenses, settings, seed, generator)
    rows, notes = _align_models(resolve_rows_of_models(named_models, weight_kind), paired)
    is_compared, comparison_notes = _check_comparable(rows, paired) if bold and interval is not None else (False, [])
    notes += comparison_notes
    first_model = next(iter(rows.values()))
    evaluated = []
    n_steps = len(columns) * (len(rows) + is_compared)
    with progress_context as report:
        for number, column in enumerate(columns):
            column_lens = resolve_lens(first_model, column.lens, column.method)
            n_steps_done = number * n_steps / len(columns)
            estimates: dict[str, Estimate] = {}
            method, models_of_column = prepare_models(column.method, rows)
            for name, model in models_of_column.items():
                report((n_steps_done + len(estimates)) / n_steps, f"{column.label} of {name}")
                estimates[name] = measure(
                    model, method, lens=column_lens, interval=interval, level=level, resamples=resamples,
                    weight_kind=weight_kind, rng=seed,
                )  # fmt: skip
            pairs = []
            if is_compared:
                report((n_steps_done + len(rows)) / n_steps, f"{column.label}: comparing the models")
                comparison = ModelComparison(method, column_lens, column_lens.aggregate, interval_spec, paired=paired)
                pairs = comparison.compare_all_pairs(models_of_column, seed)
            evaluated.append(_EvaluatedColumn(column, str(column_lens), estimates, pairs))
        report(1.0, "adjusting the p-values")
    adjusted_pvalues = holm([column.pvalue for column in evaluated])
    table_columns = tuple(
        column.to_measure_column(p, 1 - level) for column, p in zip(evaluated, adjusted_pvalues, strict=True)
    )
    notes += [*_resample_notes(evaluated, 1 - level), *_doubt_notes(evaluated), *_collect_notes(table_columns)]
    call_settings: dict[str, Any] = {"interval": interval, "resamples": interval_spec.resamples, "bold": bold}
    return ResultTable(
        tuple(rows),
        _check_distinct_labels(table_columns),
        max(model.n for model in rows.values()),
        level,
        is_compared,
        call_settings | settings | reported_call_settings(rng, first_model, weight_kind),
        tuple(dict.fromkeys(notes)),
    )


@dataclass(frozen=True)
class _EvaluatedColumn:
    """A column with the estimates of all models and the differences of all pairs of models."""

    column: RequestedColumn
    lens: str
    estimates: Mapping[str, Estimate]  # by the name of the model
    pairs: Sequence[ErrorDifference]  # empty if the models are not compared

    def to_measure_column(self, adjusted_pvalue: float, alpha: float) -> MeasureColumn:
        """Return the column of the result; its best value is bold if the adjusted p-value is at most `alpha`."""
        method = self.column.method
        direction = "lower"
        if method.best_value_setting:
            direction = "target" if method.has_target else "higher"
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
        )

    @cached_property
    def candidate(self) -> str | None:
        """The model with the best value, which may become bold.

        None if the models are not compared, or if a value is infinite or undefined.
        """
        losses = {
            name: float(self.column.method.as_loss(np.float64(estimate.value)))
            for name, estimate in self.estimates.items()
        }
        if not self.pairs or not all(np.isfinite(loss) for loss in losses.values()):
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
        """The significant differences of the candidate that depend on too few rows."""
        return [
            pair
            for pair in self._pairs_of_candidate
            if pair.pvalue is not None and pair.pvalue <= 1 - pair.a.interval_spec.level and pair.is_doubtful
        ]

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


def _name_models(models: Any) -> dict[str, Any]:
    """Return the models of a mapping or a list by name, or raise TO205 for anything else."""
    example = "For instance table({'a': (y_true, p_a), 'b': (y_true, p_b)})."
    if isinstance(models, Mapping):
        names, values = [str(name) for name in models], list(models.values())
    elif isinstance(models, (list, tuple)) and not is_pair(models):
        names, values = [default_model_name(i) for i in range(len(models))], list(models)
    else:
        raise InputError("TO205", "A table needs a mapping of names to models.", describe(models), example)
    if not values:
        raise InputError("TO205", "A table needs at least one model.", "none", example)
    return name_models(values, names)


def _align_models(
    rows: Mapping[str, Predictions | Tally], paired: bool | None
) -> tuple[Mapping[str, Predictions | Tally], list[Note]]:
    """Return the models with their rows in one order, by the ids of the rows as in `compare`, and notes."""
    predictions = {name: model for name, model in rows.items() if isinstance(model, Predictions)}
    return align_rows(predictions, paired) if len(predictions) == len(rows) else (rows, [])


def _check_comparable(rows: Mapping[str, Predictions | Tally], paired: bool | None) -> tuple[bool, list[Note]]:
    """Return whether the models have the same rows, so that they can be compared, and a note if they have not."""
    (first_name, first), *others = rows.items()
    for name, model in others:
        hint = ""
        if not (isinstance(first, Predictions) and isinstance(model, Predictions)):
            same, reason = False, "a tally does not store rows"
        else:
            same, reason = same_rows(first, model, paired)
            reason = reason or "paired=False"
            if paired is None and count_common_ids(first, model):
                hint = " Pass paired=True to compare the common rows."
        if not same:
            text = f"The models were not compared, so no value is bold ({first_name} and {name}: {reason}).{hint}"
            return False, [Note("TN227", text)]
    return bool(others), []


def _check_distinct_labels(columns: tuple[MeasureColumn, ...]) -> tuple[MeasureColumn, ...]:
    """Return the columns; raise TO205 if two have the same heading."""
    labels = [column.label for column in columns]
    if repeated := [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        fix = "Pass each measure once, or a mapping of headings to measures."
        raise InputError("TO205", "Two columns have the same heading.", ", ".join(repeated), fix)
    return columns


def _resample_notes(columns: Sequence[_EvaluatedColumn], alpha: float) -> list[Note]:
    """Return a note on the columns with too few resamples for a bold value.

    In these, the smallest possible p-value of a comparison, multiplied by the number of columns as by Holm's
    adjustment, is above `alpha`.
    """
    limited = [
        column.column.label
        for column in columns
        if any(len(columns) * (pair.min_pvalue or 0.0) > alpha + LEVEL_TOLERANCE for pair in column.pairs)
    ]
    if not limited:
        return []
    text = (
        f"Holm's correction for {len(columns):,} measures may prevent bold values of {', '.join(limited)}, because "
        f"the resamples are few. Pass resamples={sufficient_draws(alpha, len(columns)):,}."
    )
    return [Note("TN209", text)]


def _doubt_notes(columns: Sequence[_EvaluatedColumn]) -> list[Note]:
    """Return a note on columns without a bold value because a significant difference depends on too few rows."""
    no_errors_text = "neither of two models made an error"
    n_rows_text = f"a difference depends on fewer than {MIN_DECISIVE_UNITS} rows or clusters in effect"
    labels_of_reason: dict[str, list[str]] = {}
    for column in columns:
        reasons = [no_errors_text if pair.decisive_units == 0 else n_rows_text for pair in column.doubtful_pairs]
        for reason in dict.fromkeys(reasons):
            labels_of_reason.setdefault(reason, []).append(column.column.label)
    return [
        Note("TN273", f"{', '.join(labels)}: no value is bold, because {reason}, so that its p-value is inaccurate.")
        for reason, labels in labels_of_reason.items()
    ]


def _collect_notes(columns: Sequence[MeasureColumn]) -> list[Note]:
    """Return one note per code, with the cells that it concerns; of different texts, the first is given with its cell.

    The notes of every cell are those of its estimate.
    """
    notes_by_code: dict[str, list[tuple[Note, str, str]]] = {}  # with model and label
    for column in columns:
        for name, estimate in column.estimates.items():
            for note in estimate.notes:
                notes_by_code.setdefault(note.code, []).append((note, name, column.label))
    collected = []
    for cells in notes_by_code.values():
        first_note, first_name, first_label = cells[0]
        first = f", first in {first_name} ({first_label})" if any(note != first_note for note, *_ in cells) else ""
        text = f"{_name_cells([cell[1:] for cell in cells], len(columns))}{first}: {first_note.text}"
        collected.append(replace(first_note, text=text))
    return collected


def _name_cells(cells: Sequence[tuple[str, str]], n_columns: int) -> str:
    """Return the models of cells, with the labels of their columns unless these are all columns.

    >>> _name_cells([("a", "ECE"), ("b", "ECE"), ("c", "ECE"), ("c", "NLL")], 2)
    'a, b (ECE); c'
    """
    labels_of_model: dict[str, dict[str, None]] = {}
    for name, label in cells:
        labels_of_model.setdefault(name, {})[label] = None
    models_of_labels: dict[tuple[str, ...], list[str]] = {}
    for name, labels in labels_of_model.items():
        models_of_labels.setdefault(tuple(labels), []).append(name)
    return "; ".join(
        ", ".join(models) + ("" if len(labels) == n_columns else f" ({', '.join(labels)})")
        for labels, models in models_of_labels.items()
    )
