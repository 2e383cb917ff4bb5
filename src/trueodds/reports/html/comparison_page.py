"""Render a comparison of models as one self-contained HTML page, with the style and script of the page of an audit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueodds.core.errors import Note
from trueodds.core.formatting import (
    format_boolean,
    format_count,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue_clause,
)
from trueodds.core.printable import isolate_tree, printable_tree
from trueodds.core.table import Column, Table
from trueodds.core.versions import version_rows
from trueodds.reports.audit_sections import AuditDiagram, AuditInterval, AuditMeasure, Section
from trueodds.reports.html.figures import Picture, axis_names, bar_level
from trueodds.reports.html.reliability_svg import reliability_svg, select_bins, upper_limit
from trueodds.reports.html.rendering import render_page
from trueodds.reports.text.diagram_tables import diagram_table
from trueodds.reports.text.formatting import format_settings, interval_heading
from trueodds.reports.text.result_tables import ErrorMark, error_bars
from trueodds.resampling.comparison.comparison_results import Comparison, Ranking


@dataclass(frozen=True, kw_only=True)
class ModelFacts(Section):
    """A model of the page: its main measures and its reliability diagram."""

    name: str
    kind: str
    fingerprint: str | None
    measures: tuple[AuditMeasure, ...]
    diagram: AuditDiagram


@dataclass(frozen=True, kw_only=True)
class ComparedPair(Section):
    """The difference of two models."""

    names: tuple[str, ...]
    difference: float | None
    interval: AuditInterval | None
    pvalue: float | None
    paired: bool
    better: str | None


@dataclass(frozen=True, kw_only=True)
class ComparisonFacts(Section):
    """What the page has of a comparison, or of a ranking with its pairs."""

    schema: str
    version: str
    versions: Mapping[str, str]
    sentence: str
    estimator: str
    lens: str
    models: Mapping[str, AuditMeasure]
    pairs: tuple[ComparedPair, ...] = ()
    order: tuple[str, ...] = ()  # of a ranking
    level: float | None = None  # of the simultaneous intervals of a ranking
    min_pvalue: float | None = None
    null: str
    settings: Mapping[str, Any]
    notes: tuple[Note, ...] = ()


def render_comparison(comparison: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> str:
    """Render the page of a comparison or ranking.

    Parameters
    ----------
    comparison : mapping
        A comparison or ranking as JSON values, in which infinite values may be kept, with its `sentence` and the
        `version` and `versions` of the programs.
    models : sequence of mapping
        For each model its `name`, `kind`, `k`, `fingerprint`, `measures` and reliability `diagram`.

    Returns
    -------
    str
        The HTML text.
    """
    names = [model["name"] for model in models]
    comparison, models = isolate_tree(printable_tree((comparison, list(models))), printable_tree(names))
    facts, compared = ComparisonFacts.from_dict(comparison), [ModelFacts.from_dict(model) for model in models]
    pairs = facts.pairs or (ComparedPair.from_dict(comparison),)
    return render_page(
        "comparison_page.html.jinja",
        comparison=facts,
        title=" · ".join(model.name for model in compared),
        sentence=facts.sentence,
        role="good" if any(pair.better for pair in pairs) else "plain",
        figures=_model_figures(compared),
        bar_level=bar_level([model.diagram for model in compared]),
        compared=_compared_error_table(facts),
        measures=_measure_table(compared),
        differences=_difference_table(facts, pairs),
        settings=_settings_table(facts, compared),
        notes=[(note.code, note.text) for note in facts.notes],
    )


def verdict_of_models(result: Comparison | Ranking) -> str:
    """Return in a sentence which model is better, or that no difference is established.

    >>> from trueodds.core.results import Estimate
    >>> estimates = {name: Estimate("ece", "positive", value, 90) for name, value in [("a", 0.04), ("b", 0.06)]}
    >>> verdict_of_models(Comparison("ece", "positive", -0.02, 90, True, estimates, "equal errors", pvalue=0.3))
    'No difference in ece between a and b is established: a minus b is -0.02 (p = 0.3), 90 rows.'
    """
    estimator, rows = result.estimator.replace("_", " "), format_count(result.n, "row")
    infinite = _describe_infinite_models(result)
    if isinstance(result, Ranking):
        n_pairs = len(result.pairs)
        text = f"By {estimator}, from the best to the worst: {', '.join(result.order)}."
        text += f" The order of {len(result.settled)} of {format_count(n_pairs, 'pair')} is established, {rows}."
        return f"{text} {infinite}." if infinite else text
    first, second = result.names
    if infinite:
        finite = [name for name, estimate in result.models.items() if math.isfinite(estimate.value)]
        other = f"; that of {finite[0]} is {format_number(result.models[finite[0]].value)}" if finite else ""
        return f"{infinite}{other}. The difference has no interval, {rows}."
    target = result.settings.get("distance_from")
    subject = f"{first} minus {second}"
    if target is not None:
        subject = f"the distance from {format_number(target)} of {first} minus that of {second}"
    details = f"{subject} is {format_number(result.difference)}"
    evidence = []
    if result.interval is not None:
        limits = format_intervals([result.interval])[0]
        evidence.append(f"{format_percent_in_text(result.interval.level)} confidence interval {limits}")
    if result.pvalue is not None:
        evidence.append(format_pvalue_clause(result.pvalue, result.min_pvalue))
    details += f" ({', '.join(evidence)})" if evidence else ""
    if result.better is None:
        return f"No difference in {estimator} between {first} and {second} is established: {details}, {rows}."
    return f"{result.better} is better by {estimator}: {details}, {rows}."


def _describe_infinite_models(result: Comparison | Ranking) -> str:
    """Return which models have an infinite value, and why according to their notes; empty if all values are finite."""
    estimator = result.estimator.replace("_", " ")
    texts = []
    for name, estimate in result.models.items():
        if not math.isinf(estimate.value):
            continue
        reasons = [note.text.partition(",")[0] for note in estimate.notes if note.code == "TN104"]
        value = "infinite" if estimate.value > 0 else "infinitely negative"
        texts.append(f"{name} has {value} {estimator}{f' ({reasons[0]})' if reasons else ''}")
    return ", ".join(texts)


def _sign_infinities(values: Iterable[float | None]) -> list[float | str | None]:
    """Return numbers with infinite ones as ∞ and −∞."""
    signs: dict[float | None, str] = {math.inf: "∞", -math.inf: "−∞"}
    return [signs.get(value, value) for value in values]


def _model_figures(models: Sequence[ModelFacts]) -> list[dict[str, Any]]:
    """Return the picture of the reliability diagram of each model, with common axes, and the table of its numbers."""
    bins_of_models = [select_bins(model.diagram.table) for model in models]
    limit = max(upper_limit(bins) for bins in bins_of_models)
    figures = []
    for i, (model, bins) in enumerate(zip(models, bins_of_models, strict=True), 1):
        axes = axis_names(model.kind, model.diagram.lens)
        svg = reliability_svg(bins, f"Reliability diagram of {model.name}", axes, limit)
        picture = Picture(inline=svg, title=model.name, table_id=f"numbers-{i}")
        figures.append({"picture": picture, "table": diagram_table(model.diagram), "id": f"numbers-{i}"})
    return figures


def _compared_error_table(comparison: ComparisonFacts) -> Table:
    estimates = comparison.models.values()
    columns = (
        Column("model", list(comparison.models), "text"),
        Column(comparison.estimator.replace("_", " "), _sign_infinities(estimate.value for estimate in estimates)),
        _interval_column([estimate.interval for estimate in estimates]),
        Column("noise floor", [estimate.noise_floor for estimate in estimates]),
        Column("n", [estimate.n for estimate in estimates], "count"),
        error_bars([ErrorMark(estimate.value, estimate.interval, estimate.noise_floor) for estimate in estimates]),
    )
    return Table("Compared error", columns).without_empty_columns()


def _measure_table(models: Sequence[ModelFacts]) -> Table:
    """Return the table of the main measures of each model with their intervals."""
    names = [model.name for model in models for _ in model.measures]
    estimates = [estimate for model in models for estimate in model.measures]
    columns = (
        Column("model", names, "text"),
        Column("measure", [estimate.estimator.replace("_", " ") for estimate in estimates], "text"),
        Column("lens", [estimate.lens for estimate in estimates], "text"),
        Column("bins", [_describe_bins(estimate.settings) for estimate in estimates], "text"),
        Column("value", _sign_infinities(estimate.value for estimate in estimates)),
        _interval_column([estimate.interval for estimate in estimates]),
        Column("noise floor", [estimate.noise_floor for estimate in estimates]),
    )
    return Table("Main measures", columns).without_empty_columns()


def _difference_table(comparison: ComparisonFacts, pairs: Sequence[ComparedPair]) -> Table:
    """Return the table of the difference between every two models."""
    columns = (
        Column("first", [pair.names[0] for pair in pairs], "text"),
        Column("second", [pair.names[1] for pair in pairs], "text"),
        Column("difference", _sign_infinities(pair.difference for pair in pairs)),
        _interval_column([pair.interval for pair in pairs], comparison.level if comparison.order else None),
        Column("p", [pair.pvalue for pair in pairs], "pvalue", min_pvalue=comparison.min_pvalue),
        Column("paired", [format_boolean(pair.paired) for pair in pairs], "text"),
        Column("better", [pair.better or "not established" for pair in pairs], "text"),
    )
    intro = (
        "Difference: error of the first model minus error of the second. A model is called better only if the interval"
        " excludes 0."
    )
    if (target := comparison.settings.get("distance_from")) is not None:
        intro = intro.replace("error", f"distance from {format_number(target)}")
    intro += " The intervals hold simultaneously, and the p-values are adjusted." if comparison.order else ""
    return Table("Differences between models", columns, intro).without_empty_columns()


def _interval_column(intervals: Sequence[AuditInterval | None], simultaneous_level: float | None = None) -> Column:
    """Return the column of intervals; its heading has their simultaneous level, or the level of the first one."""
    if simultaneous_level is not None:
        return Column(f"{format_percent_in_text(simultaneous_level)} simultaneous interval", intervals, "interval")
    level = next((interval.level for interval in intervals if interval is not None), None)
    return Column(interval_heading(level), intervals, "interval")


def _describe_bins(settings: Mapping[str, Any]) -> str:
    """Return the bins of an estimate; a dash if it has none.

    >>> _describe_bins({"partition": "equal-mass auto", "bins": 12}), _describe_bins({"min_prob": 0.01})
    ('equal-mass 12', '–')
    """
    text = str(settings.get("partition", "–"))
    return text.replace("auto", str(settings.get("bins", "auto")))


def _settings_table(comparison: ComparisonFacts, models: Sequence[ModelFacts]) -> Table:
    """Return the table of what identifies the comparison: settings, null hypothesis, versions, seed and rows."""
    rows = [
        ("lens", comparison.lens),
        ("settings", format_settings(comparison.settings)),
        ("null hypothesis", comparison.null),
        *version_rows(comparison.versions),
        *((f"fingerprint of {model.name}", model.fingerprint or "none: a tally") for model in models),
    ]
    return Table.from_entries("Settings and versions", rows)
