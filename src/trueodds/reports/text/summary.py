"""Summarize an audit in labeled lines: predicted and observed means, error, test, recalibration and subgroups."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.cross_validation import (
    GAIN_NOT_ESTABLISHED,
    NO_GAIN,
    NOT_ENOUGH_ROWS,
    PROCEDURE,
    TRAINING_ROWS,
)
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
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import (
    HOLM,
    NOT_ATTEMPTED,
    AmongGroups,
    AuditData,
    AuditInterval,
    AuditMeasure,
    AuditRecalibration,
)
from trueodds.reports.text.formatting import (
    covers_unit_interval,
    describe_event,
    describe_lens,
    format_row_count,
    format_sample_size,
)
from trueodds.reports.text.recalibration import (
    IMPLAUSIBLE_DATA_TEXTS,
    calibrator_with_parameters,
    describe_changed_classes,
    describe_constant_prediction,
    describe_mixing,
    describe_unestablished_gain,
    format_gain_bound,
    format_gain_percent,
    format_log_loss,
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


def summary_lines(audit: AuditResult) -> list[SummaryLine]:
    """Return the lines of the summary in the order in which they are shown; lines that do not apply are left out."""
    data = audit.data
    weighted = "weighted, " if data.weighted else ""
    lines = []
    if data.is_binary:
        remark = f"{weighted}probability of {describe_event(data)}"
        lines += [SummaryLine("Mean predicted", format_share(data.mean_prediction), remark), _event_rate_line(data)]
    elif data.mean_confidence is not None:
        is_confidence = data.kind == "confidence"
        subject = "stated confidence in the answer" if is_confidence else "probability of the predicted class"
        lines.append(SummaryLine("Mean confidence", format_share(data.mean_confidence), f"{weighted}{subject}"))
    if data.accuracy is not None and not data.is_binary:
        lines.append(_accuracy_line(audit))
    lines += _coverage_lines(audit)
    if audit.default_error is not None:
        lines.append(_error_line(audit.default_error, data))
    lines += [_test_line(audit), _recalibration_line(audit)]
    return lines + _zero_probability_lines(data) + _group_lines(audit) + _annotator_lines(audit) + _regret_lines(audit)


def brief_lines(audit: AuditResult) -> list[SummaryLine]:
    """Return the lines of the brief report, with what the sentence of the verdict above them leaves out.

    They are the error with its interval and noise floor, the class with the largest error and the worst group among the
    miscalibrated ones, how many groups were examined unless all were, and the reason if no recalibration was attempted.
    """
    lines = []
    if (error := audit.default_error) is not None:
        remarks = []
        if error.interval is not None:
            remarks.append(_describe_interval(error.interval, format_sample_size(audit.data)))
        if error.noise_floor is not None:
            remarks.append(f"noise floor {format_error(error.noise_floor)}")
        lines.append(SummaryLine("Expected calibration error", format_error(error.value), "; ".join(remarks)))
    if (worst := worst_class(audit)) is not None:
        unit = "label" if audit.data.kind == "multilabel" else "class"
        lines.append(SummaryLine(f"Largest {unit} error", worst.error, f"{unit} {worst.name}, Holm {worst.holm}"))
    lines += _unexamined_group_lines(audit) + _worst_group_lines(audit)
    if audit.recalibration is None or audit.recalibration.status == NOT_ATTEMPTED:
        lines.append(_recalibration_line(audit))
    return lines


def _worst_group_lines(audit: AuditResult) -> list[SummaryLine]:
    group = audit.worst_group
    if group is None:
        return []
    remark = group.label
    if group.interval is not None:
        remark += f", {_describe_interval(group.interval, format_count(group.n, 'row'))}"
    return [SummaryLine("Worst group", f"ECE {format_error(group.error)}", remark)]


def _event_rate_line(data: AuditData) -> SummaryLine:
    label, votes_prefix = ("Observed vote share", "votes for ") if data.votes else ("Observed event rate", "")
    weighted = ", weighted" if data.weighted else ""
    subject = f"{votes_prefix}{describe_event(data)}"
    if data.event_counts is None:
        remark = f"{subject} in {format_count(data.n, 'row')}{weighted}"
    else:
        events, non_events = data.event_counts
        counts = f"{format_count(events, 'event')} and {format_count(non_events, 'non-event')}"
        remark = f"{subject}, {counts} in {format_count(data.n, 'row')}"
    if data.means is not None:
        difference = with_minus_signs(f"{100 * (data.means[1] - data.means[0]):+.1f}")
        remark += f"; calibration-in-the-large {difference} percentage points"
    return SummaryLine(label, format_share(data.event_rate), remark)


def _accuracy_line(audit: AuditResult) -> SummaryLine:
    """Return the summary line on the accuracy; with votes, the mean vote share of the predicted class."""
    data = audit.data
    if not data.votes:
        return SummaryLine("Accuracy", format_share(data.accuracy), format_row_count(data))
    mean = "weighted mean" if data.weighted else "mean"
    remark = f"predicted class, {mean} of {format_count(data.n, 'row')}"
    if audit.people:
        remark += f"; it is the majority class in {format_share(audit.people.majority.named)}"
    return SummaryLine("Vote share", format_share(data.accuracy), remark)


def _coverage_lines(audit: AuditResult) -> list[SummaryLine]:
    """Return the summary line on the share of questions with an evaluated answer in a list, empty if all have one.

    The share is read from the notes on questions without an answer, and on answers without a confidence.
    """
    texts = [note.text for note in audit.notes if note.code in _COVERAGE_CODES]
    matches = [match for text in texts if (match := _COVERAGE_PATTERN.search(text))]
    if not matches:
        return []
    reasons = "; ".join(_COVERAGE_PATTERN.split(text.partition(";")[0])[0].strip() for text in texts)
    remark = f"{reasons}; the rest of the report covers the other answers"
    return [SummaryLine("Coverage", format_share(float(matches[-1][1]) / 100), remark)]


def _test_line(audit: AuditResult) -> SummaryLine:
    verdict, label = audit.verdict, "Miscalibration"
    alpha_text = f"alpha {format_number(verdict.alpha)}"
    if verdict.rejected is None:
        smallest = format_number(verdict.min_pvalue)
        return SummaryLine(label, "not tested", f"no family-wise p below {smallest} is possible; {alpha_text}")
    p = f"family-wise {format_pvalue_clause(verdict.pvalue, verdict.min_pvalue)}; {alpha_text}"
    if not verdict.rejected:
        remark = f"calibration not rejected, {p}"
        if doubts := _describe_doubts(audit):
            return SummaryLine(label, "inconclusive", f"{remark}; but {', and '.join(doubts)}")
        return SummaryLine(label, "not detected", remark, "plain" if verdict.state == "too few rows" else "good")
    if not verdict.is_test_significant:
        return SummaryLine(label, "detected", f"by outcomes of predicted probability 0; not by the test, {p}", "bad")
    other_source, default_test = _rejected_only_by_other_tests(audit)
    return SummaryLine(label, f"detected{other_source}", f"calibration rejected, {p}{default_test}", "bad")


def _describe_doubts(audit: AuditResult) -> list[str]:
    """Return the facts that leave open a calibration that is not rejected."""
    doubts, names = [], audit.verdict.excludes_ideal
    if names:
        intervals = "interval excludes its ideal value" if len(names) == 1 else "intervals exclude their ideal values"
        doubts.append(f"the {' and '.join(map(standard_measure_label, names))} {intervals}")
    if audit.has_untestable_groups:
        doubts.append("the groups could not be tested")
    elif audit.verdict.unexamined_groups:
        doubts.append("not all groups were examined")
    return doubts


def _rejected_only_by_other_tests(audit: AuditResult) -> tuple[str, str]:
    """Return where calibration is rejected, and the p-value of the default lens; empty texts if its test rejects too.

    The texts continue the value and the remark of the line on the family-wise test.
    """
    test = audit.default_test
    if test is None or test.pvalue is None or audit.is_default_test_significant:
        return "", ""
    source = " in subgroups" if audit.miscalibrated_groups else " by other tests"
    p = format_pvalue_clause(test.pvalue, test.min_pvalue)
    return source, f"; the test for the {test.lens} lens alone has {p}"


def _error_line(error: AuditMeasure, data: AuditData) -> SummaryLine:
    subject = describe_lens(error.lens, data) if error.lens == "positive" else "the confidence"
    remarks = [f"ECE of {subject}"] if error.lens in ("positive", "confidence") else []
    if error.interval is not None:
        remarks.append(_describe_interval(error.interval, format_sample_size(data)))
    if error.noise_floor is not None:
        remarks.append(f"noise floor {format_error(error.noise_floor)}, the expected value if calibrated")
    return SummaryLine("Expected calibration error", format_error(error.value), "; ".join(remarks))


def _describe_interval(interval: AuditInterval, sample_size: str) -> str:
    """Return a confidence interval of an error as text; one of all possible values is called uninformative."""
    is_informative = not covers_unit_interval(interval.low, interval.high)
    limits = format_error_range(interval.low, interval.high) if is_informative else f"uninformative with {sample_size}"
    return f"{format_percent_in_text(interval.level)} confidence interval {limits}"


def _recalibration_line(audit: AuditResult) -> SummaryLine:
    """Return the summary line on the recalibration: the calibrator and its gain if confirmed, else the reason."""
    label, recalibration = "Recalibration", audit.recalibration
    if recalibration is None:
        is_multilabel = audit.data.kind == "multilabel"
        reason = "the labels do not exclude each other" if is_multilabel else "a tally keeps no rows"
        return SummaryLine(label, NOT_ATTEMPTED, reason)
    if recalibration.status == NOT_ATTEMPTED:
        return SummaryLine(label, NOT_ATTEMPTED, _reason_not_attempted(recalibration), is_reason=True)
    if recalibration.confirmed:
        name, remark = calibrator_with_parameters(recalibration), _describe_confirmed_gain(audit, recalibration)
        if constant := describe_constant_prediction(recalibration, audit.data):
            return SummaryLine(label, "hardly better than a constant", f"{name}: {remark}; {constant}")
        return SummaryLine(label, name, remark, "good" if recalibration.status == "confirmed" else "plain")
    detectable = ""
    if recalibration.detectable_gain is not None:
        gain = format_number(recalibration.detectable_gain)
        detectable = f"; smallest gain detectable with 80 % power: {gain} nats per row"
    if recalibration.status == TRAINING_ROWS:
        value = TRAINING_ROWS
        remark = "the model may have been fitted to these rows; pass rows that it has not seen"
    elif recalibration.status == NOT_ENOUGH_ROWS:
        value = NOT_ENOUGH_ROWS
        gain = f"log loss gain {format_number(recalibration.gain)} nats per row{_pvalue_suffix(recalibration)}"
        remark = f"{CALIBRATORS.title(recalibration.chosen)}: {gain}, not significant{detectable}"
    else:
        value, remark = NO_GAIN, f"no significant gain in cross-validated log loss{detectable}"
    return SummaryLine(label, value, "; ".join(filter(None, (remark, describe_mixing(recalibration)))))


def _describe_confirmed_gain(audit: AuditResult, recalibration: AuditRecalibration) -> str:
    rows = (recalibration.rows or {}).get("confirm")
    is_sampled = audit.recalibrates_sample
    n_rows = "" if rows is None else format_count(rows, "sampled row" if is_sampled else "row")
    method = f"by cross-fitting on {n_rows}" if rows is not None else "on held-out rows"
    before, after = format_log_loss(recalibration, "before"), format_log_loss(recalibration, "after")
    percent, bound = recalibration.gain_percent, format_gain_bound(recalibration)
    if recalibration.status == GAIN_NOT_ESTABLISHED:
        change = describe_unestablished_gain(recalibration)
    elif percent is None:
        change = f"a gain of {bound} over original probabilities with the same mixture"
    else:
        change = f"{format_gain_percent(percent)} lower, {bound}"
    subject = "held-out log loss in the sample" if is_sampled else "held-out log loss"
    remark = f"{subject} {before} before, {after} after: {change}"
    what = "miscalibration" if recalibration.status == GAIN_NOT_ESTABLISHED else ""
    remark += f"; {what}{' ' * bool(what)}confirmed {method}{_pvalue_suffix(recalibration)}"
    if recalibration.gain_of == PROCEDURE:
        remark += "; the gain is that of the whole selection procedure, because the folds chose different methods"
    if any(candidate.chosen and candidate.keeps_order is False for candidate in recalibration.candidates):
        remark += "; some higher scores get lower probabilities (TN529)"
    changes = describe_changed_classes(recalibration, audit.data, only_relevant=True)
    return f"{remark}; {changes}" if changes else remark


def _pvalue_suffix(recalibration: AuditRecalibration) -> str:
    """Return the p-value after a comma, with its null hypothesis; empty without one."""
    p = recalibration.pvalue
    return "" if p is None else f", {format_pvalue_clause(p)} if the predictions were calibrated"


def _reason_not_attempted(recalibration: AuditRecalibration) -> str:
    """Return why no recalibration was attempted: the first sentence of the note as a clause."""
    if not recalibration.notes:
        return "see the notes"
    note = recalibration.notes[0]
    clause = IMPLAUSIBLE_DATA_TEXTS.get(note.code, note.text).partition(". ")[0].rstrip(".")
    return clause[:1].lower() + clause[1:]


def _zero_probability_lines(data: AuditData) -> list[SummaryLine]:
    n_impossible = data.true_class_zeros
    if not n_impossible:
        return []
    if data.kind == "confidence":
        text = f"{format_count(n_impossible, 'answer')} wrong at 1, or correct at 0"
        return [SummaryLine("Confidence 0 or 1", text, "evidence against calibration by itself", "bad")]
    text = format_count(n_impossible, "outcome")
    remark = "occurred although the predicted probability was 0: evidence against calibration by itself"
    return [SummaryLine("Predicted probability 0", text, remark, "bad")]


def _group_lines(audit: AuditResult) -> list[SummaryLine]:
    """Return the lines on the miscalibrated subgroups, and on how many were examined; empty without subgroups."""
    among_groups = audit.among_groups or AmongGroups()
    lines = [_miscalibrated_groups_line(audit, among_groups)] if audit.groups else []
    return lines + _unexamined_group_lines(audit)


def _unexamined_group_lines(audit: AuditResult) -> list[SummaryLine]:
    unexamined = audit.unexamined_groups
    if not unexamined:
        return []
    names = [group.label for group in unexamined[:MAX_NAMED_GROUPS]]
    names += [f"{len(unexamined) - MAX_NAMED_GROUPS:,} more"] if len(unexamined) > MAX_NAMED_GROUPS else []
    value = f"{len(audit.groups):,} of {len(audit.groups) + len(unexamined):,}"
    return [SummaryLine("Groups examined", value, f"not examined: {', '.join(names)}", "bad")]


def _miscalibrated_groups_line(audit: AuditResult, among_groups: AmongGroups) -> SummaryLine:
    groups, n_miscalibrated, label = audit.groups, len(audit.miscalibrated_groups), "Miscalibrated groups"
    group_count = format_count(len(groups), "group")
    n_undecided = sum(group.status == "undecided" for group in groups)
    remark = f"{n_undecided:,} undecided" if n_undecided else "none undecided"
    if not n_miscalibrated and audit.has_untestable_groups:
        needs_more_resamples = audit.data.clusters is None or among_groups.correction == HOLM
        scarce = "resamples" if needs_more_resamples else "clusters"
        return SummaryLine(label, "not tested", f"too few {scarce} for {group_count}; see the notes")
    if not n_miscalibrated:
        if n_undecided < len(groups):
            remark += f", the others within the equivalence margin {format_number(among_groups.min_effect)}"
        return SummaryLine(label, f"none of {len(groups)}", remark)
    if (worst := audit.established_worst_group) is not None:
        remark = f"worst: {worst.label}, ECE {format_error(worst.error)}; {remark}"
    elif audit.group_errors_do_not_differ:
        remark = f"errors do not differ significantly between groups; {remark}"
    return SummaryLine(label, f"{n_miscalibrated} of {group_count}", remark, "bad")


def _annotator_lines(audit: AuditResult) -> list[SummaryLine]:
    distance = summarize_distance(audit)
    return [SummaryLine("Distance from annotators", *distance)] if distance else []


def _regret_lines(audit: AuditResult) -> list[SummaryLine]:
    """Return the line on the cost per row that recalibration would save; none if no costs were given."""
    if audit.decisions is None:
        return []
    regret, p = audit.decisions.regret, audit.decisions.test.pvalue
    calibrator = regret.settings["calibrator"].replace("_", " ")
    remark = (
        f"mean cost {format_number(regret.parts['stated'])} with these predictions, "
        f"{format_number(regret.parts['recalibrated'])} after {calibrator} recalibration"
    )
    if p is not None:
        remark += f"; {format_pvalue_clause(p, None)}"
    if regret.value is not None and regret.value <= 0:
        return [SummaryLine("Decision regret", "none", remark)]
    value = f"{format_number(regret.value)} per row"
    if p is None or p > audit.verdict.alpha:
        return [SummaryLine("Decision regret", f"{value}, not significant", remark)]
    return [SummaryLine("Decision regret", value, remark, "bad")]
