"""The result of evaluating several models by several measures: `ResultTable`, with intervals and bold values."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trueodds.core import table_formats, table_latex
from trueodds.core.data_frame import to_data_frame
from trueodds.core.errors import InputError, Note
from trueodds.core.formatting import format_bins, format_percent_in_text
from trueodds.core.json_files import strict_json
from trueodds.core.printable import spreadsheet_text, to_printable
from trueodds.core.results import Estimate, Result, is_score
from trueodds.core.table_columns import MeasureColumn
from trueodds.core.table_formats import FormattedTable
from trueodds.core.table_layout import TEXT_WIDTH


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

    names: tuple[str, ...]
    columns: tuple[MeasureColumn, ...]
    n: int
    level: float
    compared: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __getitem__(self, cell: tuple[str, str]) -> Estimate:
        """Return the estimate of a model in the column of this heading, or raise KeyError."""
        columns = {column.label: column for column in self.columns}
        if not isinstance(cell, tuple) or len(cell) != 2 or cell[0] not in self.names or cell[1] not in columns:
            known = f"models {', '.join(self.names)}; headings {', '.join(columns)}"
            raise KeyError(f"A cell is table[model, heading]. Got {cell!r}. The table has the {known}.")
        model, label = cell
        return columns[label].estimates[model]

    @property
    def bold(self) -> dict[str, str | None]:
        """The bold model of each column, by heading; None where no model is better than every other one."""
        return {column.label: column.bold for column in self.columns}

    @property
    def caption(self) -> str:
        """What the cells show, and what bold values mean, in a few sentences."""
        return to_printable(" ".join(self._caption_sentences(noise_floor=True)))

    def _caption_sentences(self, *, interval: bool = True, noise_floor: bool) -> list[str]:
        """Return the sentences of the caption."""
        return caption_sentences(
            self.columns, self.level, compared=self.compared, interval=interval, noise_floor=noise_floor
        )

    def _format_table(self, *, interval: bool = True, noise_floor: bool, caption: str | bool = True) -> FormattedTable:
        """Return the texts of the table: cells with the parts that are requested, and the caption.

        `caption` is the caller's text, True for the default one, or False for none.
        """
        if not isinstance(caption, str):
            sentences = self._caption_sentences(interval=interval, noise_floor=noise_floor) if caption else []
            caption = " ".join(sentences)
        cells = [
            [
                column.format_cell(name).select_parts(interval=interval, noise_floor=noise_floor)
                for column in self.columns
            ]
            for name in self.names
        ]
        return FormattedTable(
            names=tuple(map(to_printable, self.names)),
            labels=tuple(to_printable(column.label) for column in self.columns),
            arrows=tuple(column.arrow for column in self.columns),
            cells=tuple(map(tuple, cells)),
            caption=to_printable(caption),
        )

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
        bold_text = f" · a bold value in {n_bold} of {len(self.columns)}" if self.compared else ""
        measures = "1 measure" if len(self.columns) == 1 else f"{len(self.columns)} measures"
        size = f"{len(self.names)} models × {measures} · n={describe_n_rows(self.columns)}"
        heading = f"table · {size}{bold_text}"
        return "\n".join([heading, *table_formats.format_text(self._format_table(noise_floor=True), width)])

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
        formatted = self._format_table(interval=interval, noise_floor=noise_floor, caption=caption)
        return table_formats.format_markdown(formatted)

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
        style = table_latex.resolve_interval_style(interval)
        if not caption and (label is not None or wide):
            got = f"label={label!r}" if label is not None else "wide=True"
            fix = "Pass a caption, or leave label and wide out: without a caption there is only a tabular environment."
            raise InputError("TO205", "A label or a wide table needs a caption.", got, fix)
        formatted = self._format_table(interval=style is not None, noise_floor=noise_floor, caption=caption)
        options = table_latex.LatexOptions(
            style,
            "table*" if wide else "table",
            label,
            is_transposed=transpose,
            escapes_labels=not raw_labels,
            escapes_caption=not (raw_labels and isinstance(caption, str)),
        )
        return table_latex.format_latex(formatted, options)

    def to_csv(self) -> str:
        """Return the rows of `frame` as CSV, with a row per model and measure and numbers in full precision.

        Returns
        -------
        str
            The text, with a header.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self._cell_rows()[0])
        writer.writerows(
            [spreadsheet_text(x) if isinstance(x, str) else x for x in row.values()] for row in self._cell_rows()
        )
        return text.getvalue()

    def frame(self) -> Any:
        """Return a data frame with a row per model and measure.

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or dict
            A pandas data frame, else a Polars one, else a dict of columns, depending on what is installed. Missing ends
            of intervals and noise floors are NaN.
        """
        rows = self._cell_rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        for name in ("low", "high", "noise_floor"):  # NaN, because None would make a column of objects
            columns[name] = [math.nan if x is None else x for x in columns[name]]
        return to_data_frame(columns)

    def _cell_rows(self) -> list[dict[str, Any]]:
        """Return the cells as rows of named values."""
        rows = []
        for name in self.names:
            for column in self.columns:
                estimate = column.estimates[name]
                interval = estimate.interval
                rows.append(
                    {
                        "model": name,
                        "measure": column.label,
                        "estimator": column.estimator,
                        "lens": column.lens,
                        "value": estimate.value,
                        "low": None if interval is None else interval.low,
                        "high": None if interval is None else interval.high,
                        "noise_floor": estimate.noise_floor,
                        "n": estimate.n,
                        "bold": name == column.bold,
                    }
                )
        return rows

    def _repr_html_(self) -> str:
        return table_formats.format_html(self._format_table(noise_floor=True), self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a JSON object.

        Returns
        -------
        dict
            The object, of schema ``trueodds.table/1``.
        """
        return {
            "schema": "trueodds.table/1",
            "models": list(self.names),
            "columns": [column.to_dict() for column in self.columns],
            "n": self.n,
            "level": self.level,
            "compared": self.compared,
            "caption": self.caption,
            "settings": strict_json(self.settings),
            "notes": [note.to_dict() for note in self.notes],
        }


# What each lens examines. With two classes, "canonical" examines one probability and its complement.
_LENS_DESCRIPTIONS = {
    "confidence": "the confidence",
    "positive": "the predicted probability",
    "classwise": "the probability of each class",
    "canonical": "all predicted probabilities",
    "top-label": "the confidence within each predicted class",
}
# What estimators without bins compute, if their names do not say it.
_ESTIMATOR_DESCRIPTIONS = {
    "smece": "smooth ECE with automatic bandwidth",
    "ks": "Kolmogorov–Smirnov distance",
    "skce": "squared kernel calibration error",
}
# Methods whose intervals are extended to contain the estimate.
_EXTENDED_INTERVALS = ("folded-normal", "residual-norm")


class CaptionColumn(Protocol):
    """What the caption needs to know of a column: a `MeasureColumn` of a table."""

    @property
    def label(self) -> str:
        """The heading."""

    @property
    def estimator(self) -> str:
        """Name of the estimator."""

    @property
    def lens(self) -> str:
        """Name of the lens."""

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The estimate of each model."""

    @property
    def bold(self) -> str | None:
        """The bold model."""


def caption_sentences(
    columns: Sequence[CaptionColumn], level: float, *, compared: bool, interval: bool, noise_floor: bool
) -> list[str]:
    """Return the sentences of the caption, which explain only what the table shows."""
    sentences = [f"{text}." for text in [_describe_columns(columns)] if text]
    sentences.append(f"n = {describe_n_rows(columns)} rows{', the same for all models' if compared else ''}.")
    estimates = [estimate for column in columns for estimate in column.estimates.values()]
    if interval and any(estimate.interval is not None for estimate in estimates):
        sentences.append(f"Brackets: {format_percent_in_text(level)} confidence interval.")
        if any(map(_ends_at_value, estimates)):
            sentences.append(
                "Intervals allow for the upward bias of the estimate; one that ends at it would lie below it otherwise."
            )
    if noise_floor and any(estimate.noise_floor is not None for estimate in estimates):
        sentences.append("Parentheses: expected value if the model were calibrated.")
    if compared:
        sentences.append(_explain_bold(columns, level))
    return sentences


def describe_n_rows(columns: Sequence[CaptionColumn]) -> str:
    """Return the number of rows, or its range if models have different numbers of rows.

    >>> from types import SimpleNamespace
    >>> describe_n_rows([SimpleNamespace(estimates={"a": SimpleNamespace(n=100), "b": SimpleNamespace(n=4000)})])
    '100 to 4,000'
    """
    sizes = [estimate.n for column in columns for estimate in column.estimates.values()]
    low, high = min(sizes), max(sizes)
    return f"{high:,}" if low == high else f"{low:,} to {high:,}"


def _explain_bold(columns: Sequence[CaptionColumn], level: float) -> str:
    """Say what a bold value means, or that there is none."""
    measures = f" over the {len(columns):,} measures by Holm's method" if len(columns) > 1 else ""
    test = f"(paired comparisons, familywise error rate {format_percent_in_text(1 - level)}{measures})"
    if any(column.bold is not None for column in columns):
        return f"Bold: significantly better than every other model {test}."
    return f"No value is bold, that is, significantly better than every other model {test}."


def _describe_columns(columns: Sequence[CaptionColumn]) -> str:
    """Say from which probabilities and with which bins each measure is computed; accuracy needs no description."""
    labels: dict[str, list[str]] = {}
    for column in columns:
        if column.estimator != "accuracy":
            labels.setdefault(_describe_column(column), []).append(column.label)
    return "; ".join(f"{', '.join(names)}: {description}" for description, names in labels.items())


def _describe_column(column: CaptionColumn) -> str:
    """Describe the bins and the lens of one measure.

    >>> from types import SimpleNamespace
    >>> estimate = SimpleNamespace(settings={"partition": "uniform 15"})
    >>> _describe_column(SimpleNamespace(lens="confidence", estimator="ece", estimates={"a": estimate}))
    '15 uniform bins of the confidence'
    """
    description = _LENS_DESCRIPTIONS.get(column.lens, f"lens {column.lens}")
    if column.lens.startswith("class:"):
        description = f"the probability of class {column.lens.removeprefix('class:')}"
    settings = [estimate.settings for estimate in column.estimates.values()]
    if "partition" in settings[0] and not is_score(column.estimator):
        description = f"{_describe_bins(settings)} of {description}"
    elif column.estimator in _ESTIMATOR_DESCRIPTIONS:
        description = f"{_ESTIMATOR_DESCRIPTIONS[column.estimator]} of {description}"
    if settings[0].get("distance", "tv") != "tv":
        description += f", distance {settings[0]['distance']}"
    aggregates = {"mean": "mean of the classes", "max": "largest value of the classes"}
    if column.lens == "classwise" and (aggregate := settings[0].get("aggregate")) in aggregates:
        description += f", {aggregates[aggregate]}"
    return description


def _describe_bins(settings: Sequence[Mapping[str, object]]) -> str:
    """Describe the bins of a partition, with their number if it is the same for all models.

    >>> _describe_bins([{"partition": "equal-mass auto", "bins": 12}, {"partition": "equal-mass auto", "bins": 11}])
    'equal-mass bins'
    """
    counts = {settings_of_model.get("bins") for settings_of_model in settings}
    return format_bins(str(settings[0]["partition"]), counts.pop() if len(counts) == 1 else None)


def _ends_at_value(estimate: Estimate) -> bool:
    """Return whether the upper limit of the interval is the estimate, because it was extended to contain it."""
    interval = estimate.interval
    return (
        interval is not None
        and interval.method in _EXTENDED_INTERVALS
        and interval.low < interval.high == estimate.value
    )
