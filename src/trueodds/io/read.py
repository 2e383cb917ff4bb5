"""Read arrays, data frames or files as a source of predictions: the public function `read`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from trueodds.core.errors import InputError, install_command
from trueodds.core.settings import Count, OneOf, check
from trueodds.core.signatures import checks_arguments
from trueodds.data.predictions import Predictions
from trueodds.io import files
from trueodds.io.columns import ColumnSelection, Names
from trueodds.io.csv_format import CsvSettings
from trueodds.io.models import refuse_several_models
from trueodds.io.source import InMemorySource, Source
from trueodds.io.table import ROWS_PER_BATCH, ColumnSource
from trueodds.io.table_source import ReadingSettings

ENGINES = ("arrow", "dask", "spark")
# Module of `trueodds.io` that reads an object by `open_source(data, reading)`, by the package that defines its type.
_ENGINE_OF_PACKAGE = {"dask": "dask", "pyspark": "spark", "torch": "torch"}


@checks_arguments
def read(
    data: Any,
    *,
    label: str | None = "label",
    probs: Names = "p_*",
    logits: Names | bool | None = None,
    confidence: str | None = None,
    correct: str | None = None,
    predicted: str | None = None,
    multilabel: Names | None = None,
    votes: Names | None = None,
    weight: Any = None,
    group: Any = None,
    cluster: Any = None,
    row_id: str | None = None,
    classes: Sequence[Any] | None = None,
    sum_tolerance: float | None = None,
    missing: float | None = None,
    batch_rows: int = ROWS_PER_BATCH,
    engine: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> Source:
    """Read predictions from files, a data frame or arrays.

    Only the names and types of columns are read at once. Rows are read on demand, and files of any size in batches of
    bounded memory.

    Parameters
    ----------
    data : path, pattern, list of paths, data frame, mapping, tuple or Predictions
        Files by their suffix: {suffixes}.
        A pattern such as ``part-*.parquet`` means all matching files in the order of their names, and a folder the
        files in its folders ``column=value``, whose names are columns, too. Cells of text files may be numbers,
        percentages such as ``74.4%`` (note TN312), lists such as ``[0.3 0.7]``, and numbers with Weka's star (note
        TN313). Lines that begin with ``#`` before the header are skipped (note TN311). Data frames: pandas, Polars
        (eager and lazy), PyArrow tables and DuckDB relations. A ``pyarrow.RecordBatchReader`` is read once: pass it to
        one call, or keep its rows, ``read(reader).collect()``, or its tally. Data frames of Dask and Spark and bags of
        Dask are not collected but tallied on their workers. A mapping or an .npz file has arrays under keys. A tuple is
        ``(y_true, y_prob)``, with `weight`, `group` and `cluster` as arrays, and ``logits=True`` for logits. A
        DataLoader of PyTorch yields pairs ``(scores, labels)``; see `trueodds.torch.read_batches`.
    label : str or None, default="label"
        Column of the true class, as a number or a name; `classes` explains which number means which class. None reads
        no outcome, for `rewrite`.
    probs : str or sequence of str, default="p_*"
        Columns of the probabilities in the order of the classes: a pattern (only ``*`` is a wildcard; columns keep the
        order of the file), a list of names, one column of lists, or one column of numbers, the probability of the
        second class.
    logits : str, sequence of str, or True, optional
        Columns of logits or log-probabilities, specified in the same way; with `multilabel`, of log odds. True reads
        `probs` as logits; of arrays under keys, if `probs` is not given, the array `logits`, or else the only one of
        floats with as many rows as labels.
    confidence : str, optional
        Column of the confidence in the chosen answer.
    correct : str, optional
        Column that says whether the chosen answer was correct: 0 and 1, or texts such as yes and no, correct and
        incorrect, pass and fail, T and F.
    predicted : str, optional
        Column of the predicted class, instead of `correct`: an answer is correct if it equals `label`. Texts must be
        exactly equal; a number equals a number, or the text of one, whatever its spelling (1, 1.0, "01").
    multilabel : str or sequence of str, optional
        Columns of independent labels, 0 or 1. They are matched to `probs`, or to `logits`, which are then log odds, by
        the text that the wildcard matches. A missing value is a label that is not known: its row counts for the other
        labels only.
    votes : str or sequence of str, optional
        Columns of the number (or share) of people who chose each class, matched to `probs` or `logits` in the same way.
    weight : str or array, optional
        Column of the weights.
    group : str, list of str, or array, optional
        Column or columns of the subgroups.
    cluster : str or array, optional
        Column of the clusters.
    row_id : str, optional
        Column of a unique number or text, by which `compare` pairs the rows of models. If there are too many rows to
        hold, the random sample of rows then does not depend on how they are distributed over files or partitions. The
        default is the position in the file or partition.
    classes : sequence, optional
        Names of the classes in the order of the columns. By default they are the texts that the wildcard matches, or,
        if labels are text, the parts of the names of the columns that are labels.
        Labels that are text are these names. If every name has a number, as in ``p_1``, ``p_2`` or ``class01``,
        ``class02``, labels that are numbers, or spell them, are these numbers, in whatever order the columns are.
        Otherwise labels that are numbers count the columns from 0, in the order of the file; files with other orders of
        the columns are then refused unless `probs` lists the columns. The categories of a pandas Categorical or a
        Polars Enum are the classes in the order of the columns if there is one per column and no name matches.
    sum_tolerance : float, optional
        Largest deviation of the sum of a row from 1, for rounded tables.
    missing : float, optional
        Value in the columns `multilabel` that stands for a label that is not known, such as −1.
    batch_rows : int, default=65536
        Largest number of rows in memory at a time; fewer if there are many classes.
    engine : {"arrow", "dask", "spark"}, optional
        What reads the files: this process, or the workers of the active Dask client or Spark session, one file each.
    separator : str, optional
        Character between the columns of a .csv or .txt file. By default it is a comma, or the only one of semicolon,
        tab and ``|`` that the header contains, if it splits all rows alike; note TN310 then names it. It is a tab in a
        .tsv file.
    decimal : {".", ","}, optional
        Decimal mark of the numbers in such a file. By default it is a point; with another separator than a comma, it is
        a comma if that is the only way to read the first numbers (note TN310).

    Returns
    -------
    Source
        The rows as batches of `Predictions`. All functions of the package accept it.

    Raises
    ------
    InputError
        TO301 to TO313, with file, column and row; TO203 and TO205 for settings.

    See Also
    --------
    read_answers : Read answers of a language model.

    Examples
    --------
    >>> from trueodds import read
    >>> source = read({"label": ["dog", "cat"], "p_cat": [0.1, 0.8], "p_dog": [0.9, 0.2]})
    >>> source.collect().classes, source.n_probabilities
    (('cat', 'dog'), 4)
    """
    batch_rows = check("batch_rows", batch_rows, Count, ROWS_PER_BATCH)
    csv_settings = CsvSettings(separator, decimal)
    files.check_csv_settings(data, csv_settings)
    if isinstance(data, Source):
        return data
    refuse_several_models(data)
    selection = ColumnSelection(
        label=label, probs=probs, logits=logits, confidence=confidence, correct=correct, predicted=predicted,
        multilabel=multilabel, votes=votes, weight=weight, group=group, cluster=cluster, row_id=row_id,
    )  # fmt: skip
    if sum_tolerance is not None and (selection.has_logits or selection.kind in ("confidence", "multilabel")):
        raise _unused_setting_error("sum_tolerance", "logits" if selection.has_logits else selection.kind)
    if missing is not None and selection.kind != "multilabel":
        raise InputError("TO205", "missing requires multilabel.", f"⟨missing={missing!r}⟩", "Omit it.")
    if selection.kind == "confidence" and classes is not None:
        raise _unused_setting_error("classes", selection.kind)
    if isinstance(data, Predictions):
        return InMemorySource(_check_no_other_settings(data, selection, classes, sum_tolerance), batch_rows)
    if isinstance(data, tuple) and len(data) == 2:
        return InMemorySource(_predictions_of_pair(data, selection, classes, sum_tolerance), batch_rows)
    reading = ReadingSettings(
        _check_columns_are_named(selection), classes=classes, sum_tolerance=sum_tolerance, batch_rows=batch_rows,
        missing=missing, csv_settings=csv_settings,
    )  # fmt: skip
    return _engine_source(data, reading, engine) or reading.make_source(_open_tables(data, csv_settings))


read.__doc__ = (read.__doc__ or "").replace("{suffixes}", ", ".join(files.FORMAT_OF_SUFFIX))


def read_for_call(data: Any) -> Source:
    """Read the data of one call of a public function, whose result keeps no rows: a pair of arrays is not copied."""
    if isinstance(data, Source):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        refuse_several_models(data)
        return InMemorySource(Predictions(*data, copy=False))
    return read(data)


def read_unlabeled(data: Any, **settings: Any) -> Source:
    """Read data whose rows need no label; the column `label` need not exist unless a setting names it."""
    if isinstance(data, (Source, Predictions)) or (isinstance(data, tuple) and len(data) == 2 and not settings):
        return read_for_call(data).with_unlabeled()
    try:
        source = read(data, **settings)
    except InputError as problem:
        if problem.code != "TO304" or "label" in settings:
            raise
        source = read(data, label=None, **settings)
    return source.with_unlabeled()


def _engine_source(data: Any, reading: ReadingSettings, engine: str | None) -> Source | None:
    """Return a source that is read by an engine (Dask, Spark or PyTorch), or None if this process reads the data."""
    engine = check("engine", engine, Annotated[str, OneOf(ENGINES)] | None)
    paths, frame_engine = files.as_paths(data), _ENGINE_OF_PACKAGE.get(type(data).__module__.partition(".")[0])
    if paths is None and engine not in (None, frame_engine):
        fix = "Leave engine out: a data frame is read by the engine that holds it."
        raise InputError(
            "TO205", "An engine can be chosen only for files.", f"⟨engine={engine!r}⟩ and a {type(data).__name__}", fix
        )
    if paths is not None and engine in ("dask", "spark"):
        data, frame_engine = [file for path in paths for file in files.matching_files(path)], engine
    if frame_engine is None:
        return None
    try:
        source: Source = importlib.import_module(f"trueodds.io.{frame_engine}").open_source(data, reading)
    except ModuleNotFoundError as problem:
        raise InputError(
            "TO306",
            f"The engine {frame_engine} needs {problem.name}, which is not installed.",
            "",
            install_command(frame_engine),
        ) from None
    return source


def _open_tables(data: Any, csv_settings: CsvSettings) -> list[ColumnSource]:
    paths = files.as_paths(data)
    if paths is not None:
        return [table for path in paths for table in files.open_tables(path, csv_settings)]
    if isinstance(data, Mapping):
        from trueodds.io.arrays import MappingTable

        return [MappingTable(data)]
    from trueodds.io.frames import open_table

    return [open_table(data)]


def _check_columns_are_named(selection: ColumnSelection) -> ColumnSelection:
    """Return the selection; raise TO203 if a column is given as an array and not by name."""
    for setting in ("label", "confidence", "correct", "predicted", "weight", "cluster", "row_id"):
        name = getattr(selection, setting)
        if name is not None and not isinstance(name, str):
            raise _not_a_column_name_error(setting, name)
    for setting in ("probs", "logits", "multilabel", "votes", "group"):
        names = getattr(selection, setting)
        if isinstance(names, str) or (names is None and setting != "probs"):
            continue
        if isinstance(names, bool) and setting == "logits":
            continue
        if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
            raise _not_a_column_name_error(setting, names)
    return selection


def _not_a_column_name_error(setting: str, got: Any) -> InputError:
    return InputError(
        "TO203", f"{setting} must name a column.", type(got).__name__, "Arrays go with a pair (y_true, y_prob) only."
    )


def _unused_setting_error(setting: str, kind: str) -> InputError:
    return InputError("TO205", f"{setting} has no meaning with {kind}.", f"both {setting} and {kind}", "Omit it.")


def _check_no_other_settings(
    preds: Predictions, selection: ColumnSelection, classes: Any, sum_tolerance: Any
) -> Predictions:
    """Return predictions unchanged; raise TO205 for settings, which they already have."""
    settings = [
        name
        for name in ("weight", "group", "cluster", "confidence", "votes", "multilabel")
        if getattr(selection, name) is not None
    ]
    settings += ["logits"] if selection.has_logits else []
    settings += [name for name, value in (("classes", classes), ("sum_tolerance", sum_tolerance)) if value is not None]
    if settings:
        raise InputError(
            "TO205",
            "Predictions already have all columns.",
            f"{settings[0]}=",
            "Pass it to Predictions instead.",
        )
    return preds


def _predictions_of_pair(
    data: tuple[Any, Any], selection: ColumnSelection, classes: Any, sum_tolerance: Any
) -> Predictions:
    """Make predictions of a pair (y_true, y_prob); raise TO205 for settings that need columns."""
    extras = {"weight": selection.weight, "group": selection.group, "cluster": selection.cluster, "classes": classes}
    column_setting = selection.kind
    if selection.kind == "classes":
        if selection.logits is True:
            return Predictions.from_logits(*data, **extras)
        if not selection.has_logits:
            return Predictions(*data, sum_tolerance=sum_tolerance, **extras)
        column_setting = "logits"
    raise InputError(
        "TO205",
        f"A pair of arrays has no columns for {column_setting}.",
        f"⟨{column_setting}=⟩",
        "Build Predictions with from_logits, from_confidence or from_multilabel; votes go in as y_true.",
    )
