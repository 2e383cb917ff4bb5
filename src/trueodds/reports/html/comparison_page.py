"""Report a comparison of models as one self-contained HTML page: compute measures and diagrams, and render them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import trueodds
from trueodds.api.arguments import resolve_data
from trueodds.api.draw import draw
from trueodds.api.measure import measure
from trueodds.core.errors import InputError, Note, describe
from trueodds.core.formatting import (
    format_boolean,
    format_count,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue_clause,
)
from trueodds.core.printable import isolate_tree, printable_tree
from trueodds.core.results import Estimate, is_score
from trueodds.core.table import Column, Table
from trueodds.core.versions import program_versions, version_rows
from trueodds.data.predictions import Predictions
from trueodds.io.models import is_pair
from trueodds.reports.audit_sections import AuditDiagram, AuditInterval, AuditMeasure, Section
from trueodds.reports.html.figures import Picture, axis_names, bar_level
from trueodds.reports.html.rendering import render_page
from trueodds.reports.html.svg_pictures import reliability_svg, select_bins, upper_limit
from trueodds.reports.provenance import fingerprint_rows
from trueodds.reports.text.diagram_tables import diagram_table
from trueodds.reports.text.formatting import format_settings, interval_heading
from trueodds.reports.text.result_tables import ErrorMark, error_bars
from trueodds.resampling.comparison.comparison_results import Comparison, Ranking
from trueodds.tallies.tally import Tally

MAIN_MEASURES = ("ece", "brier", "log_loss")  # estimators whose value the page has for every model


class ModelFacts(Section):
    """A model of the page: its main measures and its reliability diagram."""

    name: str
    kind: str
    fingerprint: str | None
    measures: tuple[AuditMeasure, ...]
    diagram: AuditDiagram


class ComparedPair(Section):
    """The difference of two models."""

    names: tuple[str, ...]
    difference: float | None
    interval: AuditInterval | None
    pvalue: float | None
    paired: bool
    better: str | None


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


def comparison_page(result: Comparison | Ranking, models: Any, path: str | Path | None = None) -> str:
    """Return a comparison of models as one self-contained HTML page, as `Comparison.to_html` documents it.

    The measures and diagrams of the page have the level, the number of bins, the weights and the seed of the result,
    and the calibration errors its lens. The measure that was compared is not computed again. Infinite values are kept.

    >>> import trueodds as to
    >>> models = {"a": ([0, 1] * 50, [0.4, 0.6] * 50), "b": ([0, 1] * 50, [0.1, 0.9] * 50)}
    >>> html = comparison_page(to.compare(models["a"], models["b"], names=["a", "b"]), models)
    >>> html.startswith("<!doctype html>")
    True
    """
    entries = []
    for name, rows in _resolve_models(result, models).items():
        measures = [_measure_model(result, name, rows, estimator) for estimator in MAIN_MEASURES]
        entries.append(
            {
                "name": name,
                "kind": rows.kind,
                "fingerprint": None if isinstance(rows, Tally) else fingerprint_rows(rows),
                "measures": [_keep_infinite(estimate) for estimate in measures],
                "diagram": draw(rows, "reliability", **_diagram_settings(result)).to_dict(),
            }
        )
    comparison = {
        **result.to_dict(),
        "models": {name: _keep_infinite(estimate) for name, estimate in result.models.items()},
        "sentence": verdict_of_models(result),
        "version": trueodds.__version__,
        "versions": program_versions(),
    }
    if isinstance(result, Ranking):
        comparison["pairs"] = [pair.pair() | {"difference": pair.difference} for pair in result.pairs]
    else:
        comparison["difference"] = result.difference
    comparison, entries = isolate_tree(printable_tree((comparison, entries)), printable_tree(list(result.models)))
    facts, compared = ComparisonFacts.from_dict(comparison), [ModelFacts.from_dict(entry) for entry in entries]
    pairs = facts.pairs or (ComparedPair.from_dict(comparison),)
    return render_page(
        "comparison_page.html.jinja",
        path=path,
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


def _keep_infinite(estimate: Estimate) -> dict[str, Any]:
    """Return the JSON of an estimate, but with its value as it is if that is infinite."""
    return estimate.to_dict() | {"value": estimate.value}


def _resolve_models(result: Comparison | Ranking, models: Any) -> dict[str, Predictions | Tally]:
    """Return the rows of the compared models by name; raise TO205 for other models or numbers of rows."""
    names = list(result.models)
    fix = f"Pass the data that were compared, as {{{', '.join(f'{name!r}: …' for name in names)}}}."
    if isinstance(models, (list, tuple)) and not is_pair(models) and len(models) == len(names):
        models = dict(zip(names, models, strict=True))
    if not isinstance(models, Mapping) or set(map(str, models)) != set(names):
        got = ", ".join(map(str, models)) if isinstance(models, Mapping) else describe(models)
        raise InputError("TO205", "The page needs the models of this comparison.", got, fix)
    by_name = {str(name): model for name, model in models.items()}
    rows_of_models = {name: resolve_data(by_name[name], None, _weight_kind(result)) for name in names}
    for name, rows in rows_of_models.items():
        if rows.n != result.models[name].n:
            got = f"{name}: {rows.n:,} rows instead of {result.models[name].n:,}"
            raise InputError("TO205", "The page needs the models of this comparison.", got, fix)
    return rows_of_models


def _measure_model(result: Comparison | Ranking, name: str, rows: Predictions | Tally, estimator: str) -> Estimate:
    """Return a measure of a model, computed with the settings of the result unless the result contains it."""
    if estimator == result.estimator:
        return result.models[name]
    settings: dict[str, Any] = {"lens": _lens(result, of_score=is_score(estimator))}
    if estimator == "ece":
        settings |= _bin_settings(result)
    return measure(
        rows,
        estimator,
        level=_level(result),
        resamples=result.settings.get("resamples"),
        weight_kind=_weight_kind(result),
        rng=_seed(result),
        **settings,
    )


def _diagram_settings(result: Comparison | Ranking) -> dict[str, Any]:
    """Return the settings of the diagrams, which have the bins of the calibration error that the page shows."""
    scheme = result.settings.get("partition", "") if result.estimator == "ece" else ""
    partition = {"partition": "equal-mass"} if str(scheme).startswith("equal-mass ") else {}
    lens, weight_kind = _lens(result, of_score=False), _weight_kind(result)
    return {"lens": lens, "weight_kind": weight_kind, "rng": _seed(result), **partition, **_bin_settings(result)}


def _lens(result: Comparison | Ranking, *, of_score: bool) -> str | None:
    """Return the lens of the result for a measure of the same kind, score or error; None for the default lens."""
    is_same_kind = of_score == is_score(result.estimator)
    return result.lens if is_same_kind and result.lens != "canonical" else None


def _bin_settings(result: Comparison | Ranking) -> dict[str, Any]:
    """Return number and closed side of the bins of the result; empty if it has no bins of a given number.

    >>> from types import SimpleNamespace
    >>> _bin_settings(SimpleNamespace(settings={"partition": "equal-mass 8, left-closed"}))
    {'bins': 8, 'closed': 'left'}
    """
    match = re.fullmatch(r"(?:uniform|equal-mass) (\d+)(, left-closed)?", str(result.settings.get("partition")))
    if match is None:
        return {}
    return {"bins": int(match[1])} | ({"closed": "left"} if match[2] else {})


def _level(result: Comparison | Ranking) -> float:
    """Return the confidence level of the result."""
    return result.level if isinstance(result, Ranking) else float(result.settings.get("level", 0.95))


def _weight_kind(result: Comparison | Ranking) -> str:
    return str(result.settings.get("weight_kind", "importance"))


def _seed(result: Comparison | Ranking) -> int:
    """Return the seed of the result; 0 if it had a random generator."""
    seed = result.settings.get("seed", 0)
    return seed if isinstance(seed, int) else 0


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
