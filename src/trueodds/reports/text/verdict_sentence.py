"""Write the verdict of an audit in sentences: direction and size of the miscalibration, evidence, recalibration."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.cross_validation import GAIN_NOT_ESTABLISHED, NOT_ENOUGH_ROWS, PROCEDURE, TRAINING_ROWS
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
from trueodds.diagrams._style.formatting import capitalize_first
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import (
    NOT_ATTEMPTED,
    AuditData,
    AuditInterval,
    AuditRecalibration,
)
from trueodds.reports.text.diagram_tables import describe_bin, largest_deviation, read_bins
from trueodds.reports.text.formatting import covers_unit_interval, format_sample_size
from trueodds.reports.text.recalibration import (
    DOUBTFUL_DATA_TEXTS,
    IMPLAUSIBLE_DATA_TEXTS,
    describe_constant_prediction,
    describe_mixing,
    describe_unestablished_gain,
    format_gain_bound,
    format_gain_percent,
    format_log_loss,
)
from trueodds.reports.text.result_tables import standard_measure_label

# The beginning of the sentence by state; for others the state itself.
_WORDS = {"no evidence": "No evidence of miscalibration", "miscalibrated": "Miscalibrated"}


def judge(audit: AuditResult) -> AuditResult:
    """Return an audit with the state, the evidence and the sentences of its verdict, from its other sections."""
    state, spread = audit.state, audit.spread
    rejected = None if state == "not tested" else state not in ("no evidence", "inconclusive", "too few rows")
    reason = _describe_evidence(audit)
    audit = replace(audit, verdict=replace(audit.verdict, state=state, spread=spread, rejected=rejected, reason=reason))
    verdict = replace(audit.verdict, sentence=verdict_sentence(audit), details=verdict_details(audit))
    return replace(audit, verdict=verdict)


def _describe_evidence(audit: AuditResult) -> str:
    """Return the evidence behind the verdict in a few words: the family-wise p-value, or outcomes of probability 0."""
    verdict = audit.verdict
    if audit.state == "not tested":
        return f"the smallest possible family-wise p is {format_number(verdict.min_pvalue)}"
    if not verdict.is_test_significant and audit.data.true_class_zeros > 0:
        return "observed outcomes had predicted probability 0"
    sign = "<=" if verdict.is_test_significant else ">"
    return f"family-wise p {format_number(verdict.pvalue)} {sign} {format_number(verdict.alpha)}"


# Two lines of the page at a width of 1280 pixels, also in a wide font.
MAX_HEADLINE_LENGTH = 190


def verdict_sentence(audit: AuditResult) -> str:
    """Return the headline: what was found and how large it is, level before spread, and what to do.

    Data that look wrong come first. What is too long for two lines is left to `verdict_details`.
    """
    return _compose_headline(audit).text


def verdict_details(audit: AuditResult) -> str:
    """Return the sentences below the headline: the evidence, an example, and on what the recalibration rests.

    They begin with what the headline leaves out. The evidence are the test, the miscalibrated groups, and observed
    outcomes of predicted probability 0.
    """
    return _join(
        _compose_headline(audit).left_out,
        _evidence_sentence(audit),
        _example_sentence(audit),
        _describe_confirmation(audit.recalibration),
    )


class _Wording(NamedTuple):
    """A sentence of the headline, and the sentences that state what it leaves out."""

    text: str
    left_out: str = ""


def _compose_headline(audit: AuditResult) -> _Wording:
    """Return the headline that leaves out least among those of at most `MAX_HEADLINE_LENGTH` characters."""
    data = _implausible_data_sentence(audit)
    calibration = [_Wording(_calibration_sentence(audit)), *_shorter_calibration_sentences(audit)]
    recalibration = recalibration_wordings(audit.recalibration, audit.data)
    if data and recalibration[0].text:  # rows that look wrong are to be replaced first
        recalibration.append(_Wording("", recalibration[0].text))
    pairs = sorted(
        product(enumerate(calibration), enumerate(recalibration)), key=lambda pair: (pair[0][0] + pair[1][0], pair[0])
    )
    headlines = [
        _Wording(_join(data, first.text, second.text), _join(first.left_out, second.left_out))
        for (_, first), (_, second) in pairs
    ]
    fitting = (headline for headline in headlines if len(headline.text) <= MAX_HEADLINE_LENGTH)
    return next(fitting, min(headlines, key=lambda headline: len(headline.text)))


def _join(*sentences: str) -> str:
    return to_printable(" ".join(sentence for sentence in sentences if sentence))


def _calibration_sentence(audit: AuditResult) -> str:
    data, state, word = audit.data, audit.verdict.state, _opening_words(audit)
    error = (
        f"expected calibration error {format_error(None if audit.default_error is None else audit.default_error.value)}"
    )
    doubts = "" if audit.verdict.rejected else _describe_doubts(audit)
    if data.means is None:
        labels = _describe_miscalibrated_classes(audit, "label", "labels") if state == "miscalibrated" else ""
        part = f"; miscalibrated for {labels}" if labels else ""
        return f"{word}: {error}, averaged over the labels{part}{doubts}."
    means = _describe_means(data)
    if state == "reversed":
        return f"{word}{_format_measure(audit, 'calibration_slope')}: {_describe_reversal(data)}."
    if audit.level or audit.spread:
        return f"{_describe_level_and_spread(audit)}: {means}."
    if state != "miscalibrated" or not audit.verdict.is_test_significant:
        return f"{word}: {means}{doubts}."
    if not audit.is_default_error_established:
        return f"{word}: {means}; {_describe_miscalibrated_part(audit, 'miscalibrated ')}."
    part = _describe_example(audit)
    return f"{word}: {f'{part}; overall, ' if part else ''}{means}, {error}."


def _shorter_calibration_sentences(audit: AuditResult) -> list[_Wording]:
    """Return shorter forms of the sentence on the calibration, which leave out the means or an example."""
    word, state, data = _opening_words(audit), audit.verdict.state, audit.data
    if data.means is None:
        return []
    means = f"{capitalize_first(_describe_means(data))}."
    if state == "reversed":
        slope = _format_measure(audit, "calibration_slope")
        return [_Wording(f"{word}{slope}.", f"{capitalize_first(_describe_reversal(data))}.")]
    if audit.level or audit.spread:
        return [_Wording(f"{_describe_level_and_spread(audit)}.", means)]
    if state != "miscalibrated" or not audit.verdict.is_test_significant:
        doubts = [] if audit.verdict.rejected else _list_doubts(audit)
        return [
            _Wording(
                f"{word}: {', and '.join(doubts[:n])}.",
                _join(means, *(f"{capitalize_first(doubt)}." for doubt in doubts[n:])),
            )
            for n in range(len(doubts), 0, -1)
        ]
    if not audit.is_default_error_established:
        return [_Wording(f"{word}: {_describe_miscalibrated_part(audit)}.", means)]
    example = _describe_example(audit)
    if not example:
        return []
    error = format_error(None if audit.default_error is None else audit.default_error.value)
    text = f"{word}: {_describe_means(data)}, expected calibration error {error}."
    return [_Wording(text, f"Example: {example}.")]


def _opening_words(audit: AuditResult) -> str:
    state = audit.verdict.state
    if state == "too few rows":
        return f"Too few {'rows' if audit.data.clusters is None else 'clusters'} to judge"
    return _WORDS.get(state, state.capitalize())


def _describe_doubts(audit: AuditResult) -> str:
    """Return a clause on the facts that leave open a calibration that is not rejected; empty without any."""
    doubts = _list_doubts(audit)
    return f", but {', and '.join(doubts)}" if doubts else ""


def _list_doubts(audit: AuditResult) -> list[str]:
    return [clause for clause in (_describe_excluded_ideals(audit), _describe_unexamined_groups(audit)) if clause]


def _describe_excluded_ideals(audit: AuditResult) -> str:
    """Return a clause on the standard measures whose intervals exclude their ideal value; empty if there are none.

    The calibration intercept is left out beside the O:E ratio, because it states the same deviation.
    """
    names = list(audit.verdict.excludes_ideal)
    if "observed_to_expected" in names and "calibration_intercept" in names:
        names.remove("calibration_intercept")
    texts: list[str] = []
    for name in names:
        measure = audit.standard[name]
        assert measure.interval is not None
        min_digits = 2 if name in ("calibration_slope", "observed_to_expected", "calibration_intercept") else 3
        low, high = _format_excluding_limits(measure.interval, measure.ideal or 0.0, min_digits)
        level = f"{format_percent_in_text(measure.interval.level)} CI of the " if not texts else ""
        texts.append(f"{level}{standard_measure_label(name)}, {low} to {high}, excludes {measure.ideal:.0f}")
    return f"the {'; that of the '.join(texts)}" if texts else ""


def _format_excluding_limits(interval: AuditInterval, ideal: float, min_digits: int = 2) -> list[str]:
    """Format the limits of an interval that excludes a value with so many decimals that the texts exclude it, too."""
    for digits in range(min_digits, 8):
        low, high = (f"{x:.{digits}f}" for x in interval.limits)
        if not float(low) <= ideal <= float(high):
            break
    return [with_minus_signs(low), with_minus_signs(high)]


def _describe_unexamined_groups(audit: AuditResult) -> str:
    """Return a clause on the groups that were not examined, or could not be tested; empty if there are none."""
    if audit.has_untestable_groups:
        return "the groups could not be tested, for too few null draws or clusters"
    n_unexamined = len(audit.unexamined_groups)
    if not n_unexamined:
        return ""
    verb, n_groups = "was" if n_unexamined == 1 else "were", len(audit.groups) + n_unexamined
    return f"{n_unexamined:,} of {format_count(n_groups, 'group')} {verb} not examined"


def _describe_means(data: AuditData) -> str:
    predicted, observed = format_distinct_percents(*(data.means or (None, None)))
    if data.is_binary:
        return f"mean predicted {predicted}, {'share of votes' if data.votes else 'observed'} {observed}"
    # A share of votes is not an accuracy, because annotators disagree.
    agreement = f"{observed} of the votes agree" if data.votes else f"is right {observed} of the time"
    return f"predicts {predicted} on average, {agreement}"


def _describe_level_and_spread(audit: AuditResult) -> str:
    """Return the direction of the level and then that of the spread, each with its measure in parentheses.

    A spread of the same direction as the level of confidences is left out, because it adds nothing.
    """
    level, spread, ratio, text = audit.level, audit.spread, "", ""
    if level:
        ratio = _format_measure(audit, "observed_to_expected")
        text = _with_degree(level, audit.is_level_slight) + ratio
    slope = _format_measure(audit, "calibration_slope", with_level=not ratio)
    if spread and not (level and _SPREADS.get(level) == spread):
        spread = _with_degree(spread, audit.is_spread_slight)
        joint = "" if not level else " and " if audit.data.is_binary else ", yet as a whole "
        text += f"{joint}{spread}{slope}"
    return text[:1].upper() + text[1:]


# What a spread means for the level of confidences.
_SPREADS = {"overconfident": "too extreme", "underconfident": "too moderate"}


def _with_degree(words: str, is_slight: bool) -> str:
    """Return a direction with its degree, such as ``slightly too low`` for ``too low``."""
    return f"slightly {words}" if is_slight else words


def _format_measure(audit: AuditResult, name: str, *, with_level: bool = True) -> str:
    """Return a standard measure with its interval in parentheses, after a blank; empty without an interval.

    A second interval of the same sentence need not repeat its level.
    """
    measure = audit.standard.get(name)
    if measure is None or measure.value is None or measure.interval is None:
        return ""
    label = {"observed_to_expected": "O:E", "calibration_slope": "slope"}[name]
    low, high = _format_excluding_limits(measure.interval, measure.ideal or 0.0)
    level = f"{format_percent_in_text(measure.interval.level)} CI " if with_level else ""
    return f" ({label} {with_minus_signs(f'{measure.value:.2f}')}, {level}{low} to {high})"


def _describe_reversal(data: AuditData) -> str:
    if data.is_binary:
        return f"higher predicted probabilities go with lower {'shares of votes' if data.votes else 'event rates'}"
    if data.kind == "classes":
        return "classes with higher predicted probabilities are observed less often"
    return "higher confidences go with lower accuracy"


def _example_sentence(audit: AuditResult) -> str:
    """Return an example of the level or the spread that the headline states; empty without one.

    In other states the headline has the example itself, or leaves it out to `verdict_details`.
    """
    if audit.verdict.state == "reversed" or not (audit.level or audit.spread):
        return ""
    text = _describe_example(audit)
    return f"Example: {text}." if text else ""


def _describe_example(audit: AuditResult) -> str:
    """Return predicted and observed of the bin that contributes most to an error in the direction of the state.

    It is empty without a bin outside its consistency bar.
    """
    bins, state = audit.diagrams[0].table, audit.verdict.state
    if "outside" not in bins or not audit.is_default_error_established:
        return ""
    signs = dict.fromkeys(("too high", "overconfident", "too extreme"), 1)
    signs |= dict.fromkeys(("too low", "underconfident", "too moderate"), -1)
    rate = audit.data.event_rate
    # Of two classes, probabilities are too extreme if they are too far from the event rate; else they are too high.
    center, sign = -1.0 if rate is None or audit.level else rate, signs.get(state, 0)
    return describe_bin(largest_deviation(read_bins(bins), center, sign), audit.data)


def _describe_miscalibrated_part(audit: AuditResult, state: str = "") -> str:
    """Return a clause on the miscalibrated groups or classes, if the error of the default lens is not established.

    `state` is the word before the group or the classes, unless the sentence begins with it.
    """
    if worst := audit.established_worst_group:
        return f"{state}in group {worst.label} (expected calibration error {format_error(worst.error)})"
    if count := _count_miscalibrated_groups(audit):
        return count
    if classes := _describe_miscalibrated_classes(audit, "class", "classes"):
        return f"{state}for {classes}"
    if not audit.is_default_test_significant:
        return "other tests of the family reject calibration"
    return "calibration is rejected although the expected calibration error does not exceed its noise floor"


def _count_miscalibrated_groups(audit: AuditResult) -> str:
    """Return how many subgroups are miscalibrated, and whether their errors are known to differ; empty if none is."""
    n_miscalibrated, n_groups = len(audit.miscalibrated_groups), len(audit.groups)
    if not n_miscalibrated:
        return ""
    if n_miscalibrated == n_groups > 1:
        text = f"{'both' if n_miscalibrated == 2 else f'all {n_miscalibrated:,}'} groups are miscalibrated"
    else:
        text = f"{n_miscalibrated:,} of {n_groups:,} groups {'is' if n_miscalibrated == 1 else 'are'} miscalibrated"
    return f"{text}, and their errors do not differ significantly" if audit.group_errors_do_not_differ else text


def _describe_miscalibrated_classes(audit: AuditResult, unit: str, units: str) -> str:
    """Return the classes or labels for which calibration is rejected: their number, and the one of the largest error.

    It is empty if there are none. The errors are those of the table of classes.
    """
    views, n_tested = audit.rejected_classes, len(audit.class_tests)
    if not views:
        return ""
    errors = {
        name: value for measure in audit.measures if measure.estimator == "ece" for name, value in measure.parts.items()
    }
    text = f"{unit} {max(views, key=lambda name: errors.get(name) or 0.0).removeprefix('class:')}"
    if len(views) > 1:
        count = f"all {n_tested:,}" if len(views) == n_tested else f"{len(views):,} of {n_tested:,}"
        text = f"{count} {units}, most for {text}"
    return text


def _describe_groups(audit: AuditResult) -> str:
    """Return a clause on the miscalibrated subgroups; empty without any, or if the first sentence is on them.

    It names the worst subgroup if it is established.
    """
    data, worst = audit.data, audit.established_worst_group
    is_named_already = (
        audit.verdict.state == "miscalibrated" and not audit.is_default_error_established and data.means is not None
    )
    if is_named_already or not audit.miscalibrated_groups:
        return ""
    if worst is None:
        return _count_miscalibrated_groups(audit)
    error = f"ECE {format_error(worst.error)}"
    if worst.mean_prob is None or worst.event_rate is None:
        return f"worst group: {worst.label} ({error})"
    predicted_percent, observed_percent = format_distinct_percents(worst.mean_prob, worst.event_rate)
    observed = "share of votes" if data.votes else "observed" if data.is_binary else "accuracy"
    predicted = "mean predicted" if data.is_binary else "mean confidence"
    return f"worst group: {worst.label} ({predicted} {predicted_percent}, {observed} {observed_percent}, {error})"


def _describe_zero_probabilities(data: AuditData) -> str:
    """Return a clause on observed outcomes of predicted probability 0; empty without any.

    The two outcomes of a confidence are that the answer is correct, and that it is wrong.
    """
    n_impossible = data.true_class_zeros
    if not n_impossible:
        return ""
    if data.kind == "confidence":
        verb = "was" if n_impossible == 1 else "were"
        return f"{format_count(n_impossible, 'answer')} {verb} wrong at confidence 1, or correct at confidence 0"
    return f"{format_count(n_impossible, 'outcome')} occurred although the predicted probability was 0"


def _evidence_sentence(audit: AuditResult) -> str:
    """Return the sentence on the family-wise test, the miscalibrated groups, and predicted probabilities of 0."""
    data, verdict = audit.data, audit.verdict
    if verdict.state == "not tested":
        min_pvalue_text = f"the smallest possible family-wise p-value is {format_number(verdict.min_pvalue)}"
        # A smallest p-value above that of the number of null draws comes from the few possible outcomes of few rows.
        n_draws, attainable = (audit.settings or {})["resamples"], audit.default_test and audit.default_test.min_pvalue
        if attainable is not None and attainable > 2 / (1 + n_draws):
            units = "rows" if data.clusters is None else "clusters"
            return f"Too few {units} for a test: with {format_sample_size(data)}, {min_pvalue_text}."
        return f"Too few resamples for a test: with {n_draws:,} resamples, {min_pvalue_text}."
    p = f"family-wise {format_pvalue_clause(verdict.pvalue, verdict.min_pvalue)}"
    zeros = _describe_zero_probabilities(data)
    if verdict.is_test_significant:
        clauses = (f"Calibration rejected ({p})", _describe_groups(audit), _describe_unexamined_groups(audit), zeros)
        return f"{'; '.join(clause for clause in clauses if clause)}."
    if zeros:
        return f"{zeros}; apart from that, calibration is not rejected ({p})."
    interval = None if audit.default_error is None else audit.default_error.interval
    return f"Calibration not rejected ({p}){_describe_error_interval(interval, data)}."


def _describe_error_interval(interval: AuditInterval | None, data: AuditData) -> str:
    """Return the interval of the calibration error as the end of a sentence; empty if there is none."""
    if interval is None:
        return ""
    if covers_unit_interval(interval.low, interval.high):
        return f"; {format_sample_size(data)} are too few to bound the expected calibration error"
    limits = format_error_range(interval.low, interval.high)
    return f"; {format_percent_in_text(interval.level)} confidence interval of the expected calibration error {limits}"


def _implausible_data_sentence(audit: AuditResult) -> str:
    """Return sentences on data that are implausible; empty for others.

    Of a tally only a sample of rows, that of the recalibration, may be recognized as implausible.
    """
    notes = [*audit.notes, *(() if audit.recalibration is None else audit.recalibration.notes)]
    notes += [note for measure in audit.measures if measure.estimator == "ece" for note in measure.notes]
    codes = {note.code for note in notes}
    if "TN164" in codes:  # which states the cause of TN163
        codes.discard("TN163")
    return " ".join(text for code, text in (IMPLAUSIBLE_DATA_TEXTS | DOUBTFUL_DATA_TEXTS).items() if code in codes)


def recalibration_wordings(recalibration: AuditRecalibration | None, data: AuditData) -> list[_Wording]:
    """Return the sentence on the outcome of the recalibration, empty if none was attempted, and shorter forms."""
    if recalibration is None or recalibration.status == NOT_ATTEMPTED:
        return [_Wording("")]
    if recalibration.confirmed:
        return _gain_wordings(recalibration, has_constant=bool(describe_constant_prediction(recalibration, data)))
    sentence, advice = {
        TRAINING_ROWS: (
            "no recalibration can be judged on rows that the model was trained on: pass held-out rows",
            "Pass held-out rows.",
        ),
        NOT_ENOUGH_ROWS: (f"no recalibration could be confirmed with {format_count(data.n, 'row')}", ""),
    }.get(
        recalibration.status,
        ("no recalibration improves the held-out log loss significantly", "No recalibration is advised."),
    )
    if mixing := describe_mixing(recalibration):
        sentence = f"{mixing}; beyond that, {sentence}"
        advice = f"{recalibration.map_text}; no further recalibration is advised." if advice else ""
    sentence = f"{capitalize_first(sentence)}."
    return [_Wording(sentence), *([_Wording(capitalize_first(advice), sentence)] if advice else [])]


def _gain_wordings(recalibration: AuditRecalibration, *, has_constant: bool) -> list[_Wording]:
    """Return the effect of the recalibration on the held-out log loss, and shorter forms of it.

    There is no percentage if the log loss was infinite. If the folds chose different methods, the gain is that of the
    whole procedure. `has_constant` tells whether the result is hardly better than a constant prediction.
    """
    name = CALIBRATORS.title(recalibration.chosen)
    if recalibration.chosen == "temperature":
        name = f"{name} ({recalibration.map_text})"
    name_at_start = capitalize_first(name)
    constant = "; the result is hardly better than a constant prediction" if has_constant else ""
    own_sentence = "The result is hardly better than a constant prediction." if has_constant else ""
    if recalibration.status == GAIN_NOT_ESTABLISHED:
        gain = describe_unestablished_gain(recalibration)
        wordings = [
            _Wording(f"{name_at_start}: {gain}{constant}."),
            _Wording(f"{name_at_start}: {gain}.", own_sentence),
            _Wording(f"{name_at_start}: {GAIN_NOT_ESTABLISHED}.", _join(f"{name_at_start}: {gain}.", own_sentence)),
        ]
        return list(dict.fromkeys(wordings))
    is_of_procedure = recalibration.gain_of == PROCEDURE
    subject = f"Recalibration, here by {name}," if is_of_procedure else name_at_start
    bound = format_gain_bound(recalibration)
    if recalibration.gain_percent is None:
        after = format_log_loss(recalibration, "after")
        gain = f"from infinite to {after} ({bound} compared with mixing in the uniform distribution alone)"
        meaning = f"The gain is {bound} compared with mixing in the uniform distribution alone."
        return [
            _Wording(f"{subject} reduces the log loss {gain}{constant}."),
            _Wording(f"{subject} reduces the log loss from infinite to {after}.", _join(meaning, own_sentence)),
        ]
    gain = f"by {format_gain_percent(recalibration.gain_percent)}"
    amount, _, confidence = bound.partition(" with ")
    wordings = [_Wording(f"{subject} reduces the log loss {gain} ({bound}){constant}.")]
    if confidence:
        meaning = f"The lower bound of this gain holds with {confidence}."
        short_gain = f"reduces the log loss {gain} ({amount})"
        wordings.append(_Wording(f"{subject} {short_gain}{constant}.", meaning))
        wordings.append(_Wording(f"{subject} {short_gain}.", _join(meaning, own_sentence)))
        if is_of_procedure:
            procedure = f"The recalibration is here by {name}."
            wordings.append(_Wording(f"Recalibration {short_gain}.", _join(procedure, meaning, own_sentence)))
    return list(dict.fromkeys(wordings))


def _describe_confirmation(recalibration: AuditRecalibration | None) -> str:
    """Return what the held-out rows confirm, and under which condition; empty if they confirm nothing."""
    if recalibration is None or not recalibration.confirmed:
        return ""
    if recalibration.status == GAIN_NOT_ESTABLISHED:
        subject = "The miscalibration that this recalibration corrects, but not its gain, is"
    else:
        subject = "Recalibration"
    return f"{subject} confirmed by cross-fitting; valid only if the model was not trained on these rows."
