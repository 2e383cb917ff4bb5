"""Tables of an audit: scores, standard measures, errors, classes, tests, decision regret, data and settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trueodds.core.formatting import (
    IntervalLimits,
    format_boolean,
    format_error,
    format_integer,
    format_intervals,
    format_number,
    format_pvalue,
    format_share,
)
from trueodds.core.results import is_score
from trueodds.core.table import Column, Table
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import AuditData, AuditMeasure, AuditTest
from trueodds.reports.text.formatting import (
    describe_event,
    describe_lens,
    format_settings,
    format_value,
    interval_heading,
    shared_interval_heading,
)

MAX_LISTED_CLASSES = 20  # names of classes in the description of the data
_HOLM_TEXT = "p is unadjusted, Holm p is adjusted for the number of tests."
# Notes that explain a missing number: by code, the column that it is missing from and the reason.
_MISSING_CELL_REASONS = {
    "TN201": ("interval", "no interval"),
    "TN402": ("interval", "a tally has no interval for an aggregate over classes"),
    "TN406": ("noise_floor", "a tally has no entropy, so the expected log loss is unknown"),
}


def score_table(audit: AuditResult) -> Table:
    """Return the table of the proper scores, with their expected values if the model is calibrated."""
    estimates = [measure for measure in audit.measures if is_score(measure.estimator)]
    columns = (
        Column("score", [measure.estimator.replace("_", " ") for measure in estimates], "text"),
        Column("lens", [measure.lens for measure in estimates], "text"),
        Column(
            "value",
            [
                "infinite" if measure.value is None and measure.estimator == "log_loss" else measure.value
                for measure in estimates
            ],
        ),
        Column(shared_interval_heading(audit.measures), [measure.interval for measure in estimates], "interval"),
        Column("expected if calibrated", [measure.noise_floor for measure in estimates]),
        Column("n", [measure.n for measure in estimates], "count"),
    )
    intro = "Proper scores measure calibration and sharpness together; lower is better."
    if any(measure.noise_floor is not None for measure in estimates):
        intro += (
            " Expected if calibrated: the expected score if outcomes followed the predicted probabilities; "
            "a difference in either direction indicates miscalibration."
        )
    return Table("Scores", columns, intro + _explain_dashes(estimates)).without_empty_columns()


def _explain_dashes(estimates: Sequence[AuditMeasure]) -> str:
    """Return a sentence with the reasons for empty cells, from the notes of the estimates; empty if none has a reason.

    Columns without any number need no reason, because they are not shown.
    """
    reasons = dict.fromkeys(
        f"{text} ({code})"
        for code, (column, text) in _MISSING_CELL_REASONS.items()
        if any(getattr(measure, column) is not None for measure in estimates)
        for measure in estimates
        if getattr(measure, column) is None and any(note.code == code for note in measure.notes)
    )
    return f" A dash: {'; '.join(reasons)}." if reasons else ""


def _explain_reconciled_intervals(estimates: Sequence[AuditMeasure]) -> str:
    """Return a sentence on the intervals that were changed to agree with the tests; empty if there is none."""
    lenses = [measure.lens for measure in estimates if any(note.code == "TN269" for note in measure.notes)]
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


def standard_measure_table(audit: AuditResult) -> Table:
    """Return the table of the standard measures of clinical and credit-risk reports."""
    measures = audit.standard_measures
    undefined = _MEASURES_OF_LOG_ODDS if any(note.code == "TN268" for note in audit.notes) else ()
    values = ["see TN268" if entry.value is None and entry.name in undefined else entry.value for entry in measures]
    columns = (
        Column("measure", [standard_measure_label(measure.name) for measure in measures], "text"),
        Column("value", values),
        Column(shared_interval_heading(audit.measures), [measure.interval for measure in measures], "interval"),
        Column("ideal", [measure.ideal for measure in measures], "value"),
        Column("definition", [_STANDARD_MEASURES[measure.name][1] for measure in measures], "text", is_detail=True),
    )
    intro = _explain_standard_measures(audit.data, {measure.name for measure in measures})
    return Table("Standard calibration measures", columns, intro).without_empty_columns()


def _explain_standard_measures(data: AuditData, names: Collection[str]) -> str:
    """Return the introduction of the table of standard measures: the definition of those with these names."""
    has_several_classes = data.kind == "classes" and data.k > 2
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
        means = "vote share minus mean confidence" if data.votes else "accuracy minus mean confidence"
        intro = f"Calibration-in-the-large: {means}; above 0 confidences are too low. {intro}"
    return intro


def error_table(audit: AuditResult) -> Table:
    """Return the table of the expected calibration error through each lens, with its test."""
    estimates = _calibration_errors(audit)
    tests = [_test_of_lens(audit, measure.lens) for measure in estimates]
    columns = (
        Column(
            "examined",
            [describe_lens(measure.lens, audit.data) or measure.lens for measure in estimates],
            "text",
            is_detail=True,
        ),
        Column("lens", [measure.lens for measure in estimates], "text"),
        Column("measure", [measure.estimator.replace("_", " ") for measure in estimates], "text"),
        Column("error", [measure.value for measure in estimates]),
        Column(shared_interval_heading(audit.measures), [measure.interval for measure in estimates], "interval"),
        Column("noise floor", [measure.noise_floor for measure in estimates]),
        Column("debiased", [measure.debiased for measure in estimates], is_detail=True),
        Column("p", [test.p for test in tests], "pvalue"),
        Column("Holm p", [test.holm for test in tests], "pvalue"),
        Column("n", [measure.n for measure in estimates], "count"),
        error_bars([ErrorMark(measure.value, measure.interval, measure.noise_floor) for measure in estimates]),
    )
    intro = (
        "Noise floor: the expected error of a calibrated model on these rows. p: the p-value of the calibration test"
        " for the same lens. The test is more sensitive than the interval: p can be small although the interval"
        " includes 0." + _explain_dashes(estimates) + _explain_reconciled_intervals(estimates)
    )
    if any(test.holm != "–" for test in tests):
        intro += f" {_HOLM_TEXT}"
    return Table("Calibration errors", columns, intro).without_empty_columns()


@dataclass(frozen=True, slots=True)
class ErrorMark:
    """An error with its interval and its noise floor, which a page draws beside a row of a table."""

    value: float | None
    interval: IntervalLimits | None = None
    noise_floor: float | None = None

    @property
    def largest_value(self) -> float:
        """The largest of these numbers."""
        high = None if self.interval is None else self.interval.high
        return max((x for x in (self.value, high, self.noise_floor) if x is not None), default=0.0)


def error_bars(marks: Sequence[ErrorMark]) -> Column:
    """Return the column in which the page draws the error of each row, its interval and its noise floor."""
    return Column("error", marks, "bar", is_detail=True)


class _LensTest(NamedTuple):
    """The test results of one lens, as displayed."""

    p: str  # p-value
    holm: str  # Holm-adjusted p-value of the family
    expected_statistic: float | None  # expected statistic if the model is calibrated


def _test_of_lens(audit: AuditResult, lens: str) -> _LensTest:
    """Return the test of one lens, with its Holm-adjusted p-value from the family."""
    tests = {test.lens: test for test in reversed(audit.tests)}  # of several of a lens the first one
    part = tests["family"].parts.get(lens, {}) if "family" in tests else {}
    p, min_pvalue = part.get("pvalue"), smallest_pvalue(audit)
    if lens in tests:
        p, min_pvalue = tests[lens].pvalue, tests[lens].min_pvalue
    return _LensTest(
        format_pvalue(p, min_pvalue), _format_holm(p, part.get("holm"), min_pvalue), part.get("noise_floor")
    )


def _format_holm(p: float | None, holm: float | None, min_pvalue: float | None) -> str:
    """Format the Holm-adjusted p-value; an upper bound if the unadjusted p-value is the smallest possible one."""
    is_upper_bound = (
        p is not None and min_pvalue is not None and p <= min_pvalue * (1 + 1e-9) and holm is not None and holm < 1
    )
    return format_pvalue(holm, holm if is_upper_bound else None)


def smallest_pvalue(audit: AuditResult) -> float | None:
    """Return the smallest possible p-value of a single test with this number of resamples."""
    resamples = (audit.settings or {}).get("resamples")
    return None if resamples is None else 1 / (1 + resamples)


def class_table(audit: AuditResult) -> Table:
    """Return the table of the error of every class against the rest, or of every label, largest first."""
    errors, tests = _classwise_parts(_calibration_errors(audit)), _classwise_parts(audit.tests)
    entries = []  # the name of each view, its error, and the part of the test on it
    for name in dict.fromkeys([*errors, *tests]):
        part = tests.get(name, {})
        entries.append((name, errors.get(name, part.get("error")), part))
    entries.sort(key=lambda entry: -1.0 if entry[1] is None else entry[1], reverse=True)
    if audit.data.kind == "multilabel":
        unit, units, subject = "label", "labels", "Each label by itself"
    else:
        unit, units, subject = "class", "classes", "Each class against the rest"
    min_pvalue, parts = smallest_pvalue(audit), [part for _, _, part in entries]
    marks = [ErrorMark(error, noise_floor=part.get("noise_floor")) for _, error, part in entries]
    columns = (
        Column(unit, [class_name(name) for name, _, _ in entries], "text"),
        Column("error", [error for _, error, _ in entries]),
        Column("noise floor", [part.get("noise_floor") for part in parts]),
        Column("p", [part.get("pvalue") for part in parts], "pvalue", min_pvalue=min_pvalue),
        Column("Holm p", [_format_holm(part.get("pvalue"), part.get("holm"), min_pvalue) for part in parts], "pvalue"),
        *([error_bars(marks)] if any(error is not None for _, error, _ in entries) else []),
    )
    intro = f"Expected calibration error. {subject}, largest error first. Holm p is adjusted for the number of {units}."
    return Table(f"Errors by {unit}", columns, intro).without_empty_columns()


class WorstClass(NamedTuple):
    """The class with the largest significant error, as displayed."""

    name: str
    error: str
    holm: str  # Holm-adjusted p-value in a sentence


def worst_class(audit: AuditResult) -> WorstClass | None:
    """Return the class with the largest error against the rest among those for which calibration is rejected.

    None if there is none, or fewer than three classes.
    """
    errors, parts = _classwise_parts(_calibration_errors(audit)), _classwise_parts(audit.tests)
    rejected = [
        (errors[name], name, part)
        for name, part in parts.items()
        if errors.get(name) is not None and part.get("holm") is not None and part["holm"] <= audit.verdict.alpha
    ]
    if not rejected or len(parts) < 3 or not audit.verdict.rejected:
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


def test_table(audit: AuditResult) -> Table:
    """Return the table of the family-wise test, then the test of each lens."""
    tests = audit.tests
    tests_of_lenses = [_test_of_lens(audit, test.lens) for test in tests]
    columns = (
        Column("test", [test.test for test in tests], "text"),
        Column("lens", [test.lens for test in tests], "text"),
        Column("statistic", [test.statistic for test in tests]),
        Column("expected", [lens_test.expected_statistic for lens_test in tests_of_lenses]),
        Column("effect", [test.effect for test in tests]),
        Column("p", [format_pvalue(test.pvalue, test.min_pvalue) for test in tests], "pvalue"),
        Column("Holm p", [lens_test.holm for lens_test in tests_of_lenses], "pvalue"),
        Column("family-wise p", [format_pvalue(test.family_pvalue, test.min_pvalue) for test in tests], "pvalue"),
        Column("smallest p", [test.min_pvalue for test in tests], "value"),
        Column("n", [test.n for test in tests], "count"),
    )
    nulls = dict.fromkeys(test.null for test in tests if test.null)
    intro = " ".join(f"Null hypothesis: {null}." for null in nulls)
    intro += (
        " Statistic of omnibus: combined evidence of the tests of level, slope and local errors on a log scale, 0 for"
        " no evidence. Effect: root mean square calibration error minus the part expected from noise, negative if it"
        " is smaller than the noise; it weights large errors more than the ECE does."
        " Smallest p: the smallest p-value that this number of resamples allows"
    )
    smallest = [test.min_pvalue for test in tests if test.min_pvalue is not None]
    if len(smallest) > 1 and smallest[0] > min(smallest[1:]):
        intro += "; that of the family is larger, because groups and the recalibration get a part of alpha"
    intro += "."
    if any(test.lens == "family" and test.parts for test in tests):
        intro += f" {_HOLM_TEXT}"
    return Table("Calibration tests", columns, intro).without_empty_columns()


def _calibration_errors(audit: AuditResult) -> list[AuditMeasure]:
    """Return the estimates that are calibration errors and not proper scores, which have the same lenses."""
    return [measure for measure in audit.measures if not is_score(measure.estimator)]


def _classwise_parts(entries: Iterable[AuditMeasure] | Iterable[AuditTest]) -> Mapping[str, Any]:
    """Return the parts that are classes; the parts of other lenses are the terms of their error."""
    return next((entry.parts for entry in entries if entry.lens == "classwise" and entry.parts), {})


def regret_table(audit: AuditResult) -> Table:
    """Return the decision regret in full, and the thresholds at which the optimal action changes."""
    if audit.decisions is None:
        return Table.from_entries("Decision regret", ())
    regret, parts = audit.decisions.regret, audit.decisions.regret.parts
    (interval,) = format_intervals([regret.interval])
    rows = [
        ("mean cost with these predictions", format_number(parts["stated"])),
        ("mean cost after recalibration", format_number(parts["recalibrated"])),
        ("calibrator", regret.settings["calibrator"]),
        ("regret per row", format_number(regret.value)),
        (interval_heading(None if regret.interval is None else regret.interval.level), interval),
        ("p (one-sided)", format_pvalue(audit.decisions.test.pvalue, None)),
        ("rows whose action changes", format_share(parts["changed"])),
        *_threshold_rows(audit.data, parts),
    ]
    intro = (
        "Mean cost per row that cross-fitted recalibration saves, in the units of the costs. It is a lower bound on the"
        " full decision regret."
    )
    return Table.from_entries("Decision regret", rows, intro)


def _threshold_rows(data: AuditData, parts: Mapping[str, float]) -> list[tuple[str, str]]:
    """Return each change of the optimal action, with its threshold and the recalibrated event rate there.

    The names in the parts of the estimate are ``"threshold:a → b"`` and ``"rate there:a → b"`` for the actions a and b.
    """
    if data.kind == "confidence":
        outcome = "accuracy"
    else:
        outcome = f"event rate of {describe_event(data)}" if data.is_binary else "event rate"
    rows = []
    for name in parts:
        if name.startswith("threshold:"):
            change = name.removeprefix("threshold:")
            threshold, rate = format_share(parts[name]), format_share(parts[f"rate there:{change}"])
            rows.append((change, f"at a predicted probability of {threshold}, where the {outcome} is {rate}"))
    return rows


def action_table(audit: AuditResult) -> Table:
    """Return the share of rows for which each action is optimal under the predictions, and the regret of these rows."""
    parts = {} if audit.decisions is None else audit.decisions.regret.parts
    actions = [name.removeprefix("action:") for name in parts if name.startswith("action:")]
    columns = (
        Column("action", actions, "text"),
        Column("rows", [parts[f"called for:{action}"] for action in actions], "percent"),
        Column("regret per row", [parts[f"action:{action}"] for action in actions]),
    )
    intro = "By the optimal action under these predictions. The regrets add up to that of all rows."
    return Table("Regret by action", columns, intro)


def data_table(audit: AuditResult) -> Table:
    data = audit.data
    names = data.classes
    n_unlisted = len(names) - MAX_LISTED_CLASSES
    class_list = ", ".join(names[:MAX_LISTED_CLASSES]) + (f" and {n_unlisted:,} more" if n_unlisted > 0 else "")
    unit = {"multilabel": "labels", "confidence": "outcomes"}.get(data.kind, "classes")
    rows = [
        ("source", data.source),
        ("rows", f"{data.n:,}"),
        *_event_entries(data),
        (unit, f"{data.k:,}: {class_list}"),
        *_mean_entries(data),
        ("weights", f"yes, total {format_value(data.weight)}" if data.weighted else "no"),
        ("votes", format_boolean(data.votes)),
        ("clusters", "none" if data.clusters is None else f"{data.clusters:,}"),
        ("group columns", ", ".join(data.group_columns) or "none"),
        ("predicted exactly 0", format_integer(data.zeros)),
        ("of these, observed", format_integer(data.true_class_zeros)),
        ("resolution", data.resolution or "–"),
    ]
    return Table.from_entries("The data", rows)


def _event_entries(data: AuditData) -> list[tuple[str, str]]:
    """Return the labels and values of the numbers of events and non-events; empty unless they are known."""
    if data.event_counts is None:
        return []
    events, non_events = data.event_counts
    return [("events", f"{events:,}"), ("non-events", f"{non_events:,}")]


def _mean_entries(data: AuditData) -> list[tuple[str, str]]:
    """Return the labels and values of the mean predictions and outcomes; for two classes first those of the second."""
    means = []
    if data.is_binary:
        event = data.classes[1]
        rate_label = "vote share" if data.votes else "event rate"
        means = [(f"mean P({event})", data.mean_prediction), (f"{rate_label} of {event}", data.event_rate)]
    accuracy = "vote share, predicted class" if data.votes else "accuracy"  # short enough for the terminal
    means += [(accuracy, data.accuracy), ("mean confidence", data.mean_confidence)]
    weighted = ", weighted" if data.weighted else ""
    return [(f"{label}{weighted}", format_share(mean)) for label, mean in means]


def settings_table(audit: AuditResult) -> Table:
    """Return the table of the settings with which every estimate, test and diagram was computed."""
    rows = [("audit", format_settings(audit.settings or {}))]
    vote_measures = () if audit.people is None else audit.people.measures
    for measure in (*audit.measures, *vote_measures):
        settings = dict(measure.settings)
        if measure.interval is not None:
            settings |= {"interval": measure.interval.method, "level": measure.interval.level}
        rows.append((f"{measure.estimator}, {measure.lens}", format_settings(settings)))
    rows += [(f"{test.test}, {test.lens}", format_settings(test.settings)) for test in audit.tests]
    rows += [(f"{diagram.diagram}, {diagram.lens}", format_settings(diagram.settings)) for diagram in audit.diagrams]
    return Table.from_entries("Settings", [row for row in rows if row[1] != "–"])
