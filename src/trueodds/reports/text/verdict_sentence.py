"""Write the verdict of an audit in sentences: direction and size of the miscalibration, evidence, recalibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.calibrators import CALIBRATORS
from trueodds.core.errors import Note
from trueodds.core.formatting import (
    format_count,
    format_distinct_percents,
    format_error,
    format_error_range,
    format_number,
    format_percent_in_text,
    format_pvalue_clause,
    with_minus_signs,
)
from trueodds.core.printable import to_printable
from trueodds.core.results import Interval, Verdict
from trueodds.reports.audit_results import AuditResults, measures_by_name
from trueodds.reports.subgroups import count_miscalibrated_groups, established_worst_group
from trueodds.reports.text.formatting import covers_unit_interval, format_sample_size, is_binary
from trueodds.reports.text.largest_deviation import describe_bin, largest_deviation, read_bins
from trueodds.reports.text.recalibration import (
    DOUBTFUL_DATA_TEXTS,
    GAIN_OF_PROCEDURE,
    IMPLAUSIBLE_DATA_TEXTS,
    INSUFFICIENT_ROWS,
    TRAINING_ROWS,
    describe_constant_prediction,
    describe_mixing,
    describe_unconfirmed_gain,
    format_gain_bound,
    format_gain_percent,
    format_log_loss,
)
from trueodds.reports.text.result_tables import standard_measure_label
from trueodds.reports.text.verdict_state import measures_excluding_ideal, miscalibration_direction, ratio_of_events


def verdict_sentence(
    results: AuditResults,
    family: Verdict,
    state: str,
    alpha: float,
    data: Mapping[str, Any],
    recalibration: Mapping[str, Any] | None,
    bins: Mapping[str, Sequence[Any]] | None = None,
    notes: Sequence[Note] = (),
) -> str:
    """Return the verdict in up to four sentences.

    Parameters
    ----------
    results : AuditResults
        The estimates and tests.
    family : Verdict
        The family-wise test.
    state : str
        The state of calibration, as `verdict_state` returns it.
    alpha : float
        Significance level of the family-wise test.
    data : mapping
        The description of the data, as `describe_data` returns it.
    recalibration : mapping or None
        The section `recalibration` of the audit.
    bins : mapping, optional
        The table of the reliability diagram through the default lens.
    notes : sequence of Note, default=()
        Notes on the data.

    Returns
    -------
    str
        Sentences on data that look wrong; on direction and size of the miscalibration, predicted against observed; on
        the evidence, which are the test, the miscalibrated groups, and observed outcomes of predicted probability 0;
        and on the recalibration. Those that do not apply are left out.
    """
    sentences = (
        _implausible_data_sentence(recalibration, notes),
        _calibration_sentence(results, family, state, alpha, data, bins),
        _evidence_sentence(results, family, state, alpha, data),
        describe_recalibration(recalibration, data),
    )
    return to_printable(" ".join(sentence for sentence in sentences if sentence))


def _calibration_sentence(
    results: AuditResults,
    family: Verdict,
    state: str,
    alpha: float,
    data: Mapping[str, Any],
    bins: Mapping[str, Sequence[Any]] | None,
) -> str:
    """Return the sentence on direction and size: predicted against observed, for all rows and in the worst bin."""
    is_rejected = state not in ("no evidence", "too few rows", "not tested")
    doubts = [] if is_rejected else [_describe_excluded_ideals(results), _describe_unexamined_groups(results)]
    contradiction = f", but {', and '.join(filter(None, doubts))}" if any(doubts) else ""
    word = {
        "no evidence": "Inconclusive" if contradiction else "No evidence of miscalibration",
        "too few rows": f"Too few {'rows' if data.get('clusters') is None else 'clusters'} to judge",
        "not tested": "Not tested",
        "too high": "Overpredicts",
        "too low": "Underpredicts",
    }.get(state, state.capitalize())
    if data["mean_confidence"] is None or data["accuracy"] is None:
        classes = _describe_miscalibrated_classes(results, alpha, "label", "labels") if state == "miscalibrated" else ""
        error = format_error(results.errors[0].value)
        return f"{word}: expected calibration error {error}, averaged over the labels{classes}{contradiction}."
    means = _describe_means(data)
    _, slope = miscalibration_direction(results, family, alpha, data)
    if slope is not None and slope.interval is not None and state in ("reversed", "overconfident", "underconfident"):
        slope_text = _describe_slope(slope.value or 0.0, slope.interval, state, data)
        if state != "reversed" and (part := _describe_largest_deviation(bins, data, state)):
            return f"{word}: {part}; overall, {means} ({_describe_slope_value(slope.value or 0.0, slope.interval)})."
        return f"{word}: {slope_text}; {means}."
    if state in ("too high", "too low"):
        return f"{word}: {_describe_number_of_events(data)}{_describe_additional_slope(results, state)}."
    if state in ("overconfident", "underconfident"):
        return f"{word}: {means}{_describe_additional_slope(results, state)}."
    if state != "miscalibrated" or family.pvalue > alpha:
        return f"{word}: {means}{contradiction}."
    if not _default_lens_rejects(results, alpha):
        return f"{word}: {means}{_describe_miscalibrated_part(results, alpha)}."
    part = _describe_largest_deviation(bins, data, state)
    error = f"expected calibration error {format_error(results.errors[0].value)}"
    return f"{word}: {f'{part}; overall, ' if part else ''}{means}, {error}."


def _describe_excluded_ideals(results: AuditResults) -> str:
    """Return a clause on the standard measures whose intervals exclude their ideal value; empty if there are none.

    Such a measure contradicts a test that does not reject. The calibration intercept is left out beside the O:E ratio,
    because it states the same deviation.
    """
    names = measures_excluding_ideal(results)
    if "observed_to_expected" in names and "calibration_intercept" in names:
        names.remove("calibration_intercept")
    texts: list[str] = []
    for name in names:
        measure = measures_by_name(results.standard_measures)[name]
        assert measure.interval is not None
        digits = 2 if name in ("calibration_slope", "observed_to_expected", "calibration_intercept") else 3
        low, high = (with_minus_signs(f"{x:.{digits}f}") for x in (measure.interval.low, measure.interval.high))
        level = f"{format_percent_in_text(measure.interval.level)} confidence interval of the " if not texts else ""
        texts.append(f"{level}{standard_measure_label(name)}, {low} to {high}, excludes {measure.ideal:.0f}")
    return f"the {'; that of the '.join(texts)}" if texts else ""


def _describe_unexamined_groups(results: AuditResults) -> str:
    """Return a clause on the groups that were not examined, or could not be tested; empty if there are none."""
    n_unexamined = len(results.groups.unexamined)
    if results.groups.groups and results.groups.min_pvalue > results.groups.alpha * (1 + 1e-9):
        return "the groups could not be tested, for too few null draws or clusters"
    if not n_unexamined:
        return ""
    verb, n_groups = "was" if n_unexamined == 1 else "were", len(results.groups.groups) + n_unexamined
    return f"{n_unexamined:,} of {format_count(n_groups, 'group')} {verb} not examined"


def _describe_means(data: Mapping[str, Any]) -> str:
    """Return the mean prediction beside the event rate of two classes, or beside the accuracy."""
    if is_binary(data):
        predicted, observed = format_distinct_percents(data["mean_prediction"], data["event_rate"])
        return f"mean predicted {predicted}, {'share of votes' if data['votes'] else 'observed'} {observed}"
    predicted, observed = format_distinct_percents(data["mean_confidence"], data["accuracy"])
    # A share of votes is not an accuracy, because annotators disagree.
    agreement = f"{observed} of the votes agree" if data["votes"] else f"is right {observed} of the time"
    return f"predicts {predicted} on average, {agreement}"


def _describe_number_of_events(data: Mapping[str, Any]) -> str:
    """Return the means of two classes, after the ratio of predicted and observed events unless it is close to 1.

    >>> _describe_number_of_events({"votes": False, "mean_prediction": 0.027, "event_rate": 0.049})
    '1.8 times as many events occur as predicted (mean predicted 2.7 %, observed 4.9 %)'
    """
    means, ratio = _describe_means(data), ratio_of_events(data)
    if ratio is None:
        return means
    factor = max(ratio, 1 / ratio)
    times = f"{factor:.1f}" if factor < 10 else f"{factor:.0f}"
    text = f"{times} times as many events occur as predicted" if ratio > 1 else f"predicts {times} times as many events"
    return f"{text}{' as occur' if ratio < 1 else ''} ({means})"


def _describe_additional_slope(results: AuditResults, state: str) -> str:
    """Return that probabilities are too extreme or too moderate, if the interval of the slope excludes 1.

    Of a mean confidence that is too high or too low, only a slope is described that suggests the opposite.
    """
    slope = measures_by_name(results.standard_measures).get("calibration_slope")
    if slope is None or slope.value is None or "calibration_slope" not in measures_excluding_ideal(results):
        return ""
    word = "extreme" if slope.value < 1 else "moderate"
    if state in ("overconfident", "underconfident"):
        if (word == "extreme") == (state == "overconfident"):
            return ""
        text = f"yet probabilities as a whole are too {word}"
    else:
        text = f"probabilities are also too {word}"
    return with_minus_signs(f"; {text} (calibration slope {slope.value:.2f})")


def _describe_largest_deviation(bins: Mapping[str, Sequence[Any]] | None, data: Mapping[str, Any], state: str) -> str:
    """Return predicted and observed of the bin that contributes most to the error in the direction of the state."""
    if bins is None or "outside" not in bins:
        return ""
    # An accuracy below the stated confidence is overconfident at any confidence, so the center lies below all of them.
    center = data["event_rate"] if is_binary(data) else -1.0
    sign = {"overconfident": 1, "underconfident": -1}.get(state, 0)
    return describe_bin(largest_deviation(read_bins(bins), center, sign), data)


def _describe_slope(slope: float, interval: Interval, state: str, data: Mapping[str, Any]) -> str:
    """Return what the calibration slope shows, with the slope and its confidence interval in parentheses."""
    meaning = {
        "overconfident": "probabilities are too extreme",
        "underconfident": "probabilities are too moderate",
        "reversed": _describe_reversed_ranking(data),
    }[state]
    return f"{meaning} ({_describe_slope_value(slope, interval)})"


def _describe_slope_value(slope: float, interval: Interval) -> str:
    """Return the calibration slope with its confidence interval."""
    value, low, high = (with_minus_signs(f"{x:.2f}") for x in (slope, interval.low, interval.high))
    level = format_percent_in_text(interval.level)
    return f"calibration slope {value}, {level} confidence interval {low} to {high}, ideally 1"


def _describe_reversed_ranking(data: Mapping[str, Any]) -> str:
    """Return what a slope below 0 means for these data."""
    if data["kind"] == "classes" and not is_binary(data):
        return "classes with higher predicted probabilities are observed less often"
    if not is_binary(data):
        return "higher confidences go with lower accuracy"
    return f"higher predicted probabilities go with lower {'shares of votes' if data['votes'] else 'event rates'}"


def _describe_miscalibrated_part(results: AuditResults, alpha: float) -> str:
    """Return a clause on the miscalibrated groups or classes, if the test through the default lens does not reject."""
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
    """Return a clause on the classes or labels for which calibration is rejected: their number, and the largest error.

    The errors are those of the table of classes.
    """
    errors = {name: value for error in results.errors for name, value in error.parts.items()}
    for test in results.tests:
        tested = [name for name in test.parts if name.startswith("class:")]
        views = [name for name in tested if test.parts[name]["holm"] <= alpha]
        if views:
            worst = max(views, key=lambda name: errors.get(name, 0.0))
            text = f"{unit} {worst.removeprefix('class:')}"
            if len(views) > 1:
                count = f"all {len(tested):,}" if len(views) == len(tested) else f"{len(views):,} of {len(tested):,}"
                text = f"{count} {units}, most for {text}"
            return f"; miscalibrated for {text}"
    return ""


def _describe_groups(results: AuditResults, state: str, alpha: float, data: Mapping[str, Any]) -> str:
    """Return a clause on the miscalibrated subgroups; empty without any, or if the first sentence is on them.

    It names the worst subgroup if `established_worst_group` returns one.
    """
    groups, gaps = results.groups.to_entries(), [gap.to_dict() for gap in results.groups.widest_gaps]
    worst, count = established_worst_group(groups, gaps), count_miscalibrated_groups(groups, gaps)
    is_named_already = (
        state == "miscalibrated" and not _default_lens_rejects(results, alpha) and data["mean_confidence"] is not None
    )
    if is_named_already or not count:
        return ""
    if worst is None:
        return count
    error = f"ECE {format_error(worst['error'])}"
    if worst["mean_prob"] is None or worst["event_rate"] is None:
        return f"worst group: {worst['label']} ({error})"
    predicted_percent, observed_percent = format_distinct_percents(worst["mean_prob"], worst["event_rate"])
    observed = "share of votes" if data["votes"] else "observed" if is_binary(data) else "accuracy"
    predicted = "mean predicted" if is_binary(data) else "mean confidence"
    return f"worst group: {worst['label']} ({predicted} {predicted_percent}, {observed} {observed_percent}, {error})"


def _default_lens_rejects(results: AuditResults, alpha: float) -> bool:
    """Return whether the test through the default lens rejects and its error is larger than its noise floor."""
    error = results.errors[0]
    return results.default_test.pvalue <= alpha and (error.debiased is None or error.debiased > 0)


def _describe_zero_probabilities(data: Mapping[str, Any]) -> str:
    """Return a clause on observed outcomes of predicted probability 0; empty without any.

    The two outcomes of a confidence are that the answer is correct, and that it is wrong.
    """
    n_impossible = data["true_class_zeros"]
    if not n_impossible:
        return ""
    if data["kind"] == "confidence":
        verb = "was" if n_impossible == 1 else "were"
        return f"{format_count(n_impossible, 'answer')} {verb} wrong at confidence 1, or correct at confidence 0"
    return f"{format_count(n_impossible, 'outcome')} occurred although the predicted probability was 0"


def _evidence_sentence(
    results: AuditResults, family: Verdict, state: str, alpha: float, data: Mapping[str, Any]
) -> str:
    """Return the sentence on the family-wise test, the miscalibrated groups, and predicted probabilities of 0."""
    p = f"family-wise {format_pvalue_clause(family.pvalue, family.min_pvalue)}"
    if state == "not tested":
        min_pvalue_text = f"the smallest possible family-wise p-value is {format_number(family.min_pvalue)}"
        # A smallest p-value above that of the number of null draws comes from the few possible outcomes of few rows.
        attainable = results.default_test.min_pvalue
        if attainable is not None and attainable > 2 / (1 + results.resamples):
            units = "rows" if data.get("clusters") is None else "clusters"
            return f"Too few {units} for a test: with {format_sample_size(data)}, {min_pvalue_text}."
        return f"Too few resamples for a test: with {results.resamples:,} resamples, {min_pvalue_text}."
    zeros, groups = _describe_zero_probabilities(data), _describe_groups(results, state, alpha, data)
    if family.pvalue <= alpha:
        clauses = (f"Calibration rejected ({p})", groups, _describe_unexamined_groups(results), zeros)
        return f"{'; '.join(clause for clause in clauses if clause)}."
    if zeros:
        return f"{zeros}; apart from that, calibration is not rejected ({p})."
    return f"Calibration not rejected ({p}){_describe_error_interval(results.errors[0].interval, data)}."


def _describe_error_interval(interval: Interval | None, data: Mapping[str, Any]) -> str:
    """Return the interval of the calibration error as the end of a sentence; empty if there is none."""
    if interval is None:
        return ""
    if covers_unit_interval(interval.low, interval.high):
        return f"; {format_sample_size(data)} are too few to bound the expected calibration error"
    limits = format_error_range(interval.low, interval.high)
    return f"; {format_percent_in_text(interval.level)} confidence interval of the expected calibration error {limits}"


def _implausible_data_sentence(recalibration: Mapping[str, Any] | None, notes: Sequence[Note]) -> str:
    """Return sentences on data that are implausible; empty for others.

    Of a tally only a sample of rows, that of the recalibration, may be recognized as implausible.
    """
    codes = {note.code for note in notes} | {note["code"] for note in (recalibration or {}).get("notes", ())}
    if "TN164" in codes:  # which states the cause of TN163
        codes.discard("TN163")
    return " ".join(text for code, text in (IMPLAUSIBLE_DATA_TEXTS | DOUBTFUL_DATA_TEXTS).items() if code in codes)


def describe_recalibration(recalibration: Mapping[str, Any] | None, data: Mapping[str, Any]) -> str:
    """Return a sentence on the outcome of the recalibration; empty if none was attempted."""
    if recalibration is None or not recalibration["candidates"]:
        return ""
    if recalibration["confirmed"]:
        sentence = _describe_gain(recalibration)
        if describe_constant_prediction(recalibration, data):
            sentence += "; the result is hardly better than a constant prediction"
        return f"{sentence}."
    mixing = describe_mixing(recalibration)
    if recalibration.get("outcome") == TRAINING_ROWS:
        sentence = "no recalibration can be judged on rows that the model was trained on: pass held-out rows"
    elif recalibration.get("outcome") == INSUFFICIENT_ROWS:
        sentence = f"no recalibration could be confirmed with {format_count(data['n'], 'row')}"
    else:
        sentence = "no recalibration improves the held-out log loss significantly"
    sentence = f"{mixing}; beyond that, {sentence}" if mixing else sentence
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _describe_gain(recalibration: Mapping[str, Any]) -> str:
    """Return the effect of the recalibration on the held-out log loss; no percentage if the log loss was infinite.

    The test may confirm miscalibration although the confidence interval of the gain includes 0; then the text says that
    the gain is not confirmed. If the folds chose different methods, the gain is that of the whole procedure.
    """
    name = _name_with_temperature(recalibration["chosen"], recalibration["summary"])
    lower_bound, percent = format_gain_bound(recalibration), recalibration["gain_percent"]
    if not lower_bound:
        return (
            f"Miscalibration is confirmed by cross-fitting, but the gain in log loss by {name} is not"
            f" ({describe_unconfirmed_gain(recalibration)})"
        )
    is_of_procedure = recalibration.get("gain_of") == GAIN_OF_PROCEDURE
    subject = f"Recalibration, here by {name}," if is_of_procedure else name[:1].upper() + name[1:]
    if percent is None:
        after = format_log_loss(recalibration, "after")
        gain = f"from infinite to {after} ({lower_bound} compared with mixing in the uniform distribution alone)"
    else:
        gain = f"by {format_gain_percent(percent)} ({lower_bound})"
    return (
        f"{subject} reduces the log loss {gain}, confirmed by cross-fitting on these rows; valid only if the model"
        " was not trained on them"
    )


def _name_with_temperature(method: str, summary: str) -> str:
    """Return the calibrator's name, with the parameter of temperature scaling."""
    return f"temperature scaling ({summary})" if method == "temperature" else CALIBRATORS.title(method)
