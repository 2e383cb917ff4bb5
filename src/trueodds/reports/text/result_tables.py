"""Tables of the proper scores, standard measures, calibration errors, classes and tests of an audit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.core.formatting import (
    format_column,
    format_error,
    format_intervals,
    format_number,
    format_percent_in_text,
    format_pvalue,
)
from trueodds.core.results import is_score
from trueodds.reports.text.formatting import describe_lens
from trueodds.reports.text.text_table import AuditDict, ErrorMark, TableColumn, TextTable

_HOLM_TEXT = "p is unadjusted, Holm p is adjusted for the number of tests."
# Notes that explain a missing number: by code, the column that it is missing from and the reason.
_MISSING_CELL_REASONS = {
    "TN201": ("interval", "no interval"),
    "TN402": ("interval", "a tally has no interval for an aggregate over classes"),
    "TN406": ("noise_floor", "a tally has no entropy, so the expected log loss is unknown"),
}


def score_table(audit: AuditDict) -> TextTable:
    """Return the table of the proper scores, with their expected values if the model is calibrated."""
    estimates = [measure for measure in audit["measures"] if is_score(measure["estimator"])]
    columns = (
        TableColumn("score", numeric=False),
        TableColumn("lens", numeric=False),
        TableColumn("value"),
        TableColumn(_interval_column_heading(audit)),
        TableColumn("expected if calibrated"),
        TableColumn("n"),
    )
    cells = zip(
        (measure["estimator"].replace("_", " ") for measure in estimates),
        (measure["lens"] for measure in estimates),
        format_column([measure["value"] for measure in estimates]),
        format_intervals([measure["interval"] for measure in estimates]),
        format_column([measure["noise_floor"] for measure in estimates]),
        (f"{measure['n']:,}" for measure in estimates),
        strict=True,
    )
    rows = [
        (*row[:2], "infinite", *row[3:]) if measure["value"] is None and measure["estimator"] == "log_loss" else row
        for measure, row in zip(estimates, cells, strict=True)
    ]
    intro = "Proper scores measure calibration and sharpness together; lower is better."
    if any(measure["noise_floor"] is not None for measure in estimates):
        intro += (
            " Expected if calibrated: the expected score if outcomes followed the predicted probabilities; "
            "a difference in either direction indicates miscalibration."
        )
    return TextTable("Scores", columns, tuple(rows), intro + _explain_dashes(estimates)).without_empty_columns()


def _explain_dashes(estimates: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence with the reasons for empty cells, from the notes of the estimates; empty if none has a reason.

    Columns without any number need no reason, because they are not shown.
    """
    reasons = dict.fromkeys(
        f"{text} ({code})"
        for code, (column, text) in _MISSING_CELL_REASONS.items()
        if any(measure[column] is not None for measure in estimates)
        for measure in estimates
        if measure[column] is None and any(note["code"] == code for note in measure["notes"])
    )
    return f" A dash: {'; '.join(reasons)}." if reasons else ""


def _explain_reconciled_intervals(estimates: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the intervals that were changed to agree with the tests; empty if there is none."""
    lenses = [measure["lens"] for measure in estimates if any(note["code"] == "TN269" for note in measure["notes"])]
    if not lenses:
        return ""
    verb = "s were" if len(lenses) > 1 else " was"
    return f" The {' and '.join(lenses)} interval{verb} reconciled with the others (TN269)."


# The label and the definition of each standard measure, by name.
_STANDARD_MEASURES = {
    "calibration_in_the_large": ("calibration-in-the-large", "mean observed minus mean predicted"),
    "calibration_intercept": (
        "calibration intercept",
        "calibration-in-the-large in log odds, with the slope fixed at 1",
    ),
    "calibration_slope": ("calibration slope", "below 1 predictions are too extreme, above 1 too moderate"),
    "observed_to_expected": ("O:E ratio", "observed over expected number of events"),
    "ici": ("ICI", "integrated calibration index: mean distance from a smoothed calibration curve"),
    "auc": ("AUC", "area under the ROC curve: discrimination, not calibration"),
}

# Measures that are undefined for probabilities of 0 and 1, which have no log odds.
_MEASURES_OF_LOG_ODDS = ("calibration_intercept", "calibration_slope")


def standard_measure_label(name: str) -> str:
    """Return the label of a standard measure.

    >>> standard_measure_label("observed_to_expected")
    'O:E ratio'
    """
    return _STANDARD_MEASURES[name][0]


def standard_measure_table(audit: AuditDict) -> TextTable:
    """Return the table of the standard measures of clinical and credit-risk reports."""
    measures = audit.get("standard_measures") or ()
    values = format_column([measure["value"] for measure in measures])
    if any(note["code"] == "TN268" for note in audit.get("notes") or ()):
        values = [
            "see TN268" if measure["value"] is None and measure["name"] in _MEASURES_OF_LOG_ODDS else value
            for measure, value in zip(measures, values, strict=True)
        ]
    columns = (
        TableColumn("measure", numeric=False),
        TableColumn("value"),
        TableColumn(_interval_column_heading(audit)),
        TableColumn("ideal"),
        TableColumn("definition", numeric=False, detail=True),
    )
    rows = zip(
        (_STANDARD_MEASURES[measure["name"]][0] for measure in measures),
        values,
        format_intervals([measure["interval"] for measure in measures]),
        (format_number(measure["ideal"]) for measure in measures),
        (_STANDARD_MEASURES[measure["name"]][1] for measure in measures),
        strict=True,
    )
    intro = _explain_standard_measures(audit, {measure["name"] for measure in measures})
    return TextTable("Standard calibration measures", columns, tuple(rows), intro).without_empty_columns()


def _explain_standard_measures(audit: AuditDict, names: Collection[str]) -> str:
    """Return the introduction of the table of standard measures: the definition of those with these names."""
    has_several_classes = audit["data"]["kind"] == "classes" and audit["data"]["k"] > 2
    slope = (
        "1/T of the best temperature T" if has_several_classes else "slope of the observed on the predicted log odds"
    )
    intro = (
        f"Calibration slope: {slope}; below 1 predictions are too extreme, above 1 too moderate, and below 0 their"
        " ranking is reversed."
    )
    if "calibration_intercept" in names:
        intro = (
            "Calibration intercept: calibration-in-the-large in log odds (slope fixed at 1); above 0 predictions are"
            f" too low. {intro} O:E ratio: observed over expected number of events. ICI: mean distance from a smoothed"
            " calibration curve."
        )
        if "auc" in names:
            intro += " AUC: area under the ROC curve, a measure of discrimination, not of calibration."
    elif "calibration_in_the_large" in names:
        means = "vote share minus mean confidence" if audit["data"].get("votes") else "accuracy minus mean confidence"
        intro = f"Calibration-in-the-large: {means}; above 0 confidences are too low. {intro}"
    return intro


def error_table(audit: AuditDict) -> TextTable:
    """Return the table of the expected calibration error through each lens, with its test."""
    estimates = _calibration_errors(audit)
    tests = [_test_of_lens(audit, measure["lens"]) for measure in estimates]
    columns = (
        TableColumn("examined", numeric=False, detail=True),
        TableColumn("lens", numeric=False),
        TableColumn("measure", numeric=False),
        TableColumn("error"),
        TableColumn(_interval_column_heading(audit)),
        TableColumn("noise floor"),
        TableColumn("debiased", detail=True),
        TableColumn("p"),
        TableColumn("Holm p"),
        TableColumn("n"),
    )
    cells = zip(
        (describe_lens(measure["lens"], audit["data"]) or measure["lens"] for measure in estimates),
        (measure["lens"] for measure in estimates),
        (measure["estimator"].replace("_", " ") for measure in estimates),
        format_column([measure["value"] for measure in estimates]),
        format_intervals([measure["interval"] for measure in estimates]),
        format_column([measure["noise_floor"] for measure in estimates]),
        format_column([measure.get("debiased") for measure in estimates]),
        (test.p for test in tests),
        (test.holm for test in tests),
        (f"{measure['n']:,}" for measure in estimates),
        strict=True,
    )
    marks = tuple(interval_mark(measure["value"], measure["interval"], measure["noise_floor"]) for measure in estimates)
    intro = (
        "Noise floor: the expected error of a calibrated model on these rows. p: the p-value of the calibration test"
        " through the same lens. The test is more sensitive than the interval: p can be small although the interval"
        " includes 0." + _explain_dashes(estimates) + _explain_reconciled_intervals(estimates)
    )
    if any(test.holm != "–" for test in tests):
        intro += f" {_HOLM_TEXT}"
    return TextTable("Calibration errors", columns, tuple(cells), intro, marks=marks).without_empty_columns()


def interval_mark(value: float | None, interval: Mapping[str, Any] | None, noise_floor: float | None) -> ErrorMark:
    """Return the mark of an error with its interval, a JSON object, and its noise floor."""
    ends = interval or {}
    return ErrorMark(value, ends.get("low"), ends.get("high"), noise_floor)


class _LensTest(NamedTuple):
    """The test results of one lens, as displayed."""

    p: str  # p-value
    holm: str  # Holm-adjusted p-value of the family
    expected_statistic: float | None  # expected statistic if the model is calibrated


def _test_of_lens(audit: AuditDict, lens: str) -> _LensTest:
    """Return the test of one lens, with its Holm-adjusted p-value from the family."""
    lens_test: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == lens), {})
    family: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == "family"), {"parts": {}})
    part = family["parts"].get(lens, {})
    p = lens_test.get("pvalue", part.get("pvalue"))
    min_pvalue = lens_test.get("min_pvalue", smallest_pvalue(audit))
    return _LensTest(
        format_pvalue(p, min_pvalue), _format_holm(p, part.get("holm"), min_pvalue), part.get("noise_floor")
    )


def _format_holm(p: float | None, holm: float | None, min_pvalue: float | None) -> str:
    """Format the Holm-adjusted p-value; an upper bound if the unadjusted p-value is the smallest possible one."""
    is_upper_bound = (
        p is not None and min_pvalue is not None and p <= min_pvalue * (1 + 1e-9) and holm is not None and holm < 1
    )
    return format_pvalue(holm, holm if is_upper_bound else None)


def smallest_pvalue(audit: AuditDict) -> float | None:
    """Return the smallest possible p-value of a single test with this number of resamples."""
    resamples = (audit.get("settings") or {}).get("resamples")
    return None if resamples is None else 1 / (1 + resamples)


def _interval_column_heading(audit: AuditDict) -> str:
    """Return the heading of a column of intervals, with their level if they share one."""
    levels = {measure["interval"]["level"] for measure in audit["measures"] if measure["interval"]}
    return f"{format_percent_in_text(levels.pop())} interval" if len(levels) == 1 else "interval"


def class_table(audit: AuditDict) -> TextTable:
    """Return the table of the error of every class against the rest, or of every label, largest first."""
    errors, tests = _classwise_entry(_calibration_errors(audit)), _classwise_entry(audit["tests"])
    entries = []  # the name of each view, its error, and the part of the test on it
    for name in dict.fromkeys([*errors["parts"], *tests["parts"]]):
        part = tests["parts"].get(name, {})
        entries.append((name, errors["parts"].get(name, part.get("error")), part))
    entries.sort(key=lambda entry: -1.0 if entry[1] is None else entry[1], reverse=True)
    if audit["data"]["kind"] == "multilabel":
        unit, units, subject = "label", "labels", "Each label by itself"
    else:
        unit, units, subject = "class", "classes", "Each class against the rest"
    columns = (
        TableColumn(unit, numeric=False),
        TableColumn("error"),
        TableColumn("noise floor"),
        TableColumn("p"),
        TableColumn("Holm p"),
    )
    min_pvalue = smallest_pvalue(audit)
    rows = zip(
        (class_name(name) for name, _, _ in entries),
        format_column([value for _, value, _ in entries]),
        format_column([part.get("noise_floor") for _, _, part in entries]),
        (format_pvalue(part.get("pvalue"), min_pvalue) for _, _, part in entries),
        (_format_holm(part.get("pvalue"), part.get("holm"), min_pvalue) for _, _, part in entries),
        strict=True,
    )
    return TextTable(
        f"Errors by {unit}",
        columns,
        tuple(rows),
        f"Expected calibration error. {subject}, largest error first. Holm p is adjusted for the number of {units}.",
        tuple(class_name(name) for name, _, _ in entries),
        tuple(ErrorMark(value, noise_floor=part.get("noise_floor")) for _, value, part in entries),
    ).without_empty_columns()


class WorstClass(NamedTuple):
    """The class with the largest significant error, as displayed."""

    name: str
    error: str
    holm: str  # Holm-adjusted p-value in a sentence


def worst_class(audit: AuditDict) -> WorstClass | None:
    """Return the class with the largest error against the rest among those for which calibration is rejected.

    None if there is none, or fewer than three classes.
    """
    errors, parts = _classwise_entry(_calibration_errors(audit))["parts"], _classwise_entry(audit["tests"])["parts"]
    alpha = audit["verdict"]["alpha"]
    rejected = [
        (errors[name], name, part)
        for name, part in parts.items()
        if errors.get(name) is not None and part.get("holm") is not None and part["holm"] <= alpha
    ]
    if not rejected or len(parts) < 3 or not audit["verdict"].get("rejected"):
        return None
    error, name, part = max(rejected, key=lambda entry: entry[0])
    holm = _format_holm(part.get("pvalue"), part["holm"], smallest_pvalue(audit))
    return WorstClass(class_name(name), format_error(error), f"p {holm}" if holm[0] in "≤<" else f"p = {holm}")


def class_name(view: str) -> str:
    """Return the class that a view examines, from the name of the view.

    >>> class_name("class:cat")
    'cat'
    """
    return str(view).removeprefix("class:")


def test_table(audit: AuditDict) -> TextTable:
    """Return the table of the family-wise test, then the test of each lens."""
    columns = (
        TableColumn("test", numeric=False),
        TableColumn("lens", numeric=False),
        TableColumn("statistic"),
        TableColumn("expected"),
        TableColumn("effect"),
        TableColumn("p"),
        TableColumn("Holm p"),
        TableColumn("family-wise p"),
        TableColumn("smallest p"),
        TableColumn("n"),
    )
    tests = audit["tests"]
    has_family_parts = any(test["lens"] == "family" and test["parts"] for test in tests)
    tests_of_lenses = [_test_of_lens(audit, test["lens"]) for test in tests]
    rows = zip(
        (test["test"] for test in tests),
        (test["lens"] for test in tests),
        format_column([test.get("statistic") for test in tests]),
        format_column([lens_test.expected_statistic for lens_test in tests_of_lenses]),
        format_column([test.get("effect") for test in tests]),
        (format_pvalue(test.get("pvalue"), test.get("min_pvalue")) for test in tests),
        (lens_test.holm for lens_test in tests_of_lenses),
        (format_pvalue(test.get("family_pvalue"), test.get("min_pvalue")) for test in tests),
        (format_number(test.get("min_pvalue")) for test in tests),
        (f"{test['n']:,}" for test in tests),
        strict=True,
    )
    nulls = dict.fromkeys(test["null"] for test in tests if test.get("null"))
    intro = " ".join(f"Null hypothesis: {null}." for null in nulls)
    intro += (
        " Statistic of omnibus: combined evidence of the tests of level, slope and local errors on a log scale, 0 for"
        " no evidence. Effect: root mean square calibration error minus the part expected from noise, negative if it"
        " is smaller than the noise; it weights large errors more than the ECE does."
        " Smallest p: the smallest p-value that this number of resamples allows"
    )
    smallest = [test["min_pvalue"] for test in tests if test.get("min_pvalue") is not None]
    if len(smallest) > 1 and smallest[0] > min(smallest[1:]):
        intro += "; that of the family is larger, because groups and the recalibration get a part of alpha"
    intro += "."
    if has_family_parts:
        intro += f" {_HOLM_TEXT}"
    return TextTable("Calibration tests", columns, tuple(rows), intro).without_empty_columns()


def _calibration_errors(audit: AuditDict) -> list[Mapping[str, Any]]:
    """Return the estimates that are calibration errors and not proper scores, which have the same lenses."""
    return [measure for measure in audit["measures"] if not is_score(measure["estimator"])]


def _classwise_entry(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the entry whose parts are classes; the parts of other lenses are the terms of their error."""
    return next((entry for entry in entries if entry["lens"] == "classwise" and entry["parts"]), {"parts": {}})
