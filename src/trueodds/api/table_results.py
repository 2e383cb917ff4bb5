"""The result of evaluating several models by several measures: `ResultTable`, with intervals and bold values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from trueodds.api.table_caption import caption_sentences, describe_n_rows, explain_cells, explain_differences
from trueodds.api.table_columns import MeasureColumn, SegmentCell
from trueodds.core import table as tables
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import VERSION_SEPARATOR, format_count, format_pvalue
from trueodds.core.printable import to_printable
from trueodds.core.results import Estimate, Result
from trueodds.core.table import TEXT_WIDTH, Column, FormattedCell, Table, format_csv, to_data_frame


@dataclass(frozen=True, slots=True, repr=False)
class ResultTable(Result):
    """Several models by several measures; each cell has a value, its interval and its noise floor.

    A value is bold only if the difference is beyond doubt: its model is significantly better than every other model of
    the table. The caption says by which tests.

    Attributes
    ----------
    names : tuple of str
        The models, which are the rows of the table.
    columns : tuple of MeasureColumn
        The measures.
    n : int
        Number of rows of data; of models with different rows, the largest.
    level : float
        Confidence level of the intervals; 1 − level is the familywise error rate of the bold values.
    compared : bool
        Whether the models were compared, so that values can be bold.
    settings : mapping
        The settings of the call.
    notes : tuple of Note
        Facts to report with the table.
    by : str or None
        The column whose values are the segments; None if the table has none. There is then a column per measure and
        segment.
    cells : tuple of SegmentCell
        The test of calibration of every model in every segment; empty without segments.
    versions : tuple of str
        The versions of every model; empty without versions. The estimates of a column then have keys such as
        ``"resnet, after"``, and its `differences` compare the versions of each model.

    Examples
    --------
    >>> import trueodds as to
    >>> y, p = [1, 0, 1, 1] * 25, [0.9, 0.4, 0.6, 0.8] * 25
    >>> table = to.table({"informed": (y, p), "constant": (y, [0.75] * 100)}, ["brier"])
    >>> print(table.to_markdown(caption=False))
    |  | brier ↓ |
    | :--- | :--- |
    | informed | **0.093** [0.079, 0.107] |
    | constant | 0.188 [0.147, 0.233] |
    >>> table["informed", "brier"].n
    100
    """

    json_schema: ClassVar[str] = "trueodds.table/1"
    json_keys: ClassVar[tuple[str, ...]] = (
        "models=names", "columns", "n", "level", "compared", "caption", "settings", "notes", "by?", "segments?",
        "cells?", "versions?",
    )  # fmt: skip

    names: tuple[str, ...]
    columns: tuple[MeasureColumn, ...]
    n: int
    level: float
    compared: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    by: str | None = None
    cells: tuple[SegmentCell, ...] = ()
    versions: tuple[str, ...] = ()

    def __getitem__(self, cell: tuple[str, ...]) -> Estimate:
        """Return the estimate of a model in the column of this heading, or raise KeyError.

        A table of segments has cells ``table[model, heading, segment]``, and the models of a table of versions have
        names such as ``"resnet, after"``.
        """
        estimates = {
            (model, column.label, *([] if column.segment is None else [column.segment])): estimate
            for column in self.columns
            for model, estimate in column.estimates.items()
        }
        if cell in estimates:
            return estimates[cell]
        form = "table[model, heading]" if self.by is None else "table[model, heading, segment]"
        separator = "; " if self.versions else ", "  # names of versions contain commas
        known = f"models {separator.join(self._version_names)}; headings {', '.join(self._labels)}"
        known += f"; segments {', '.join(self.segments)}" if self.by is not None else ""
        raise KeyError(f"A cell is {form}. Got {cell!r}. The table has the {known}.")

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments, in the order of the columns; empty without segments."""
        return tuple(dict.fromkeys(column.segment for column in self.columns if column.segment is not None))

    @property
    def _labels(self) -> tuple[str, ...]:
        """The headings of the measures."""
        return tuple(dict.fromkeys(column.label for column in self.columns))

    @property
    def _version_names(self) -> tuple[str, ...]:
        """The names of all models, or of all versions of all models."""
        return tuple(key for name in self.names for _, key in self._keys(name))

    def _keys(self, name: str) -> list[tuple[str | None, str]]:
        """The versions of a model with the names of their estimates; the model itself without versions."""
        if not self.versions:
            return [(None, name)]
        return [(version, f"{name}{VERSION_SEPARATOR}{version}") for version in self.versions]

    @property
    def bold(self) -> dict[Any, str | None]:
        """The bold model of each column, by heading; None where no model is better than every other one.

        The keys of a table of segments are pairs of a heading and a segment.
        """
        return {self._key(column): column.bold for column in self.columns}

    def _key(self, column: MeasureColumn) -> Any:
        """What identifies a column: its heading, with its segment if it has one."""
        return column.label if column.segment is None else (column.label, column.segment)

    @property
    def caption(self) -> str:
        """What the cells show, and what bold values mean, in a few sentences."""
        return to_printable(" ".join(self._caption_sentences(noise_floor=True)))

    def _caption_sentences(self, *, interval: bool = True, noise_floor: bool) -> list[str]:
        """Return the sentences of the caption."""
        sentences = caption_sentences(
            self._columns_of_measures(),
            self.level,
            compared=self.compared,
            interval=interval,
            noise_floor=noise_floor,
            n_segments=None if self.by is None else len(self.segments),
        )
        sentences += filter(None, [explain_differences(self.columns, self.level)])
        test = f"{self.settings.get('test')} test through the lens {self.settings.get('test_lens')}"
        is_approximate = any(note.code == "TN204" for note in self.notes)
        return sentences + explain_cells(self.cells, self.level, test, is_approximate=is_approximate)

    def _columns_of_measures(self) -> list[MeasureColumn]:
        """The column of each measure, with the estimates of all segments."""
        if self.by is None:
            return list(self.columns)
        merged = []
        for label in self._labels:
            columns = [column for column in self.columns if column.label == label]
            estimates = {
                f"{column.segment}, {model}": estimate
                for column in columns
                for model, estimate in column.estimates.items()
            }
            bold = next((column.bold for column in columns if column.bold is not None), None)
            merged.append(replace(columns[0], estimates=estimates, bold=bold))
        return merged

    def _format_caption(self, caption: str | bool = True, *, interval: bool = True, noise_floor: bool) -> str:
        """Return the caller's caption, the default one for True, or none for False."""
        if not isinstance(caption, str):
            sentences = self._caption_sentences(interval=interval, noise_floor=noise_floor) if caption else []
            caption = " ".join(sentences)
        return to_printable(caption)

    def _format_tables(self, *, interval: bool = True, noise_floor: bool) -> list[Table]:
        """Return the texts of the table in one or more tables, with the parts of the cells that are requested."""
        return [
            replace(
                table,
                title=to_printable(table.title),
                columns=tuple(
                    replace(
                        column,
                        name=to_printable(column.name),
                        values=[
                            to_printable(cell)
                            if isinstance(cell, str)
                            else cell.select_parts(interval=interval, noise_floor=noise_floor)
                            for cell in column.cells
                        ],
                    )
                    for column in table.columns
                ),
            )
            for table in (self._tables_of_versions() if self.versions else self._tables_of_models())
        ]

    def _table(self, columns: Sequence[Column], title: str = "", title_arrow: str = "") -> Table:
        """Return a table with a row per model."""
        return Table(title, (Column("", self.names, "text"), *columns), title_arrow=title_arrow)

    def _tables_of_models(self) -> list[Table]:
        """The table of all measures, or of each measure in all segments and of the tests of calibration."""
        if self.by is None:
            columns = [
                Column(column.label, [column.format_cell(name) for name in self.names], "estimate", column.arrow)
                for column in self.columns
            ]
            return [self._table(columns)]
        marks = {(cell.model, cell.segment): cell.mark for cell in self.cells}
        tables = []
        for label in self._labels:
            measures = [column for column in self.columns if column.label == label]
            columns = []
            for segment, measure in zip(self.segments, measures, strict=True):
                cells = [measure.format_cell(name, marks.get((name, segment), "")) for name in self.names]
                columns.append(Column(segment, cells, "estimate"))
            tables.append(self._table(columns, label, measures[0].arrow))
        if self.cells:
            pvalues = {(cell.model, cell.segment): format_pvalue(cell.adjusted_pvalue) for cell in self.cells}
            columns = [
                Column(segment, [FormattedCell(pvalues[name, segment]) for name in self.names], "estimate")
                for segment in self.segments
            ]
            tables.append(self._table(columns, "adjusted p of calibration"))
        return tables

    def _tables_of_versions(self) -> list[Table]:
        """The table of each measure, and of each segment: the versions of the models and their differences."""
        marks = {(cell.model, cell.segment): cell.mark for cell in self.cells}
        labels = [*self.versions]
        for version in self.versions[1:]:
            labels += [f"{version} − {self.versions[0]}", "adjusted p"]
        tables = []
        for column in self.columns:
            title = column.label if column.segment is None else f"{column.label}, {self.by}={column.segment}"
            rows = []
            for name in self.names:
                row = [
                    column.format_cell(key, marks.get((key, str(column.segment)), "")) for _, key in self._keys(name)
                ]
                differences = {found.version: found for found in column.differences if found.model == name}
                for version in self.versions[1:]:
                    row += column.format_difference(differences.get(version), 1 - self.level)
                rows.append(row)
            tables.append(self._table(_estimate_columns(labels, rows), title, column.arrow))
        pvalues = {(cell.model, cell.segment): format_pvalue(cell.adjusted_pvalue) for cell in self.cells}
        n_differences = len(labels) - len(self.versions)  # whose columns stay empty
        keys = [[key for _, key in self._keys(name)] + [""] * n_differences for name in self.names]
        for segment in self.segments if self.cells else ():
            rows = [[FormattedCell(pvalues.get((key, segment), "–")) for key in row] for row in keys]
            title = f"adjusted p of calibration, {self.by}={segment}"
            tables.append(self._table(_estimate_columns(labels, rows), title))
        return tables

    def describe(self, width: int = TEXT_WIDTH) -> str:
        """Describe the table as text of limited width where possible; * marks what other formats print in bold.

        Parameters
        ----------
        width : int, default=80
            Maximum number of columns of the text.

        Returns
        -------
        str
            A heading, the rows and the caption. Wide tables are divided into several blocks of columns.
        """
        n_bold = sum(column.bold is not None for column in self.columns)
        parts = [format_count(len(self.names), "model")]
        parts += [format_count(len(self.versions), "version")] if self.versions else []
        parts += [format_count(len(self.segments), "segment")] if self.by is not None else []
        parts += [format_count(len(self._labels), "measure")]
        heading = f"table · {' × '.join(parts)} · n={describe_n_rows(self.columns)}"
        if self.compared:
            heading += f" · a significantly best model in {n_bold} of {len(self.columns)}"
        if self.cells:
            statuses = [cell.status for cell in self.cells]
            heading += f" · {statuses.count('miscalibrated')} of {format_count(len(statuses), 'cell')} miscalibrated"
            n_not_judged = statuses.count("not judged")
            heading += f", {n_not_judged} not judged" if n_not_judged else ""
        lines = tables.format_text(self._format_tables(noise_floor=True), self.caption, width)
        return "\n".join([heading, *lines])

    def to_markdown(self, *, interval: bool = True, noise_floor: bool = False, caption: str | bool = True) -> str:
        """Return the table in Markdown, with a row per model.

        Parameters
        ----------
        interval : bool, default=True
            Whether the cells have the interval in brackets.
        noise_floor : bool, default=False
            Whether the cells have the expected value of a calibrated model in parentheses.
        caption : str or bool, default=True
            The paragraph below the table: your text, the default one, or none.

        Returns
        -------
        str
            The table.
        """
        caption = self._format_caption(caption, interval=interval, noise_floor=noise_floor)
        return tables.format_markdown(self._format_tables(interval=interval, noise_floor=noise_floor), caption)

    def to_latex(
        self,
        *,
        interval: str | bool | None = "below",
        noise_floor: bool = False,
        caption: str | bool = True,
        label: str | None = None,
        wide: bool = False,
        transpose: bool = False,
        raw_labels: bool = False,
    ) -> str:
        r"""Return the table in LaTeX.

        The document needs ``\usepackage{booktabs}``.

        Parameters
        ----------
        interval : {"below", "brackets", "subscript"}, bool or None, default="below"
            Whether intervals stand in small type below the values (also True), in brackets behind them, or as
            subscripts. None or False omits them. Below the values they need the least width: five measures fit a text
            of 5.5 inches.
        noise_floor : bool, default=False
            Whether the cells have the expected value of a calibrated model in parentheses.
        caption : str or bool, default=True
            Your caption or the default one in a ``table`` environment. It is escaped, except for your own caption with
            ``raw_labels=True``. False returns the ``tabular`` environment alone.
        label : str, optional
            The label of the ``table`` environment, such as ``"tab:calibration"``.
        wide : bool, default=False
            Whether the environment is ``table*``, which spans both columns of a page.
        transpose : bool, default=False
            Whether the table has a row per measure and a column per model, for few models and many measures.
        raw_labels : bool, default=False
            Whether headings, names of models and your own caption are LaTeX, such as ``"$L_2$"``. By default they are
            escaped.

        Returns
        -------
        str
            The environment.

        Raises
        ------
        InputError
            TO203 for another value of `interval`. TO205 for `label` or `wide` without a caption, which would be
            ignored.
        """
        style = _resolve_interval_style(interval)
        if not caption and (label is not None or wide):
            got = f"⟨label={label!r}⟩" if label is not None else "wide=True"
            fix = "Pass a caption, or leave label and wide out: without a caption there is only a tabular environment."
            raise InputError("TO205", "A label or a wide table needs a caption.", got, fix)
        parts = {"interval": style is not None, "noise_floor": noise_floor}
        options = tables.LatexOptions(
            style,
            "table*" if wide else "table",
            label,
            is_transposed=transpose,
            escapes_labels=not raw_labels,
            escapes_caption=not (raw_labels and isinstance(caption, str)),
        )
        return tables.format_latex(self._format_tables(**parts), self._format_caption(caption, **parts), options)

    def to_csv(self) -> str:
        """Return the rows of `frame` as CSV, with a row per model and measure and numbers in full precision.

        Returns
        -------
        str
            The text, with a header.
        """
        return format_csv(self._cell_columns())

    def frame(self) -> Any:
        """Return a data frame with a row per model and measure.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed. Missing ends
            of intervals and noise floors are NaN.
        """
        columns = self._cell_columns().items()
        # NaN, because None would make a column of objects
        return to_data_frame({name: [math.nan if x is None else x for x in values] for name, values in columns})

    def _cell_columns(self) -> dict[str, list[Any]]:
        """Return named columns of values, with a row per cell."""
        cells = {(cell.model, cell.segment): cell for cell in self.cells}
        rows = []
        for name in self.names:
            for version, key in self._keys(name):
                for column in self.columns:
                    estimate = column.estimates.get(key)
                    interval = None if estimate is None else estimate.interval
                    row: dict[str, Any] = {
                        "model": name,
                        **({} if version is None else {"version": version}),
                        **({} if column.segment is None else {"segment": column.segment}),
                        "measure": column.label,
                        "estimator": column.estimator,
                        "lens": column.lens,
                        "value": math.nan if estimate is None else estimate.value,
                        "low": None if interval is None else interval.low,
                        "high": None if interval is None else interval.high,
                        "noise_floor": None if estimate is None else estimate.noise_floor,
                        "n": 0 if estimate is None else estimate.n,
                        "bold": key == column.bold,
                    }
                    if version is not None:
                        row |= _difference_cells(column, name, version)
                    if (cell := cells.get((key, str(column.segment)))) is not None:
                        row |= {
                            "n": cell.n,
                            "pvalue": cell.pvalue,
                            "adjusted_pvalue": cell.adjusted_pvalue,
                            "status": cell.status,
                        }
                    rows.append(row)
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _repr_html_(self) -> str:
        return tables.format_html(self._format_tables(noise_floor=True), self.caption, self.notes)


def _resolve_interval_style(interval: Any) -> str | None:
    """Return the style of intervals, which is the first one for True; raise TO203 for an unknown style."""
    if interval is None or interval is False:
        return None
    if interval is True:
        return tables.INTERVAL_STYLES[0]
    if interval not in tables.INTERVAL_STYLES:
        fix = "Use 'below', 'brackets', 'subscript' or None."
        raise InputError("TO203", "Unknown style of intervals.", repr(interval), fix)
    return str(interval)


def _estimate_columns(labels: Sequence[str], rows: Sequence[Sequence[FormattedCell]]) -> list[Column]:
    return [Column(label, cells, "estimate") for label, cells in zip(labels, zip(*rows, strict=True), strict=True)]


def _difference_cells(column: MeasureColumn, model: str, version: str) -> dict[str, Any]:
    """Return the difference of a version of a model from the first version as named values; None for the first."""
    found = next((d for d in column.differences if (d.model, d.version) == (model, version)), None)
    interval = None if found is None else found.interval
    return {
        "difference": None if found is None else found.difference,
        "difference_low": None if interval is None else interval.low,
        "difference_high": None if interval is None else interval.high,
        "difference_pvalue": None if found is None else found.pvalue,
        "difference_adjusted_pvalue": None if found is None else found.adjusted_pvalue,
    }
