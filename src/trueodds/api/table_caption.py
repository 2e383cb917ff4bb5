"""The caption of a table of models: what the cells show, and what bold values and marks mean, in a few sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from trueodds.api.table_columns import MeasureColumn, SegmentCell
from trueodds.core.formatting import format_bins, format_count, format_percent_in_text
from trueodds.core.registry import trait_of_estimator
from trueodds.core.results import Estimate, is_score

# What each lens examines. With two classes, "canonical" examines one probability and its complement.
_LENS_DESCRIPTIONS = {
    "confidence": "the confidence",
    "positive": "the predicted probability",
    "classwise": "the probability of each class",
    "canonical": "all predicted probabilities",
    "top-label": "the confidence within each predicted class",
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
    columns: Sequence[CaptionColumn],
    level: float,
    *,
    compared: bool,
    interval: bool,
    noise_floor: bool,
    n_segments: int | None = None,
) -> list[str]:
    """Return the sentences of the caption, which explain only what the table shows.

    The columns are those of the measures; in a table of segments each has the estimates of all `n_segments` segments.
    """
    sentences = [f"{text}." for text in [_describe_columns(columns)] if text]
    sentences.append(f"n = {describe_n_rows(columns)} rows{', the same for all models' if compared else ''}.")
    estimates = [estimate for column in columns for estimate in column.estimates.values()]
    if interval and any(estimate.interval is not None for estimate in estimates):
        sentences.append(f"Brackets: {format_percent_in_text(level)} confidence interval.")
        if any(map(_ends_at_value, estimates)):
            sentences.append(
                "Intervals correct the upward bias; where needed, the upper limit is extended to the estimate."
            )
    if noise_floor and any(estimate.noise_floor is not None for estimate in estimates):
        sentences.append("Parentheses: expected value if the model were calibrated.")
    if compared:
        family = format_count(len(columns), "measure")
        family += "" if n_segments is None else f" and {format_count(n_segments, 'segment')}"
        adjustment = f" over the {family} by Holm's method" if len(columns) * (n_segments or 1) > 1 else ""
        test = f"(paired comparisons, familywise error rate {format_percent_in_text(1 - level)}{adjustment})"
        sentences.append(_explain_bold(columns, test))
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


def _explain_bold(columns: Sequence[CaptionColumn], test: str) -> str:
    """Say what a bold value means, or that there is none."""
    if any(column.bold is not None for column in columns):
        return f"Bold: significantly better than every other model {test}."
    return f"No model is significantly better than every other model {test}, so no value is bold."


def explain_differences(columns: Sequence[MeasureColumn], level: float) -> str:
    """Say what a bold difference of versions means; empty without tests."""
    pvalues = [difference.adjusted_pvalue for column in columns for difference in column.differences]
    tested = [p for p in pvalues if p is not None]
    if not tested:
        return ""
    adjustment = f" over {len(pvalues):,} differences by Holm's method" if len(pvalues) > 1 else ""
    n_unpaired = sum(not difference.paired for column in columns for difference in column.differences)
    unpaired = f"{n_unpaired:,} of {len(pvalues):,} unpaired, " if n_unpaired else ""
    unpaired = "unpaired comparisons, " if n_unpaired == len(pvalues) else unpaired
    test = f"({unpaired}familywise error rate {format_percent_in_text(1 - level)}{adjustment})"
    if min(tested) <= 1 - level:
        return f"Bold: significant difference between versions {test}."
    return f"No difference between versions is significant {test}, so no value is bold."


def explain_cells(cells: Sequence[SegmentCell], level: float, test: str, *, is_approximate: bool) -> list[str]:
    """Say what the marks of the cells of a table of segments mean; `test` describes the test of calibration.

    `is_approximate` says that the size of the test can exceed the nominal level (note TN204).
    """
    if not cells:
        return []
    nominal = "nominal " if is_approximate else ""
    adjustment = f"{nominal}familywise error rate {format_percent_in_text(1 - level)}"
    adjustment += f" over the {len(cells):,} cells by Holm's method" if len(cells) > 1 else ""
    explanation = f"({test}, {adjustment}{', which the clustered rows can exceed (TN204)' if is_approximate else ''})."
    statuses = {cell.status for cell in cells}
    if "miscalibrated" in statuses:
        sentences = [f"†: calibration is rejected {explanation}"]
    else:
        sentences = [f"In no cell is calibration rejected {explanation}"]
    return sentences + (["?: not judged (TN287)."] if "not judged" in statuses else [])


def _describe_columns(columns: Sequence[CaptionColumn]) -> str:
    """Say from which probabilities and with which bins each measure is computed; accuracy needs no description."""
    labels: dict[str, list[str]] = {}
    for column in columns:
        if column.estimator != "accuracy" and column.estimates:
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
    elif quantity := trait_of_estimator(column.estimator, "quantity"):
        description = f"{quantity} of {description}"
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
