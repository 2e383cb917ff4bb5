"""Render a comparison of models as one self-contained HTML page, with the style and script of the page of an audit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.formatting import (
    format_boolean,
    format_column,
    format_count,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue,
    format_pvalue_clause,
)
from trueodds.core.printable import printable_tree
from trueodds.core.text_direction import isolate_tree
from trueodds.reports.html.figures import Picture, axis_names, bar_level
from trueodds.reports.html.reliability_svg import reliability_svg, select_bins, upper_limit
from trueodds.reports.html.rendering import render_page
from trueodds.reports.provenance import version_rows
from trueodds.reports.text.diagram_tables import diagram_table
from trueodds.reports.text.formatting import format_settings, interval_heading
from trueodds.reports.text.result_tables import interval_mark
from trueodds.reports.text.text_table import LABEL_AND_TEXT, TableColumn, TextTable
from trueodds.resampling.comparison.comparison_results import Comparison, Ranking


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
    pairs = comparison.get("pairs") or [comparison]
    figures = _model_figures(models)
    return render_page(
        "comparison_page.html.jinja",
        comparison=comparison,
        title=" · ".join(model["name"] for model in models),
        sentence=comparison["sentence"],
        role="good" if any(pair["better"] for pair in pairs) else "plain",
        figures=figures,
        bar_level=bar_level([model["diagram"] for model in models]),
        compared=_compared_error_table(comparison),
        measures=_measure_table(models),
        differences=_difference_table(comparison, pairs),
        settings=_settings_table(comparison, models),
        notes=[(note["code"], note["text"]) for note in comparison["notes"]],
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
        limits = format_intervals([result.interval.to_dict()])[0]
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


def _format_with_infinities(values: Sequence[float | None]) -> list[str]:
    """Format a column of numbers with the same number of decimals; infinite ones as ∞ and −∞."""
    signs: dict[float | None, str] = {math.inf: "∞", -math.inf: "−∞"}
    return [signs.get(value, text) for value, text in zip(values, format_column(values), strict=True)]


def _model_figures(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the picture of the reliability diagram of each model, with common axes, and the table of its numbers."""
    bins_of_models = [select_bins(model["diagram"]["table"]) for model in models]
    limit = max(upper_limit(bins) for bins in bins_of_models)
    figures = []
    for i, (model, bins) in enumerate(zip(models, bins_of_models, strict=True), 1):
        axes = axis_names({"kind": model["kind"]}, model["diagram"]["lens"])
        svg = reliability_svg(bins, f"Reliability diagram of {model['name']}", axes, limit)
        picture = Picture(inline=svg, title=model["name"], table_id=f"numbers-{i}")
        figures.append({"picture": picture, "table": diagram_table(model["diagram"]), "id": f"numbers-{i}"})
    return figures


def _compared_error_table(comparison: Mapping[str, Any]) -> TextTable:
    """Return the table of the compared error of each model."""
    estimates = list(comparison["models"].values())
    columns = (
        TableColumn("model", numeric=False),
        TableColumn(comparison["estimator"].replace("_", " ")),
        TableColumn(_interval_heading(estimates)),
        TableColumn("noise floor"),
        TableColumn("n"),
    )
    rows = zip(
        comparison["models"],
        _format_with_infinities([estimate["value"] for estimate in estimates]),
        format_intervals([estimate["interval"] for estimate in estimates]),
        format_column([estimate["noise_floor"] for estimate in estimates]),
        (f"{estimate['n']:,}" for estimate in estimates),
        strict=True,
    )
    marks = tuple(
        interval_mark(estimate["value"], estimate["interval"], estimate["noise_floor"]) for estimate in estimates
    )
    return TextTable("Compared error", columns, tuple(rows), marks=marks).without_empty_columns()


def _measure_table(models: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the table of the main measures of each model with their intervals."""
    entries = [(model["name"], estimate) for model in models for estimate in model["measures"]]
    columns = (
        TableColumn("model", numeric=False),
        TableColumn("measure", numeric=False),
        TableColumn("lens", numeric=False),
        TableColumn("bins", numeric=False),
        TableColumn("value"),
        TableColumn(_interval_heading([estimate for _, estimate in entries])),
        TableColumn("noise floor"),
    )
    rows = zip(
        (name for name, _ in entries),
        (estimate["estimator"].replace("_", " ") for _, estimate in entries),
        (estimate["lens"] for _, estimate in entries),
        (_describe_bins(estimate["settings"]) for _, estimate in entries),
        _format_with_infinities([estimate["value"] for _, estimate in entries]),
        format_intervals([estimate["interval"] for _, estimate in entries]),
        format_column([estimate["noise_floor"] for _, estimate in entries]),
        strict=True,
    )
    return TextTable("Main measures", columns, tuple(rows)).without_empty_columns()


def _difference_table(comparison: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the table of the difference between every two models."""
    is_ranking = "order" in comparison
    level = comparison["level"] if is_ranking else None
    columns = (
        TableColumn("first", numeric=False),
        TableColumn("second", numeric=False),
        TableColumn("difference"),
        TableColumn(_interval_heading(pairs, level)),
        TableColumn("p"),
        TableColumn("paired", numeric=False),
        TableColumn("better", numeric=False),
    )
    rows = zip(
        (pair["names"][0] for pair in pairs),
        (pair["names"][1] for pair in pairs),
        _format_with_infinities([pair["difference"] for pair in pairs]),
        format_intervals([pair["interval"] for pair in pairs]),
        (format_pvalue(pair["pvalue"], comparison.get("min_pvalue")) for pair in pairs),
        (format_boolean(pair["paired"]) for pair in pairs),
        (pair["better"] or "not established" for pair in pairs),
        strict=True,
    )
    intro = "Error of the first model minus that of the second; better is stated only if the interval excludes 0."
    if (target := comparison["settings"].get("distance_from")) is not None:
        intro = intro.replace("Error", f"Distance from {format_number(target)}")
    intro += " The intervals hold simultaneously, and the p-values are adjusted." if is_ranking else ""
    return TextTable("Differences between models", columns, tuple(rows), intro).without_empty_columns()


def _interval_heading(entries: Sequence[Mapping[str, Any]], simultaneous_level: float | None = None) -> str:
    """Return the heading of a column of intervals, with the simultaneous level or that of the first interval."""
    if simultaneous_level is not None:
        return f"{format_percent_in_text(simultaneous_level)} simultaneous interval"
    return interval_heading(next((entry["interval"] for entry in entries if entry["interval"]), None))


def _describe_bins(settings: Mapping[str, Any]) -> str:
    """Return the bins of an estimate; a dash if it has none.

    >>> _describe_bins({"partition": "equal-mass auto", "bins": 12}), _describe_bins({"min_prob": 0.01})
    ('equal-mass 12', '–')
    """
    text = str(settings.get("partition", "–"))
    return text.replace("auto", str(settings.get("bins", "auto")))


def _settings_table(comparison: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the table of what identifies the comparison: settings, null hypothesis, versions, seed and rows."""
    rows = [
        ("lens", comparison["lens"]),
        ("settings", format_settings(comparison["settings"])),
        ("null hypothesis", comparison["null"]),
        *version_rows(comparison["versions"]),
        *((f"fingerprint of {model['name']}", model["fingerprint"] or "none: a tally") for model in models),
    ]
    return TextTable("Settings and versions", LABEL_AND_TEXT, tuple(rows))
