"""Tables of the scores, calibration errors, classes and tests of an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trueodds.core.formatting import format_number
from trueodds.reports.text.formatting import (
    DETAIL,
    NAMES,
    Mark,
    TableColumn,
    TextTable,
    align_digits,
    describe_lens,
    interval_texts,
    level_text,
    pvalue,
)

Audit = Mapping[str, Any]
_PROPER = ("brier", "log_loss", "spherical", "rps")
_JOINT = "p is unadjusted, Holm p is adjusted for the number of tests."
_REASONS = {
    "TN201": ("interval", "no interval"),
    "TN402": ("interval", "a tally has no interval for an aggregate over classes"),
    "TN406": ("noise_floor", "a tally has no entropy, so the expected log loss is unknown"),
}


def score_table(audit: Audit) -> TextTable:
    """The proper scores, with their expected values if the model is calibrated."""
    measured = [measure for measure in audit["measures"] if measure["estimator"] in _PROPER]
    columns = (
        TableColumn("score", NAMES),
        TableColumn("lens", NAMES),
        TableColumn("value"),
        TableColumn(_interval_head(audit)),
        TableColumn("expected if calibrated"),
        TableColumn("n"),
    )
    cells = zip(
        (measure["estimator"].replace("_", " ") for measure in measured),
        (measure["lens"] for measure in measured),
        align_digits([measure["value"] for measure in measured]),
        interval_texts([measure["interval"] for measure in measured]),
        align_digits([measure["noise_floor"] for measure in measured]),
        (f"{measure['n']:,}" for measure in measured),
        strict=True,
    )
    rows = [
        (*row[:2], "infinite", *row[3:]) if measure["value"] is None and measure["estimator"] == "log_loss" else row
        for measure, row in zip(measured, cells, strict=True)
    ]
    intro = "Proper scores measure calibration and sharpness together; lower is better."
    if any(measure["noise_floor"] is not None for measure in measured):
        intro += (
            " Expected if calibrated: the expected score if outcomes followed the predicted probabilities; "
            "a difference in either direction indicates miscalibration."
        )
    return TextTable("Scores", columns, tuple(rows), intro + _dashes(measured)).without_empty_columns()


def _dashes(measured: Sequence[Mapping[str, Any]]) -> str:
    """The reasons for empty cells, from the notes of the estimates; a column without any number is not shown."""
    reasons = dict.fromkeys(
        f"{text} ({code})"
        for code, (column, text) in _REASONS.items()
        if any(measure[column] is not None for measure in measured)
        for measure in measured
        if measure[column] is None and any(note["code"] == code for note in measure["notes"])
    )
    return f" A dash: {'; '.join(reasons)}." if reasons else ""


def _reconciled(measured: Sequence[Mapping[str, Any]]) -> str:
    """Which intervals were changed to agree with the tests and with each other."""
    lenses = [measure["lens"] for measure in measured if any(note["code"] == "TN269" for note in measure["notes"])]
    many = len(lenses) > 1
    names = " and ".join(lenses)
    return f" The {names} interval{'s were' if many else ' was'} reconciled with the others (TN269)." if lenses else ""


_STANDARD = {
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


def standard_measure_table(audit: Audit) -> TextTable:
    """The standard measures of clinical and credit-risk reports."""
    measured = audit.get("standard_measures") or ()
    columns = (
        TableColumn("measure", NAMES),
        TableColumn("value"),
        TableColumn(_interval_head(audit)),
        TableColumn("ideal"),
        TableColumn("definition", NAMES, DETAIL),
    )
    rows = zip(
        (_STANDARD[measure["name"]][0] for measure in measured),
        align_digits([measure["value"] for measure in measured]),
        interval_texts([measure["interval"] for measure in measured]),
        (format_number(measure["ideal"]) for measure in measured),
        (_STANDARD[measure["name"]][1] for measure in measured),
        strict=True,
    )
    names = {measure["name"] for measure in measured}
    several = audit["data"]["kind"] == "classes" and audit["data"]["k"] > 2
    slope = "1/T of the best temperature T" if several else "slope of the observed on the predicted log odds"
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
    elif "calibration_in_the_large" in names:
        means = "vote share minus mean confidence" if audit["data"].get("votes") else "accuracy minus mean confidence"
        intro = f"Calibration-in-the-large: {means}; above 0 confidences are too low. {intro}"
    return TextTable("Standard calibration measures", columns, tuple(rows), intro).without_empty_columns()


def error_table(audit: Audit) -> TextTable:
    """The expected calibration error through each lens, with its test."""
    measured = _calibration_errors(audit)
    tests = [_tested(audit, measure["lens"]) for measure in measured]
    columns = (
        TableColumn("examined", NAMES, DETAIL),
        TableColumn("lens", NAMES),
        TableColumn("measure", NAMES),
        TableColumn("error"),
        TableColumn(_interval_head(audit)),
        TableColumn("noise floor"),
        TableColumn("debiased", detail=DETAIL),
        TableColumn("p"),
        TableColumn("Holm p"),
        TableColumn("n"),
    )
    cells = zip(
        (describe_lens(measure["lens"], audit["data"]) or measure["lens"] for measure in measured),
        (measure["lens"] for measure in measured),
        (measure["estimator"].replace("_", " ") for measure in measured),
        align_digits([measure["value"] for measure in measured]),
        interval_texts([measure["interval"] for measure in measured]),
        align_digits([measure["noise_floor"] for measure in measured]),
        align_digits([measure.get("debiased") for measure in measured]),
        (test.p for test in tests),
        (test.holm for test in tests),
        (f"{measure['n']:,}" for measure in measured),
        strict=True,
    )
    marks = tuple(interval_mark(measure["value"], measure["interval"], measure["noise_floor"]) for measure in measured)
    intro = (
        "Noise floor: the expected error of a calibrated model on these rows. p: the p-value of the calibration test"
        " through the same lens. The test is more sensitive than the interval: p can be small although the interval"
        " includes 0." + _dashes(measured) + _reconciled(measured)
    )
    if any(test.holm != "–" for test in tests):
        intro += f" {_JOINT}"
    return TextTable("Calibration errors", columns, tuple(cells), intro, marks=marks).without_empty_columns()


def interval_mark(value: float | None, interval: Mapping[str, Any] | None, noise_floor: float | None) -> Mark:
    """The numbers of an error that the page draws."""
    ends = interval or {}
    return Mark(value, ends.get("low"), ends.get("high"), noise_floor)


class _Tested(NamedTuple):
    """The test results of one lens, as displayed."""

    p: str
    holm: str
    expected: float | None


def _tested(audit: Audit, lens: str) -> _Tested:
    """The test of one lens, with its Holm-adjusted p-value from the family."""
    own: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == lens), {})
    family: Mapping[str, Any] = next((test for test in audit["tests"] if test["lens"] == "family"), {"parts": {}})
    part = family["parts"].get(lens, {})
    p = own.get("pvalue", part.get("pvalue"))
    min_pvalue = own.get("min_pvalue", smallest_pvalue(audit))
    return _Tested(pvalue(p, min_pvalue), _holm(p, part.get("holm"), min_pvalue), part.get("noise_floor"))


def _holm(p: float | None, holm: float | None, min_pvalue: float | None) -> str:
    """The Holm-adjusted p-value; an upper bound if the unadjusted p-value is the smallest possible one."""
    bound = p is not None and min_pvalue is not None and p <= min_pvalue * (1 + 1e-9) and holm is not None and holm < 1
    return pvalue(holm, holm if bound else None)


def smallest_pvalue(audit: Audit) -> float | None:
    """The smallest possible p-value of a single test with this number of resamples."""
    resamples = (audit.get("settings") or {}).get("resamples")
    return None if resamples is None else 1 / (1 + resamples)


def _interval_head(audit: Audit) -> str:
    """The heading of a column of intervals, with their level if they share one."""
    levels = {measure["interval"]["level"] for measure in audit["measures"] if measure["interval"]}
    return f"{level_text(levels.pop())} interval" if len(levels) == 1 else "interval"


_CLASS_WORDS = ("class", "classes", "Each class against the rest")


def class_table(audit: Audit) -> TextTable:
    """The error of every class against the rest, or of every label, largest first."""
    measured, tested = _by_class(_calibration_errors(audit)), _by_class(audit["tests"])
    names = dict.fromkeys([*measured["parts"], *tested["parts"]])
    entries = []
    for name in names:
        part = tested["parts"].get(name, {})
        entries.append((name, measured["parts"].get(name, part.get("error")), part))
    entries.sort(key=lambda entry: -(entry[1] if entry[1] is not None else -1.0))
    labels = audit["data"]["kind"] == "multilabel"
    one, many, what = ("label", "labels", "Each label by itself") if labels else _CLASS_WORDS
    columns = (
        TableColumn(one, NAMES),
        TableColumn("error"),
        TableColumn("noise floor"),
        TableColumn("p"),
        TableColumn("Holm p"),
    )
    min_pvalue = smallest_pvalue(audit)
    rows = zip(
        (class_name(name) for name, _, _ in entries),
        align_digits([value for _, value, _ in entries]),
        align_digits([part.get("noise_floor") for _, _, part in entries]),
        (pvalue(part.get("pvalue"), min_pvalue) for _, _, part in entries),
        (_holm(part.get("pvalue"), part.get("holm"), min_pvalue) for _, _, part in entries),
        strict=True,
    )
    return TextTable(
        f"Errors by {one}",
        columns,
        tuple(rows),
        f"Expected calibration error. {what}, largest error first. Holm p is adjusted for the number of {many}.",
        tuple(class_name(name) for name, _, _ in entries),
        tuple(Mark(value, noise_floor=part.get("noise_floor")) for _, value, part in entries),
    ).without_empty_columns()


def class_name(view: str) -> str:
    """The class of a view."""
    return str(view).removeprefix("class:")


def test_table(audit: Audit) -> TextTable:
    """The family-wise test, then the test of each lens."""
    columns = (
        TableColumn("test", NAMES),
        TableColumn("lens", NAMES),
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
    parts: Mapping[str, Any] = next((test["parts"] for test in tests if test["lens"] == "family"), {})
    expected = [_tested(audit, test["lens"]).expected for test in tests]
    numbers = zip(
        align_digits([test.get("statistic") for test in tests]),
        align_digits(expected),
        align_digits([test.get("effect") for test in tests]),
        strict=True,
    )
    rows = []
    for test in tests:
        family = test.get("family_pvalue")
        rows.append(
            (
                test["test"],
                test["lens"],
                *next(numbers),
                pvalue(test.get("pvalue"), test.get("min_pvalue")),
                _tested(audit, test["lens"]).holm,
                pvalue(family, test.get("min_pvalue")),
                format_number(test.get("min_pvalue")),
                f"{test['n']:,}",
            )
        )
    nulls = dict.fromkeys(test["null"] for test in tests if test.get("null"))
    intro = " ".join(f"Null hypothesis: {null}." for null in nulls)
    intro += (
        " Statistic of omnibus: combined evidence of the tests of level, slope and local errors on a log scale, 0 for"
        " no evidence. Effect: root mean square calibration error minus the part expected from noise, negative if it"
        " is smaller than the noise; it weights large errors more than the ECE does."
        " Smallest p: the smallest p-value that this number of resamples allows."
    )
    if parts:
        intro += f" {_JOINT}"
    return TextTable("Calibration tests", columns, tuple(rows), intro).without_empty_columns()


def _calibration_errors(audit: Audit) -> list[Mapping[str, Any]]:
    """The estimates that are calibration errors and not proper scores, which have the same lenses."""
    return [measure for measure in audit["measures"] if measure["estimator"] not in _PROPER]


def _by_class(entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The entry whose parts are classes; the parts of other lenses are the terms of their error."""
    return next((entry for entry in entries if entry["lens"] == "classwise" and entry["parts"]), {"parts": {}})
