"""The verdict of an audit: the state of calibration, its direction, and the sentences that open every report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trueodds.core.formatting import format_number
from trueodds.core.printable import to_printable
from trueodds.core.results import Interval, Verdict
from trueodds.reports.audit_results import AuditResults
from trueodds.reports.subgroups import count_miscalibrated_groups, established_worst_group
from trueodds.reports.text.formatting import (
    covers_unit_interval,
    format_count,
    format_error,
    format_error_range,
    format_level,
    format_pvalue_clause,
    format_sample_size,
    is_binary,
)
from trueodds.reports.text.recalibration import (
    GAIN_OF_PROCEDURE,
    IMPLAUSIBLE_DATA_TEXTS,
    INSUFFICIENT_ROWS,
    calibrator_name,
    describe_constant_prediction,
    format_gain_bound,
    format_gain_percent,
)
from trueodds.reports.wald_measures import StandardMeasure, measures_by_name

# Calibration-in-the-large describes the miscalibration only if it is at least this share of the calibration error;
# otherwise most errors have opposite signs and cancel in the mean.
MIN_SHARE_IN_THE_LARGE = 1 / 3
# With fewer rows (or clusters), calibration that is not rejected is not judged, because a test has hardly any power.
MIN_ROWS_FOR_VERDICT = 20
# Standard errors from which a direction is stated: 2 (p about 0.05) if the test through the default lens rejects, and
# else 3 (p about 0.003), because only other tests of the family then reject.
MIN_Z_IF_REJECTED, MIN_Z_UNLESS_REJECTED = 2.0, 3.0


def verdict_state(results: AuditResults, family: Verdict, alpha: float, data: Mapping[str, Any]) -> str:
    """Return the state of calibration in a few words.

    `family` is the family-wise test, `alpha` its level, and `data` the description of the data (`describe_data`). If
    calibration is rejected, the state is `reversed`, `overconfident`, `underconfident`, `too high`, `too low`, or
    `miscalibrated`, and otherwise `no evidence`, `too few rows`, or `not tested`. An observed outcome of predicted
    probability 0 is evidence without any test.
    """
    has_impossible_outcomes = data["true_class_zeros"] > 0
    if not has_impossible_outcomes and family.pvalue > alpha:
        if family.min_pvalue is not None and family.min_pvalue > alpha:
            return "not tested"
        return "too few rows" if (data.get("clusters") or data["n"]) < MIN_ROWS_FOR_VERDICT else "no evidence"
    word, _ = miscalibration_direction(results, family, alpha, data)
    return word


def miscalibration_direction(
    results: AuditResults, family: Verdict, alpha: float, data: Mapping[str, Any]
) -> tuple[str, StandardMeasure | None]:
    """Return the direction of the miscalibration (`miscalibrated` if unclear), and the slope if that determines it.

    A slope of the log odds below 0 is a reversed ranking, which takes precedence. Otherwise a slope shows whether
    probabilities are too extreme or too moderate. Calibration-in-the-large gives a direction only if it is at least a
    third of the error, because otherwise errors of both signs cancel. Each must exceed 3 standard errors, or 2 if the
    test through the default lens rejects. For two classes the one with more standard errors is used; for several
    classes calibration-in-the-large has precedence over the slope.
    """
    min_z = MIN_Z_IF_REJECTED if results.default_test.pvalue <= alpha else MIN_Z_UNLESS_REJECTED
    candidates: list[tuple[float, str, StandardMeasure | None]] = []
    if family.pvalue > alpha:
        return "miscalibrated", None
    slope = measures_by_name(results.standard_measures).get("calibration_slope")
    if slope is not None and slope.distance_in_se(0.0) <= -min_z:
        return "reversed", slope
    in_the_large, z = results.calibration_in_the_large or 0.0, abs(results.calibration_in_the_large_z or 0.0)
    error = results.errors[0]
    errors_cancel = abs(in_the_large) < MIN_SHARE_IN_THE_LARGE * (
        error.value if error.debiased is None else error.debiased
    )
    if not errors_cancel and z >= min_z:
        words = ("too high", "too low") if is_binary(data) else ("overconfident", "underconfident")
        candidates.append((z, words[0] if in_the_large < 0 else words[1], None))
    z = 0.0 if slope is None else slope.distance_in_se(1.0)
    if slope is not None and abs(z) >= min_z and (is_binary(data) or not candidates):
        candidates.append((abs(z), "overconfident" if z < 0 else "underconfident", slope))
    if not candidates:
        return "miscalibrated", None
    _, word, measure = max(candidates, key=lambda candidate: candidate[0])
    return word, measure


def verdict_sentence(
    results: AuditResults,
    family: Verdict,
    state: str,
    alpha: float,
    data: Mapping[str, Any],
    recalibration: Mapping[str, Any] | None,
) -> str:
    """Return the verdict in short sentences: means, miscalibrated groups, zeros, the test, and the recalibration.

    Data that look wrong come first.
    """
    sentences = (
        _implausible_data_sentence(recalibration),
        _calibration_sentence(results, family, state, alpha, data),
        _worst_group_sentence(results, state, alpha, data),
        _zero_probability_sentence(data),
        _test_sentence(results, family, state, alpha, data),
        _recalibration_sentence(recalibration, data),
    )
    return to_printable(" ".join(sentence for sentence in sentences if sentence))


def _calibration_sentence(
    results: AuditResults, family: Verdict, state: str, alpha: float, data: Mapping[str, Any]
) -> str:
    """Return the sentence on the state of calibration with the mean prediction and the observed mean."""
    word = {
        "no evidence": "No evidence of miscalibration",
        "too few rows": f"Too few {'rows' if data.get('clusters') is None else 'clusters'} to judge",
        "not tested": "Not tested",
        "too high": "Overpredicts",
        "too low": "Underpredicts",
    }.get(state, state.capitalize())
    if data["mean_confidence"] is None or data["accuracy"] is None:
        classes = _describe_miscalibrated_classes(results, alpha, "label", "labels") if state == "miscalibrated" else ""
        error = format_error(results.errors[0].value)
        return f"{word}: expected calibration error {error}, averaged over the labels{classes}."
    means = _describe_means(data)
    _, slope = miscalibration_direction(results, family, alpha, data)
    if slope is not None and slope.interval is not None and state in ("reversed", "overconfident", "underconfident"):
        return f"{word}: {_describe_slope(slope.value or 0.0, slope.interval, state, data)}; {means}."
    if state != "miscalibrated" or family.pvalue > alpha:
        return f"{word}: {means}."
    return f"{word}: {means}{_describe_miscalibrated_part(results, alpha)}."


def _describe_means(data: Mapping[str, Any]) -> str:
    """Return the mean prediction beside the event rate of two classes, or beside the accuracy."""
    if is_binary(data):
        predicted, observed = _format_distinct_percents(data["mean_prediction"], data["event_rate"])
        return f"mean predicted {predicted}, {'share of votes' if data['votes'] else 'observed'} {observed}"
    predicted, observed = _format_distinct_percents(data["mean_confidence"], data["accuracy"])
    # A share of votes is not an accuracy, because annotators disagree.
    agreement = f"{observed} of the votes agree" if data["votes"] else f"is right {observed} of the time"
    return f"predicts {predicted} on average, {agreement}"


def _describe_slope(slope: float, interval: Interval, state: str, data: Mapping[str, Any]) -> str:
    """Return what the calibration slope shows, with the slope and its confidence interval in parentheses."""
    meaning = {
        "overconfident": "probabilities are too extreme",
        "underconfident": "probabilities are too moderate",
        "reversed": _describe_reversed_ranking(data),
    }[state]
    value, low, high = (f"{x:.2f}".replace("-", "−") for x in (slope, interval.low, interval.high))
    level = format_level(interval.level)
    return f"{meaning} (calibration slope {value}, {level} confidence interval {low} to {high}, ideally 1)"


def _describe_reversed_ranking(data: Mapping[str, Any]) -> str:
    """Return what a slope below 0 means for these data."""
    if data["kind"] == "classes" and not is_binary(data):
        return "classes with higher predicted probabilities are observed less often"
    if not is_binary(data):
        return "higher confidences go with lower accuracy"
    return f"higher predicted probabilities go with lower {'shares of votes' if data['votes'] else 'event rates'}"


def _describe_miscalibrated_part(results: AuditResults, alpha: float) -> str:
    """Return which part is miscalibrated, as the means may agree."""
    if _default_lens_rejects(results, alpha):
        return f", expected calibration error {format_error(results.errors[0].value)}"
    groups, gaps = results.groups.to_entries(), [gap.to_dict() for gap in results.groups.widest_gaps]
    if worst := established_worst_group(groups, gaps):
        return f"; miscalibrated in group {worst['label']} (expected calibration error {format_error(worst['error'])})"
    if count := count_miscalibrated_groups(groups, gaps):
        return f"; {count}"
    return (
        _describe_miscalibrated_classes(results, alpha, "class", "classes")
        or "; other tests of the family reject calibration"
    )


def _describe_miscalibrated_classes(results: AuditResults, alpha: float, unit: str, units: str) -> str:
    """Return the class or label with the strongest evidence, and the number of other rejected ones."""
    for test in results.tests:
        views = [name for name, part in test.parts.items() if name.startswith("class:") and part["holm"] <= alpha]
        if views:
            worst = min(views, key=lambda name: test.parts[name]["pvalue"]).removeprefix("class:")
            other_classes = f" and {format_count(len(views) - 1, f'more {unit}', f'more {units}')}" * (len(views) > 1)
            return f"; miscalibrated for {unit} {worst}{other_classes}"
    return ""


def _worst_group_sentence(results: AuditResults, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    """Return a sentence on the miscalibrated subgroups, unless the first sentence has it.

    It names the worst subgroup only if a difference from another one is established, or if no other is miscalibrated.
    """
    groups, gaps = results.groups.to_entries(), [gap.to_dict() for gap in results.groups.widest_gaps]
    worst, count = established_worst_group(groups, gaps), count_miscalibrated_groups(groups, gaps)
    is_named_already = (
        state == "miscalibrated" and not _default_lens_rejects(results, alpha) and data["mean_confidence"] is not None
    )
    if is_named_already or not count:
        return ""
    if worst is None:
        return f"{count[:1].upper()}{count[1:]}."
    error = f"ECE {format_error(worst['error'])}"
    if worst["mean_prob"] is None or worst["event_rate"] is None:
        return f"Worst group: {worst['label']} ({error})."
    predicted_percent, observed_percent = _format_distinct_percents(worst["mean_prob"], worst["event_rate"])
    observed = "share of votes" if data["votes"] else "observed" if is_binary(data) else "accuracy"
    predicted = "mean predicted" if is_binary(data) else "mean confidence"
    return f"Worst group: {worst['label']} ({predicted} {predicted_percent}, {observed} {observed_percent}, {error})."


def _default_lens_rejects(results: AuditResults, alpha: float) -> bool:
    """Return whether the test through the default lens rejects, and the error exceeds its bias."""
    error = results.errors[0]
    return results.default_test.pvalue <= alpha and (error.debiased is None or error.debiased > 0)


def _zero_probability_sentence(data: Mapping[str, Any]) -> str:
    """Return a sentence on observed outcomes of predicted probability 0; empty without any.

    The two outcomes of a confidence are that the answer is correct, and that it is wrong.
    """
    n_impossible = data["true_class_zeros"]
    if not n_impossible:
        return ""
    if data["kind"] == "confidence":
        verb = "was" if n_impossible == 1 else "were"
        return f"{format_count(n_impossible, 'answer')} {verb} wrong at confidence 1, or correct at confidence 0."
    return f"{format_count(n_impossible, 'observed outcome')} had predicted probability 0."


def _test_sentence(results: AuditResults, family: Verdict, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    """Return a sentence on whether calibration is rejected, with the family-wise p-value."""
    p = f"family-wise {format_pvalue_clause(family.pvalue, family.min_pvalue)}"
    if state == "not tested":
        min_pvalue_text = f"the smallest possible family-wise p-value is {format_number(family.min_pvalue)}"
        # Few rows have few possible outcomes, so that the smallest p-value is not that of the number of null draws.
        attainable = results.default_test.min_pvalue
        if attainable is not None and attainable > 2 / (1 + results.resamples):
            units = "rows" if data.get("clusters") is None else "clusters"
            return f"Too few {units} for a test: with {format_sample_size(data)}, {min_pvalue_text}."
        return f"Too few resamples for a test: with {results.resamples:,} resamples, {min_pvalue_text}."
    if family.pvalue <= alpha:
        return f"Calibration rejected ({p})."
    if state not in ("no evidence", "too few rows"):
        return f"Apart from that, calibration is not rejected ({p})."
    return f"Calibration not rejected ({p}){_describe_error_interval(results.errors[0].interval, data)}."


def _describe_error_interval(interval: Interval | None, data: Mapping[str, Any]) -> str:
    """Return the interval of the calibration error as the end of a sentence; empty if there is none."""
    if interval is None:
        return ""
    if covers_unit_interval(interval.low, interval.high):
        return f"; {format_sample_size(data)} are too few to bound the expected calibration error"
    limits = format_error_range(interval.low, interval.high)
    return f"; {format_level(interval.level)} confidence interval of the expected calibration error {limits}"


def _implausible_data_sentence(recalibration: Mapping[str, Any] | None) -> str:
    """Return a sentence on predictions that look like labels or like those of other classes."""
    notes = () if recalibration is None or recalibration["candidates"] else recalibration["notes"]
    return " ".join(IMPLAUSIBLE_DATA_TEXTS[note["code"]] for note in notes if note["code"] in IMPLAUSIBLE_DATA_TEXTS)


def _recalibration_sentence(recalibration: Mapping[str, Any] | None, data: Mapping[str, Any]) -> str:
    """Return a sentence on the outcome of the recalibration; empty if none was attempted."""
    if recalibration is None or not recalibration["candidates"]:
        return ""
    if recalibration["confirmed"]:
        sentence = _describe_gain(recalibration)
        if describe_constant_prediction(recalibration, data):
            sentence += "; the result is hardly better than a constant prediction"
        return f"{sentence}."
    if recalibration.get("outcome") == INSUFFICIENT_ROWS:
        rows = format_count(data["n"], "row")
        return (
            f"No recalibration could be confirmed ({rows}; about {recalibration['required_rows']:,} would be needed)."
        )
    return "No recalibration improves the held-out log loss significantly."


def _describe_gain(recalibration: Mapping[str, Any]) -> str:
    """Return the effect of the recalibration on the held-out log loss; no percentage if the log loss was infinite.

    The test may confirm miscalibration although the confidence interval of the gain includes 0. If the folds chose
    different methods, the gain is that of choice and fit together, and not that of the applied method.
    """
    name = _name_with_temperature(recalibration["chosen"], recalibration["summary"])
    lower_bound, percent = format_gain_bound(recalibration), recalibration["gain_percent"]
    if not lower_bound and percent is not None:
        return (
            f"Miscalibration that {name} corrects is confirmed, but the reduction of the held-out log loss"
            f" ({format_gain_percent(percent)}) is uncertain"
        )
    is_of_procedure = recalibration.get("gain_of") == GAIN_OF_PROCEDURE
    subject = f"Recalibration, here by {name}," if is_of_procedure else name[:1].upper() + name[1:]
    if percent is None:
        gain = f" by {lower_bound}" if lower_bound else ""
    else:
        gain = f" by {format_gain_percent(percent)} ({lower_bound})"
    return f"{subject} reduces the log loss{gain}, confirmed on held-out rows"


def _name_with_temperature(method: str, summary: str) -> str:
    """Return the calibrator's name, with the parameter of temperature scaling."""
    return f"temperature scaling ({summary})" if method == "temperature" else calibrator_name(method)


def _format_distinct_percents(predicted: float, observed: float) -> tuple[str, str]:
    """Return both numbers in percent, with two significant digits or more if they differ then; at most two decimals."""
    smallest = min((x for x in (predicted, observed) if x > 0), default=1.0)
    min_digits = 2 if smallest < 0.01 else 1 if smallest < 0.1 else 0
    texts = [(f"{100 * predicted:.{digits}f} %", f"{100 * observed:.{digits}f} %") for digits in range(min_digits, 3)]
    return next(((predicted_text, b) for predicted_text, b in texts if predicted_text != b), texts[0])
