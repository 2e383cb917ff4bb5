"""Evaluate several models by several measures, in a table for a paper with significantly best values in bold."""

from __future__ import annotations

import itertools
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trueodds.api.arguments import reported_call_settings, resolve_lens
from trueodds.api.array_arguments import accept_arrays_of_models
from trueodds.api.compare import default_model_name, name_models, resolve_all_of_models
from trueodds.api.table_columns import SegmentCell
from trueodds.api.table_evaluation import (
    OTHER_SEGMENTS_TEXT,
    ColumnEvaluation,
    EvaluatedColumn,
    collect_notes,
    doubt_notes,
    problem_notes,
    require_estimate,
    resample_notes,
    unpaired_notes,
)
from trueodds.api.table_measures import Lenses, Measures, RequestedColumn, choose_columns
from trueodds.api.table_results import ResultTable
from trueodds.api.table_segments import SegmentedRows, add_segments
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.progress import Progress, report_progress
from trueodds.core.pvalues import holm
from trueodds.core.rng import as_generator, seed_of
from trueodds.core.settings import Level, check
from trueodds.data.predictions import Predictions
from trueodds.io.models import is_pair, join_versions, versions_by_model
from trueodds.resampling.comparison.paired_rows import align_rows, count_common_ids, same_rows
from trueodds.resampling.intervals.method import IntervalSpec
from trueodds.tallies.tally import Tally, models_with_rows

DEFAULT_MEASURES = ("accuracy", "ece", "debiased_l2", "brier", "log_loss")
DEFAULT_RESAMPLES = 2000  # bootstrap resamples of the intervals


@typing.overload
def table(
    models: Mapping[str, Any] | Sequence[Any],
    measures: Measures = ...,
    lenses: Lenses = None,
    *,
    by: Any = None,
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
    by: Any = None,
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
    by: Any = None,
    interval: str | None = "auto",
    bold: bool | None = None,
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

    With ``by="segment"`` every model is evaluated on the rows of every segment, and its calibration is tested there,
    with one adjustment for all cells of models and segments. Models with versions, such as before and after
    recalibration, have a column per version and one for the difference, with a test.

    Parameters
    ----------
    models : mapping of str to Predictions, (y_true, y_prob), Source or Tally
        The models by name; a list names them `a`, `b`, `c`, …. Arrays may be passed as ``table(y_true, {"a": p_a, "b":
        p_b})``. A mapping of mappings, such as ``{"resnet": {"before": p, "after": q}}``, has versions of each model.
    measures : sequence or mapping, default=("accuracy", "ece", "debiased_l2", "brier", "log_loss")
        The columns: names of estimators (``trueodds list estimators`` prints them), instances with their settings, or
        ``"accuracy"``. A mapping sets the headings, as in ``{"ECE": "ece", "NLL": "log_loss"}``.
    lenses : sequence of str, Lens or None, optional
        Lenses through which every measure is computed, as in `measure`; each gives a column. None stands for the
        default lens of a measure. Accuracy has no other lens.
    lens : str, Lens or list, optional
        The same as `lenses`, under the name that other functions have.
    by : str or array (n,), optional
        Name of the group column whose values are the segments: every model is tested in each of them. A column of a
        file or data frame is read by its name. An array has the segment of each row.
    interval : {"auto", "percentile", "basic", "bca", "sun", "debiased"} or None, default="auto"
        Method of the confidence intervals. None omits intervals, noise floors and bold values, which is fast.
    bold : bool, optional
        Whether the models are compared. False omits bold values, which is faster. By default models are compared,
        except with `by`. Models with versions are not compared with each other.
    level : float, default=0.95
        Confidence level of the intervals. Bold values have a familywise error rate of at most 1 − `level`, and so have
        the tests of the segments.
    resamples : int, optional
        Number of bootstrap resamples, 2,000 by default, and of null draws of each test of a segment: by default 999, or
        up to 9,999 for many cells (more if no cell could be significant otherwise).
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
    progress : as in `report_progress`
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
        for different versions of the models or names of versions of which one ends like another (``"T=2, raw"`` and
        ``"raw"``), for ``bold=True`` with versions, and for ``paired=True`` with different
        rows; TO409 (TO304 for a file or data frame) if a model does not have the column `by`.

    See Also
    --------
    compare : Compare two models or rank several by one measure.
    by_group : Test the subgroups of one model on joint null draws, with the gaps between them.

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
    (0.5 to 3.4 %). Where one model was better, a value was bold in 277 of 300 tables (89 to 95 %).

    With `by`, the test ``"omnibus"`` examines each model in each segment through the default lens, or through the only
    one of `lenses`. Its p-values are adjusted by Holm's method for all cells, which is valid although the cells of
    several models have the same rows. Cells with fewer than 25 rows (or effective clusters, as TN271 counts them) are
    not judged, but they count in the adjustment, and have their values; note TN287 names them. With clustered rows the
    test is approximate (note TN204). Every value equals that of `measure` on the rows of the cell.

    The difference of a version is its error minus that of the first version, as in `compare`: rows with the same ids or
    the same order are paired, else note TN227 says that the difference is unpaired. A negative difference of an error
    is an improvement. The p-values are adjusted by Holm's method for all differences of the table.

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
    >>> regions = ["north", "south"] * 50
    >>> by_region = to.table(y, {"informed": p, "constant": [0.75] * 100}, ["brier"], by=regions)
    >>> [(cell.model, cell.segment, cell.status) for cell in by_region.cells if cell.segment == "south"]
    [('informed', 'south', 'miscalibrated'), ('constant', 'south', 'miscalibrated')]
    >>> versions = to.table(y, {"net": {"before": [0.75] * 100, "after": p}}, ["brier"])
    >>> versions.columns[0].differences[0].difference < 0
    True
    """
    versions = versions_by_model(models)
    version_names, models = join_versions(versions) if versions else ((), models)
    named_models, progress_context = _name_models(models), report_progress(progress)
    generator, level = as_generator(rng), check("level", level, Level, 0.95)
    seed = seed_of(rng, generator)
    interval_spec = IntervalSpec(interval, level, DEFAULT_RESAMPLES if resamples is None else resamples)
    is_bold_requested = check("bold", bold, bool | None)
    bold = not versions and by is None if is_bold_requested is None else is_bold_requested
    if versions and bold:
        fix = "Leave bold out: the versions of each model are compared."
        raise InputError("TO205", "Models with versions are not compared with each other.", "bold=True", fix)
    if lens is not None:
        if lenses is not None:
            raise InputError("TO202", "lens and lenses are the same argument.", "both", "Pass one of them.")
        lenses = lens
    columns = choose_columns(measures, lenses, settings, seed, generator)
    _check_distinct_labels(columns)
    resolved = resolve_all_of_models(add_segments(named_models, by), weight_kind)
    rows, notes = _align_models({name: used for name, (_, used) in resolved.items()}, paired)
    segments = SegmentedRows.split(rows, by, [all_rows for all_rows, _ in resolved.values()])
    is_compared = False
    if bold and interval is not None:
        is_compared, comparison_notes = _check_comparable(segments, paired)
        notes += comparison_notes
    first_model = next(iter(rows.values()))
    call = ColumnEvaluation(
        interval_spec, resamples, paired, weight_kind, seed, is_compared, version_names, segments.are_other_segments
    )
    call_settings: dict[str, Any] = {"interval": interval, "resamples": interval_spec.resamples, "bold": bold}
    call_settings |= settings | reported_call_settings(rng, first_model, weight_kind)
    evaluated: list[EvaluatedColumn] = []
    cells: tuple[SegmentCell, ...] = ()
    cell_notes: list[Note] = []
    n_steps = len(columns) * len(segments.values) * (len(rows) + (is_compared or bool(versions)))
    n_steps += len(rows) * len(segments.values) * segments.is_divided
    steps = itertools.count()
    with progress_context as report:

        def notify(step: str) -> None:
            """Report the share of the steps that are done, and the next one."""
            report(min(1.0, next(steps) / n_steps), step)

        for column in columns:
            column_lens = resolve_lens(first_model, column.lens, column.method)
            of_segments = [
                call.evaluate(column, column_lens, segment, segments.rows(segment), notify)
                for segment in segments.values
            ]
            require_estimate(of_segments)
            evaluated += of_segments
        if segments.is_divided:
            cell_test = segments.cell_test(lenses, 1 - level, resamples)
            cells, cell_notes = segments.test_cells(cell_test, weight_kind, seed, notify)
            call_settings |= cell_test.settings
            notes += cell_test.notes
        report(1.0, "adjusting the p-values")
    adjusted_pvalues = holm([column.pvalue for column in evaluated])
    adjusted_differences = iter(holm([p for column in evaluated for p in column.difference_pvalues]))
    table_columns = tuple(
        column.to_measure_column(p, 1 - level, adjusted_differences)
        for column, p in zip(evaluated, adjusted_pvalues, strict=True)
    )
    notes += [*resample_notes(evaluated, 1 - level), *doubt_notes(evaluated), *unpaired_notes(evaluated)]
    notes += [*segments.notes(), *collect_notes(table_columns)]
    known_codes = {note.code for note in notes}
    notes += [note for note in cell_notes if note.code not in known_codes] + problem_notes(evaluated)
    return ResultTable(
        tuple(versions or rows),
        table_columns,
        max(model.n for model in rows.values()),
        level,
        is_compared,
        call_settings,
        tuple(dict.fromkeys(notes)),
        segments.name,
        cells,
        version_names,
    )


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
    predictions = models_with_rows(rows)
    return align_rows(predictions, paired) if len(predictions) == len(rows) else (rows, [])


def _check_comparable(segments: SegmentedRows, paired: bool | None) -> tuple[bool, list[Note]]:
    """Return whether the models have the same rows, so that they can be compared, and a note if they have not."""
    first_name, *others = segments.models
    with_rows = models_with_rows(segments.models)
    for name in others:
        hint = ""
        if first_name not in with_rows or name not in with_rows:
            same, reason = False, "a tally does not store rows"
        elif segments.are_other_segments(name, first_name):
            same, reason = False, OTHER_SEGMENTS_TEXT
        else:
            first, model = with_rows[first_name], with_rows[name]
            same, reason = same_rows(first, model, paired)
            reason = reason or "⟨paired=False⟩"
            if paired is None and count_common_ids(first, model):
                hint = " Pass ⟨paired=True⟩ to compare the common rows."
        if not same:
            text = f"The models were not compared, so no value is bold ({first_name} and {name}: {reason}).{hint}"
            return False, [Note("TN227", text)]
    return bool(others), []


def _check_distinct_labels(columns: Sequence[RequestedColumn]) -> None:
    """Raise TO205 if two columns have the same heading."""
    labels = [column.label for column in columns]
    if repeated := [label for label in dict.fromkeys(labels) if labels.count(label) > 1]:
        fix = "Pass each measure once, or a mapping of headings to measures."
        raise InputError("TO205", "Two columns have the same heading.", ", ".join(repeated), fix)
