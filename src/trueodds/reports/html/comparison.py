"""Render a comparison of models as one self-contained HTML page, with the style and script of the audit's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.core.printable import printable_tree
from trueodds.core.text_direction import isolate_tree
from trueodds.reports.html.figures import Picture, axis_names
from trueodds.reports.html.reliability_svg import reliability_svg, select_bins, upper_limit
from trueodds.reports.html.rendering import render_page
from trueodds.reports.text.data_and_settings import diagram_table
from trueodds.reports.text.formatting import (
    format_boolean,
    format_column,
    format_count,
    format_intervals,
    format_level,
    format_pvalue,
    format_pvalue_clause,
    format_settings,
)
from trueodds.reports.text.results import interval_mark
from trueodds.reports.text.tables import LABEL_AND_TEXT, TableColumn, TextTable


def render_comparison(comparison: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> str:
    """Render the page of a comparison or ranking.

    Parameters
    ----------
    comparison : mapping
        A comparison or ranking as JSON values, with the `version`, `versions` and `seed` of the programs.
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
        "comparison.html.jinja",
        comparison=comparison,
        title=" · ".join(model["name"] for model in models),
        sentence=verdict_of_models(comparison),
        role="good" if any(pair["better"] for pair in pairs) else "plain",
        figures=figures,
        compared=_compared_error_table(comparison),
        measures=_measure_table(models),
        differences=_difference_table(comparison, pairs),
        settings=_settings_table(comparison, models),
        notes=[(note["code"], note["text"]) for note in comparison["notes"]],
    )


def verdict_of_models(comparison: Mapping[str, Any]) -> str:
    """Return in a sentence which model is better, or that no difference is established.

    >>> pair = {"names": ["a", "b"], "difference": -0.02, "interval": None, "pvalue": 0.3, "better": None}
    >>> verdict_of_models({"estimator": "ece", "n": 90, **pair})
    'No difference in ece between a and b is established: a minus b is -0.02 (p = 0.3), 90 rows.'
    """
    estimator, rows = comparison["estimator"].replace("_", " "), format_count(comparison["n"], "row")
    if "order" in comparison:
        order, settled = comparison["order"], comparison["settled"]
        n_pairs = len(settled) + len(comparison["unsettled"])
        text = f"By {estimator}, from the best to the worst: {', '.join(order)}."
        return f"{text} The order of {len(settled)} of {format_count(n_pairs, 'pair')} is established, {rows}."
    first, second = comparison["names"]
    details = [f"{first} minus {second} is {format_number(comparison['difference'])}"]
    evidence = []
    if interval := comparison["interval"]:
        evidence.append(f"{format_level(interval['level'])} confidence interval {format_intervals([interval])[0]}")
    if comparison["pvalue"] is not None:
        evidence.append(format_pvalue_clause(comparison["pvalue"], comparison.get("min_pvalue")))
    details[0] += f" ({', '.join(evidence)})" if evidence else ""
    if comparison["better"] is None:
        return f"No difference in {estimator} between {first} and {second} is established: {details[0]}, {rows}."
    return f"{comparison['better']} is better by {estimator}: {details[0]}, {rows}."


def _model_figures(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the reliability diagram of each model with common axes, and its table."""
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
        TableColumn("interval"),
        TableColumn("noise floor"),
        TableColumn("n"),
    )
    rows = zip(
        comparison["models"],
        format_column([estimate["value"] for estimate in estimates]),
        format_intervals([estimate["interval"] for estimate in estimates]),
        format_column([estimate["noise_floor"] for estimate in estimates]),
        (f"{estimate['n']:,}" for estimate in estimates),
        strict=True,
    )
    marks = tuple(interval_mark(one["value"], one["interval"], one["noise_floor"]) for one in estimates)
    return TextTable("Compared error", columns, tuple(rows), marks=marks).without_empty_columns()


def _measure_table(models: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the table of the main measures of each model with their intervals."""
    entries = [(model["name"], estimate) for model in models for estimate in model["measures"]]
    columns = (
        TableColumn("model", numeric=False),
        TableColumn("measure", numeric=False),
        TableColumn("lens", numeric=False),
        TableColumn("value"),
        TableColumn("interval"),
        TableColumn("noise floor"),
    )
    rows = zip(
        (name for name, _ in entries),
        (estimate["estimator"].replace("_", " ") for _, estimate in entries),
        (estimate["lens"] for _, estimate in entries),
        format_column([estimate["value"] for _, estimate in entries]),
        format_intervals([estimate["interval"] for _, estimate in entries]),
        format_column([estimate["noise_floor"] for _, estimate in entries]),
        strict=True,
    )
    return TextTable("Main measures", columns, tuple(rows)).without_empty_columns()


def _difference_table(comparison: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the table of the differences of every two models."""
    columns = (
        TableColumn("first", numeric=False),
        TableColumn("second", numeric=False),
        TableColumn("difference"),
        TableColumn("interval"),
        TableColumn("p"),
        TableColumn("paired", numeric=False),
        TableColumn("better", numeric=False),
    )
    rows = zip(
        (pair["names"][0] for pair in pairs),
        (pair["names"][1] for pair in pairs),
        format_column([pair["difference"] for pair in pairs]),
        format_intervals([pair["interval"] for pair in pairs]),
        (format_pvalue(pair["pvalue"], comparison.get("min_pvalue")) for pair in pairs),
        (format_boolean(pair["paired"]) for pair in pairs),
        (pair["better"] or "not established" for pair in pairs),
        strict=True,
    )
    several = len(pairs) > 1
    intro = "Error of the first model minus that of the second; better is stated only if the interval excludes 0."
    intro += " The intervals hold simultaneously, and the p-values are adjusted." if several else ""
    return TextTable("Differences between models", columns, tuple(rows), intro).without_empty_columns()


def _settings_table(comparison: Mapping[str, Any], models: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the table of what identifies the comparison: settings, null hypothesis, versions, seed and rows."""
    labels = {"trueodds": "trueodds", "python": "Python", "numpy": "NumPy", "scipy": "SciPy"}
    rows = [
        ("lens", comparison["lens"]),
        ("settings", format_settings(comparison["settings"])),
        ("null hypothesis", comparison["null"]),
        *((labels.get(name, name), version) for name, version in comparison["versions"].items()),
        ("seed", str(comparison["seed"])),
        *((f"fingerprint of {model['name']}", model["fingerprint"] or "none: a tally") for model in models),
    ]
    return TextTable("Settings and versions", LABEL_AND_TEXT, tuple(rows))
