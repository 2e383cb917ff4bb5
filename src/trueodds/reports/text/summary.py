"""Summarize an audit in labeled lines: predicted and observed means, error, test, recalibration and subgroups."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueodds.calibrators import CALIBRATORS
from trueodds.core.formatting import (
    format_count,
    format_error,
    format_error_range,
    format_number,
    format_percent_in_text,
    format_pvalue_clause,
    format_share,
    with_minus_signs,
)
from trueodds.hypotests.group_status import MAX_NAMED_GROUPS
from trueodds.reports.subgroups import (
    ERRORS_DO_NOT_DIFFER,
    HOLM,
    established_worst_group,
    miscalibrated_groups,
    worst_group,
)
from trueodds.reports.text.formatting import (
    covers_unit_interval,
    describe_event,
    describe_lens,
    format_row_count,
    format_sample_size,
    is_binary,
)
from trueodds.reports.text.recalibration import (
    GAIN_OF_PROCEDURE,
    IMPLAUSIBLE_DATA_TEXTS,
    INSUFFICIENT_ROWS,
    TRAINING_ROWS,
    calibrator_with_parameters,
    describe_changed_classes,
    describe_constant_prediction,
    describe_mixing,
    describe_unconfirmed_gain,
    format_gain_bound,
    format_gain_percent,
    format_log_loss,
    is_fitted_to_sample,
)
from trueodds.reports.text.result_tables import standard_measure_label, worst_class
from trueodds.reports.text.vote_tables import summarize_distance

# The coverage in the last of the notes on questions without an answer, such as "(coverage 92 %)".
_COVERAGE_CODES = ("TN146", "TN183")
_COVERAGE_PATTERN = re.compile(r"[(,;]? ?coverage ([\d.]+) ?%")


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One line of the summary: a label, a value, and a remark on it."""

    label: str
    value: str
    remark: str = ""  # shown in parentheses after the value
    tone: str = "plain"  # color of the value: plain, good or bad
    is_reason: bool = False  # whether the remark is the reason for the value, which follows a colon instead


def default_lens_ece(audit: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the ECE through the default lens as a JSON object: the first ECE of the audit, None if there is none."""
    return next((measure for measure in audit["measures"] if measure["estimator"] == "ece"), None)


def is_inconclusive(verdict: Mapping[str, Any]) -> bool:
    """Return whether calibration is not rejected, but other facts leave it open.

    The interval of a standard measure excludes its ideal value, or some groups were not examined.
    """
    has_doubt = bool(verdict.get("excludes_ideal")) or bool(verdict.get("unexamined_groups"))
    return verdict.get("state") == "no evidence" and has_doubt


def summary_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the lines of the summary in the order in which they are shown; lines that do not apply are left out."""
    data = audit["data"]
    weighted = "weighted, " if data.get("weighted") else ""
    lines = []
    if is_binary(data):
        remark = f"{weighted}probability of {describe_event(data)}"
        lines.append(SummaryLine("Mean predicted", format_share(data["mean_prediction"]), remark))
        lines.append(_event_rate_line(data))
    elif data.get("mean_confidence") is not None:
        is_confidence = data["kind"] == "confidence"
        subject = "stated confidence in the answer" if is_confidence else "probability of the predicted class"
        lines.append(SummaryLine("Mean confidence", format_share(data["mean_confidence"]), f"{weighted}{subject}"))
    if data.get("accuracy") is not None and not is_binary(data):
        lines.append(_accuracy_line(audit))
    lines += _coverage_lines(audit)
    if (error := default_lens_ece(audit)) is not None:
        lines.append(_error_line(error, data))
    lines.append(_test_line(audit))
    lines.append(_recalibration_line(audit.get("recalibration"), data))
    lines += _zero_probability_lines(data) + _group_lines(audit) + _annotator_lines(audit)
    return lines


def brief_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the lines of the brief report, with what the sentence of the verdict above them leaves out.

    They are the error with its interval and noise floor, the class with the largest error and the worst group among the
    miscalibrated ones, how many groups were examined unless all were, and the reason if no recalibration was attempted.
    """
    lines = []
    if (error := default_lens_ece(audit)) is not None:
        remarks = []
        if interval := error.get("interval"):
            remarks.append(_describe_interval(interval, format_sample_size(audit["data"])))
        if error.get("noise_floor") is not None:
            remarks.append(f"noise floor {format_error(error['noise_floor'])}")
        lines.append(SummaryLine("Expected calibration error", format_error(error["value"]), "; ".join(remarks)))
    if (worst := worst_class(audit)) is not None:
        unit = "label" if audit["data"]["kind"] == "multilabel" else "class"
        lines.append(SummaryLine(f"Largest {unit} error", worst.error, f"{unit} {worst.name}, Holm {worst.holm}"))
    lines += _unexamined_group_lines(audit) + _worst_group_lines(audit)
    if not (audit.get("recalibration") or {}).get("candidates"):
        lines.append(_recalibration_line(audit.get("recalibration"), audit["data"]))
    return lines


def _worst_group_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the line on the miscalibrated group with the strongest evidence in a list, empty without one."""
    group = worst_group(miscalibrated_groups(audit.get("groups") or ()))
    if group is None:
        return []
    remark = group["label"]
    if interval := group.get("interval"):
        remark += f", {_describe_interval(interval, format_count(group['n'], 'row'))}"
    return [SummaryLine("Worst group", f"ECE {format_error(group['error'])}", remark)]


def _event_rate_line(data: Mapping[str, Any]) -> SummaryLine:
    """Return the summary line on the observed event rate, and its difference from the mean prediction."""
    label, votes_prefix = ("Observed vote share", "votes for ") if data.get("votes") else ("Observed event rate", "")
    weighted = ", weighted" if data.get("weighted") else ""
    rows = f"{votes_prefix}{describe_event(data)} in {format_count(data['n'], 'row')}{weighted}"
    remark = rows
    if (mean := data["mean_prediction"]) is not None:
        difference = with_minus_signs(f"{100 * (data['event_rate'] - mean):+.1f}")
        remark += f"; calibration-in-the-large {difference} percentage points"
    return SummaryLine(label, format_share(data["event_rate"]), remark)


def _accuracy_line(audit: Mapping[str, Any]) -> SummaryLine:
    """Return the summary line on the accuracy; with votes, the mean vote share of the predicted class."""
    data = audit["data"]
    if not data.get("votes"):
        return SummaryLine("Accuracy", format_share(data["accuracy"]), format_row_count(data))
    mean = "weighted mean" if data.get("weighted") else "mean"
    remark = f"predicted class, {mean} of {format_count(data['n'], 'row')}"
    if people := audit.get("people"):
        remark += f"; it is the majority class in {format_share(people['majority']['named'])}"
    return SummaryLine("Vote share", format_share(data["accuracy"]), remark)


def _coverage_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the summary line on the share of questions with an evaluated answer in a list, empty if all have one.

    The share is read from the notes on questions without an answer, and on answers without a confidence.
    """
    texts = [note["text"] for note in audit.get("notes") or () if note["code"] in _COVERAGE_CODES]
    matches = [match for text in texts if (match := _COVERAGE_PATTERN.search(text))]
    if not matches:
        return []
    reasons = "; ".join(_COVERAGE_PATTERN.split(text.partition(";")[0])[0].strip() for text in texts)
    remark = f"{reasons}; the rest of the report covers the other answers"
    return [SummaryLine("Coverage", format_share(float(matches[-1][1]) / 100), remark)]


def _test_line(audit: Mapping[str, Any]) -> SummaryLine:
    """Return the summary line on the family-wise test: whether miscalibration was detected, and the p-value."""
    verdict, label = audit["verdict"], "Miscalibration"
    alpha_text = f"alpha {format_number(verdict['alpha'])}"
    if verdict.get("rejected") is None:
        smallest = format_number(verdict.get("min_pvalue"))
        return SummaryLine(label, "not tested", f"no family-wise p below {smallest} is possible; {alpha_text}")
    p = f"family-wise {format_pvalue_clause(verdict.get('pvalue'), verdict.get('min_pvalue'))}; {alpha_text}"
    if not verdict["rejected"]:
        remark = f"calibration not rejected, {p}"
        if names := verdict.get("excludes_ideal"):
            labels = " and ".join(standard_measure_label(name) for name in names)
            intervals = "intervals exclude their ideal values"
            if len(names) == 1:
                intervals = "interval excludes its ideal value"
            return SummaryLine(label, "inconclusive", f"{remark}; but the {labels} {intervals}")
        tone = "plain" if verdict.get("state") == "too few rows" else "good"
        return SummaryLine(label, "not detected", remark, tone)
    if (verdict.get("pvalue") or 0.0) > verdict["alpha"]:
        return SummaryLine(label, "detected", f"by outcomes of predicted probability 0; not by the test, {p}", "bad")
    other_source, default_test = _rejected_only_by_other_tests(audit)
    return SummaryLine(label, f"detected{other_source}", f"calibration rejected, {p}{default_test}", "bad")


def _rejected_only_by_other_tests(audit: Mapping[str, Any]) -> tuple[str, str]:
    """Return where calibration is rejected, and the p-value of the default lens; empty texts if its test rejects too.

    The texts continue the value and the remark of the line on the family-wise test.
    """
    error = default_lens_ece(audit)
    default_test = next((test for test in audit["tests"] if error and test["lens"] == error["lens"]), None)
    if default_test is None or default_test.get("pvalue") is None:
        return "", ""
    if default_test["pvalue"] <= audit["verdict"]["alpha"]:
        return "", ""
    source = " in subgroups" if miscalibrated_groups(audit.get("groups") or ()) else " by other tests"
    p = format_pvalue_clause(default_test["pvalue"], default_test.get("min_pvalue"))
    return source, f"; the test through the {default_test['lens']} lens alone has {p}"


def _error_line(error: Mapping[str, Any], data: Mapping[str, Any]) -> SummaryLine:
    """Return the summary line on the calibration error through the default lens, with its interval and noise floor."""
    subject = describe_lens(error["lens"], data) if error["lens"] == "positive" else "the confidence"
    remarks = [f"ECE of {subject}"] if error["lens"] in ("positive", "confidence") else []
    if interval := error.get("interval"):
        remarks.append(_describe_interval(interval, format_sample_size(data)))
    if error.get("noise_floor") is not None:
        remarks.append(f"noise floor {format_error(error['noise_floor'])}, the expected value if calibrated")
    return SummaryLine("Expected calibration error", format_error(error["value"]), "; ".join(remarks))


def _describe_interval(interval: Mapping[str, Any], sample_size: str) -> str:
    """Return a confidence interval of an error as text; one of all possible values is called uninformative."""
    low, high = interval["low"], interval["high"]
    is_informative = not covers_unit_interval(low, high)
    limits = format_error_range(low, high) if is_informative else f"uninformative with {sample_size}"
    return f"{format_percent_in_text(interval['level'])} confidence interval {limits}"


def _recalibration_line(recalibration: Mapping[str, Any] | None, data: Mapping[str, Any]) -> SummaryLine:
    """Return the summary line on the recalibration: the calibrator and its gain if confirmed, else the reason."""
    label = "Recalibration"
    if recalibration is None:
        is_multilabel = data["kind"] == "multilabel"
        reason = "the labels do not exclude each other" if is_multilabel else "a tally keeps no rows"
        return SummaryLine(label, "not attempted", reason)
    if not recalibration.get("candidates"):
        reason = _reason_not_attempted(recalibration.get("notes") or ())
        return SummaryLine(label, "not attempted", reason, is_reason=True)
    if recalibration.get("confirmed"):
        name = calibrator_with_parameters(recalibration)
        remark = _describe_confirmed_gain(recalibration, data)
        if constant := describe_constant_prediction(recalibration, data):
            return SummaryLine(label, "hardly better than a constant", f"{name}: {remark}; {constant}")
        return SummaryLine(label, name, remark, "good" if format_gain_bound(recalibration) else "plain")
    if recalibration.get("outcome") == TRAINING_ROWS:
        remark = "the model may have been fitted to these rows; pass rows that it has not seen"
        remark = "; ".join(filter(None, (remark, describe_mixing(recalibration))))
        return SummaryLine(label, TRAINING_ROWS, remark)
    if recalibration.get("outcome") == INSUFFICIENT_ROWS:
        gain = f"log loss gain {format_number(recalibration.get('gain'))} nats per row{_pvalue_suffix(recalibration)}"
        remark = (
            f"{CALIBRATORS.title(recalibration['chosen'])}: {gain}, not significant{_detectable_suffix(recalibration)}"
        )
        remark = "; ".join(filter(None, (remark, describe_mixing(recalibration))))
        return SummaryLine(label, "not confirmed, too few rows", remark)
    remark = f"no significant gain in cross-validated log loss{_detectable_suffix(recalibration)}"
    return SummaryLine(label, "none confirmed", "; ".join(filter(None, (remark, describe_mixing(recalibration)))))


def _detectable_suffix(recalibration: Mapping[str, Any]) -> str:
    """Return the gain that was detectable with these rows, as the end of a remark; empty if it is unknown."""
    detectable = recalibration.get("detectable_gain")
    if detectable is None:
        return ""
    return f"; a gain of {format_number(detectable)} nats per row was detectable with 80 % power"


def _describe_confirmed_gain(recalibration: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return the log loss before and after, its gain, how it was confirmed, and the changed classes."""
    rows = (recalibration.get("rows") or {}).get("confirm")
    is_sampled = is_fitted_to_sample(recalibration, data)
    n_rows = "" if rows is None else format_count(rows, "sampled row" if is_sampled else "row")
    method = f"by cross-fitting on {n_rows}" if rows is not None else "on held-out rows"
    before, after = format_log_loss(recalibration, "before"), format_log_loss(recalibration, "after")
    percent, bound = recalibration.get("gain_percent"), format_gain_bound(recalibration)
    # The test may reject although the confidence interval of the gain includes 0.
    confirmed = "confirmed" if bound else "miscalibration confirmed but not the gain,"
    if not bound:
        change = describe_unconfirmed_gain(recalibration)
    elif percent is None:
        change = f"compared with the original probabilities mixed likewise, a gain of {bound}"
    else:
        change = f"{format_gain_percent(percent)} lower, {bound}"
    subject = "held-out log loss in the sample" if is_sampled else "held-out log loss"
    remark = f"{subject} {before} before, {after} after: {change}"
    remark += f"; {confirmed} {method}{_pvalue_suffix(recalibration)}"
    if recalibration.get("gain_of") == GAIN_OF_PROCEDURE:
        remark += "; estimated for the whole procedure, because the folds chose different methods"
    effects = (_describe_order(recalibration), describe_changed_classes(recalibration, data, only_relevant=True))
    return "; ".join((remark, *(effect for effect in effects if effect)))


def _describe_order(recalibration: Mapping[str, Any]) -> str:
    """Return a remark if the calibrator changes the order of scores; empty if not, or for more than two classes."""
    chosen: Mapping[str, Any] = next(
        (candidate for candidate in recalibration["candidates"] if candidate.get("chosen")), {}
    )
    return "some higher scores get lower probabilities (TN529)" if chosen.get("keeps_order") is False else ""


def _pvalue_suffix(recalibration: Mapping[str, Any]) -> str:
    """Return the p-value of the gain after a comma; empty without one."""
    p = recalibration.get("pvalue")
    return "" if p is None else f", {format_pvalue_clause(p)}"


def _reason_not_attempted(notes: Sequence[Mapping[str, Any]]) -> str:
    """Return why no recalibration was attempted: the first sentence of the note as a clause."""
    if not notes:
        return "see the notes"
    clause = IMPLAUSIBLE_DATA_TEXTS.get(notes[0]["code"], notes[0]["text"]).partition(". ")[0].rstrip(".")
    return clause[:1].lower() + clause[1:]


def _zero_probability_lines(data: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the summary line on observed outcomes of predicted probability 0 in a list, empty if there are none."""
    n_impossible = data.get("true_class_zeros") or 0
    if not n_impossible:
        return []
    if data["kind"] == "confidence":
        text = f"{format_count(n_impossible, 'answer')} wrong at 1, or correct at 0"
        return [SummaryLine("Confidence 0 or 1", text, "evidence against calibration by itself", "bad")]
    text = format_count(n_impossible, "outcome")
    remark = "occurred although the predicted probability was 0: evidence against calibration by itself"
    return [SummaryLine("Predicted probability 0", text, remark, "bad")]


def _group_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the summary line on the miscalibrated subgroups in a list, empty without subgroups.

    It names the worst subgroup if one is established.
    """
    if not audit.get("groups"):
        return _unexamined_group_lines(audit)
    return [_miscalibrated_groups_line(audit), *_unexamined_group_lines(audit)]


def _unexamined_group_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the line on how many groups were examined in a list, empty if all were."""
    unexamined = (audit.get("among_groups") or {}).get("unexamined") or ()
    if not unexamined:
        return []
    n_examined = len(audit.get("groups") or ())
    names = [group["label"] for group in unexamined[:MAX_NAMED_GROUPS]]
    names += [f"{len(unexamined) - MAX_NAMED_GROUPS:,} more"] if len(unexamined) > MAX_NAMED_GROUPS else []
    value = f"{n_examined:,} of {n_examined + len(unexamined):,}"
    return [SummaryLine("Groups examined", value, f"not examined: {', '.join(names)}", "bad")]


def _miscalibrated_groups_line(audit: Mapping[str, Any]) -> SummaryLine:
    """Return the line on the miscalibrated groups, and the worst one if it is established."""
    groups, among_groups, data = audit["groups"], audit.get("among_groups") or {}, audit["data"]
    group_count, label = format_count(len(groups), "group"), "Miscalibrated groups"
    n_miscalibrated = len(miscalibrated_groups(groups))
    n_undecided = sum(group["status"] == "undecided" for group in groups)
    undecided_text = f"{n_undecided:,} undecided" if n_undecided else "none undecided"
    if not n_miscalibrated and (among_groups.get("min_pvalue") or 0.0) > audit["verdict"]["alpha"]:
        needs_more_resamples = data.get("clusters") is None or among_groups.get("correction") == HOLM
        scarce = "resamples" if needs_more_resamples else "clusters"
        return SummaryLine(label, "not tested", f"too few {scarce} for {group_count}; see the notes")
    if not n_miscalibrated:
        remark = undecided_text
        if n_undecided < len(groups):
            remark += f", the others within the equivalence margin {format_number(among_groups['min_effect'])}"
        return SummaryLine(label, f"none of {len(groups)}", remark)
    gaps = among_groups.get("widest") or ()
    worst = established_worst_group(groups, gaps)
    if worst is not None:
        remark = f"worst: {worst['label']}, ECE {format_error(worst['error'])}; {undecided_text}"
    elif gaps and not any(gap["settled"] for gap in gaps):
        remark = f"{ERRORS_DO_NOT_DIFFER}; {undecided_text}"
    else:
        remark = undecided_text
    return SummaryLine(label, f"{n_miscalibrated} of {group_count}", remark, "bad")


def _annotator_lines(audit: Mapping[str, Any]) -> list[SummaryLine]:
    """Return the summary line on the distance of the predictions from the votes in a list, empty without votes."""
    distance = summarize_distance(audit)
    return [SummaryLine("Distance from annotators", *distance)] if distance else []
