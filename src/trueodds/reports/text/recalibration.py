"""Texts and tables on the recalibration of an audit: its candidates, the gain in log loss and changed classes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trueodds.calibrators import CALIBRATORS
from trueodds.calibrators.cross_validation import (
    GAIN_NOT_ESTABLISHED,
    METHOD,
    PROCEDURE,
    TRAINING_ROWS,
)
from trueodds.core.formatting import (
    format_column,
    format_count,
    format_integer,
    format_number,
    format_percent_in_text,
    format_pvalue,
    format_range,
    format_share,
    with_minus_signs,
)
from trueodds.core.table import Column, Table
from trueodds.reports.audit_result import AuditResult
from trueodds.reports.audit_sections import (
    NOT_ATTEMPTED,
    AuditCandidate,
    AuditData,
    AuditRecalibration,
)
from trueodds.reports.text.formatting import format_value

LOG_LOSS_TOLERANCE = 1e-9  # nats per row by which the log losses of equivalent candidates may differ by rounding
# Predictions are called hardly better than a constant if their log loss is at least this share of that of the constant.
MIN_RATIO_TO_CONSTANT_LOSS = 0.995

IMPLAUSIBLE_DATA_TEXTS = {  # notes on data that look wrong, so that no recalibration is attempted
    "TN108": "The logits seem to be probabilities, which must not be read as logits.",
    "TN142": "The columns of the classes seem to be in a different order than the labels.",
    "TN149": "These seem to be predicted labels, not probabilities.",
    "TN186": "The outcomes equal the predicted classes: they may be predictions, or rows that the model was fitted to.",
    "TN187": "The confidences seem to be probabilities of one class, not of the predicted class.",
}
DOUBTFUL_DATA_TEXTS = {  # other notes on data with which the verdict begins
    "TN193": "The scores do not look like log odds, so only their ranks have a meaning.",
    "TN144": "Rows seem to be copies of other rows; this verdict is as if every row were new.",
    "TN163": "The model may have been fitted to these rows; then nothing here holds for new ones.",
    "TN164": "The calibrator was fitted to these rows, so errors are smaller than on new ones.",
    "TN167": "Groups seem to be formed by the outcome; errors within them do not measure calibration.",
}


def calibrator_with_parameters(recalibration: AuditRecalibration) -> str:
    """Return the chosen calibrator with its parameters."""
    map_text, name = recalibration.map_text, CALIBRATORS.title(recalibration.chosen)
    return f"{name}, {map_text}" if map_text and map_text != recalibration.chosen else name


def format_log_loss(recalibration: AuditRecalibration, time: str) -> str:
    """Format the log loss `before` or `after` the recalibration, as in the table of scores."""
    loss = recalibration.log_loss_before if time == "before" else recalibration.log_loss_after
    return "infinite" if loss is None and recalibration.candidates else format_number(loss)


def format_gain_bound(recalibration: AuditRecalibration) -> str:
    """Format the lower confidence limit of the gain in words; empty if it is not positive.

    >>> format_gain_bound(AuditRecalibration(gain_low=0.05, gain_low_percent=12.34, alpha=0.05))
    'at least 12.3 % with 95 % confidence'
    """
    low, percent = recalibration.gain_low, recalibration.gain_low_percent
    if low is None or low <= 0:
        return ""
    amount = f"{format_number(low)} nats per row" if percent is None else format_gain_percent(percent)
    confidence = (
        "" if recalibration.alpha is None else f" with {format_percent_in_text(1 - recalibration.alpha)} confidence"
    )
    return f"at least {amount}{confidence}"


def format_gain_percent(percent: float) -> str:
    """Format a percentage of the log loss, with the same digits wherever it occurs.

    >>> format_gain_percent(78.0), format_gain_percent(0.984), format_gain_percent(0.0312)
    ('78.0 %', '1.0 %', '0.031 %')
    """
    return format_share(percent / 100)


def describe_mixing(recalibration: AuditRecalibration) -> str:
    """Return the effect of mixing on original probabilities of infinite log loss; empty if they were not mixed."""
    if not recalibration.is_mixed_only:
        return ""
    loss = f"log loss {format_number(recalibration.log_loss_after)} instead of infinite"
    return f"{recalibration.map_text}, the original probabilities have {loss}"


def describe_unestablished_gain(recalibration: AuditRecalibration) -> str:
    """Return the estimated gain with its confidence interval, which includes 0.

    >>> gain = AuditRecalibration(gain=0.0069, gain_low=-2.27e-05, gain_high=0.0139, alpha=0.05)
    >>> describe_unestablished_gain(gain)
    'gain not established (0.0069 nats per row, 90 % CI −0.00002 to 0.01390)'
    """
    low, high, alpha = recalibration.gain_low, recalibration.gain_high, recalibration.alpha
    if low is None or high is None or alpha is None:
        return GAIN_NOT_ESTABLISHED
    estimate, limits = format_number(recalibration.gain), with_minus_signs(format_range(low, high))
    level = format_percent_in_text(1 - 2 * alpha)
    return f"{GAIN_NOT_ESTABLISHED} ({with_minus_signs(estimate)} nats per row, {level} CI {limits})"


def describe_constant_prediction(recalibration: AuditRecalibration, data: AuditData) -> str:
    """Return the constant prediction that is about as good as the recalibrated predictions; empty if they are better.

    For confidences alone the constant is the accuracy on the held-out rows, otherwise equal probabilities.
    """
    after, accuracy = recalibration.log_loss_after, recalibration.accuracy_before
    if data.kind != "confidence":
        constant_loss, constant_text = math.log(data.k), "equal probabilities for every row have"
    elif accuracy is not None:
        constant_loss, constant_text = _entropy(accuracy), f"predicting {format_share(accuracy)} for every row has"
    else:
        return ""
    if after is None or after < MIN_RATIO_TO_CONSTANT_LOSS * constant_loss:
        return ""
    return f"{constant_text} log loss {format_number(round(constant_loss, 4))}"


def _entropy(q: float) -> float:
    """Return the entropy of an event of probability q in nats: the log loss of predicting q for every row."""
    return -sum(x * math.log(x) for x in (q, 1 - q) if x > 0)


# Between these event rates of two classes, predictions are likely to be compared with the threshold 0.5.
_EVENT_RATES_OF_THRESHOLD = (0.2, 0.8)


def describe_changed_classes(recalibration: AuditRecalibration, data: AuditData, *, only_relevant: bool = False) -> str:
    """Return the effect of the recalibration on the predicted classes; empty for confidences alone.

    With `only_relevant` it is also empty for rare or frequent events, for which a threshold of 0.5 is hardly used.
    """
    n_changed, (low, high) = recalibration.label_flips, _EVENT_RATES_OF_THRESHOLD
    if data.kind == "confidence" or n_changed is None:
        return ""
    if data.event_rate is not None:
        if only_relevant and not low <= data.event_rate <= high:
            return ""
        number = format_count(n_changed, "prediction") if n_changed else "no prediction"
        return f"{number} {'cross' if n_changed > 1 else 'crosses'} the 0.5 threshold"
    text = f"the predicted class changes in {format_count(n_changed, 'row') if n_changed else 'no row'}"
    if recalibration.accuracy_before is None or recalibration.accuracy_after is None:
        return text
    label = "the vote share of the predicted class" if data.votes else "accuracy"
    old, new = format_share(recalibration.accuracy_before), format_share(recalibration.accuracy_after)
    return f"{text}, {label} {f'stays {old}' if old == new else f'changes from {old} to {new} (cross-fitted)'}"


def candidate_table(audit: AuditResult) -> Table:
    """Return the table of the chosen and the compared candidates; its introduction names those dropped early."""
    recalibration = audit.recalibration or AuditRecalibration()
    entries = [candidate for candidate in recalibration.candidates if candidate.chosen or not candidate.dropped]
    has_classes = audit.data.kind != "confidence"  # else a row has no predicted class that could change
    parameters = ["–" if entry.parameters is None else format_value(entry.parameters) for entry in entries]
    columns = (
        Column("method", [entry.method for entry in entries], "text"),
        Column("parameters", parameters, "text", is_detail=True),
        Column("log loss", [entry.log_loss for entry in entries]),
        Column("brier", [entry.brier for entry in entries], is_detail=True),
        Column("difference", [entry.difference for entry in entries]),
        Column("standard error", [entry.se for entry in entries]),
        Column("changed classes", [entry.label_flips if has_classes else None for entry in entries], "count"),
        Column(
            "accuracy change",
            [_format_signed(entry.accuracy_change if has_classes else None) for entry in entries],
            is_detail=True,
        ),
        Column("", [_candidate_status(entry, recalibration) for entry in entries], "text"),
    )
    intro = (
        "Cross-validated scores: each candidate is evaluated on rows that it was not fitted to. Difference: mean log"
        f" loss minus that of the best candidate, with its standard error. {_explain_choice(entries)}"
    )
    original_loss = next((entry.log_loss for entry in entries if entry.method == "identity"), None)
    if original_loss is not None and format_number(original_loss) != format_log_loss(recalibration, "before"):
        n_rows = recalibration.rows or {}
        is_of_sample = n_rows.get("confirm", 0) < n_rows.get("fit", 0)
        reason = (
            "This table is that of the rows on which the candidates were compared (TN539)"
            if is_of_sample
            else "Original probabilities of exactly 0 are raised in this table (TN508)"
        )
        intro += f" {reason}, so the log loss of the original ones (identity) differs from the reported one."
    if has_classes:
        intro += (
            " Changed classes: rows whose most probable class changes in the cross-validated predictions; the number"
            " for the map fitted to all rows can differ."
        )
    dropped = [candidate for candidate in recalibration.candidates if candidate.dropped and not candidate.chosen]
    if dropped:
        losses = format_column([candidate.log_loss for candidate in dropped])
        names = ", ".join(f"{candidate.method} ({loss})" for candidate, loss in zip(dropped, losses, strict=True))
        intro += (
            " Dropped early, as clearly worse than the best, or more complex than the chosen one and no better, with"
            f" the log loss of the first fits, to fewer rows: {names}."
        )
    return Table("Candidate calibrators", columns, intro).without_empty_columns()


def _candidate_status(candidate: AuditCandidate, recalibration: AuditRecalibration) -> str:
    if not candidate.chosen:
        return ""
    if recalibration.status == TRAINING_ROWS:
        return "chosen, not judged"
    return "chosen" if recalibration.confirmed or candidate.method == "identity" else "chosen, not confirmed"


_ONE_STANDARD_ERROR_RULE = (
    "the simplest candidate whose log loss is within one standard error of the best, and that has at least half of its"
    " gain"
)


def _explain_choice(entries: Sequence[AuditCandidate]) -> str:
    """Return why a candidate was chosen: by the one-standard-error rule, in advance, or because no other is better."""
    chosen_entry = next((entry for entry in entries if entry.chosen), None)
    if chosen_entry is not None and chosen_entry.method == "identity":
        return "Chosen: the original probabilities, because no gain was found on held-out rows."
    if chosen_entry is None or chosen_entry.method == _select_by_one_standard_error(entries):
        return f"Chosen: {_ONE_STANDARD_ERROR_RULE}."
    name = CALIBRATORS.title(chosen_entry.method)
    return (
        f"Chosen: {name}, which was specified in advance and needs fewer rows to be confirmed than"
        f" {_ONE_STANDARD_ERROR_RULE}."
    )


def _select_by_one_standard_error(entries: Sequence[AuditCandidate]) -> str | None:
    """Return the candidate that the one-standard-error rule selects [1]_; None if none is better than the identity.

    `entries` are the candidates in the order of complexity.

    References
    ----------
    .. [1] Breiman et al. (1984). Classification and Regression Trees, section 3.4.3.
    """
    gain = next((candidate.difference for candidate in entries if candidate.method == "identity"), None)
    for candidate in entries:
        difference, se = candidate.difference, candidate.se
        if candidate.method == "identity" or difference is None or se is None or gain is None:
            continue
        if difference <= min(se, gain / 2) + LOG_LOSS_TOLERANCE:
            return str(candidate.method)
    return None


def _format_signed(x: float | None) -> str:
    """Format a change with its sign and four decimals; 0 if it is smaller than these show."""
    if x is None:
        return "–"
    return "0" if abs(x) < 5e-5 else f"{x:+.4f}"


# Whose gain was estimated, in words.
_GAIN_SUBJECTS = {
    METHOD: "the chosen method",
    PROCEDURE: "the whole selection procedure; the folds chose different methods",
}


def recalibration_table(audit: AuditResult) -> Table:
    """Return the table of the chosen calibrator, evaluated on rows that were used neither to fit nor to choose it."""
    recalibration = audit.recalibration
    if recalibration is None:
        return Table.from_entries("Recalibration", ())
    chosen, applied = recalibration.chosen, recalibration.applied
    entries = [
        ("chosen", chosen or "–"),
        ("parameters", (recalibration.map_text if applied == chosen else "") or "–"),
        ("outcome", "–" if recalibration.status == NOT_ATTEMPTED else recalibration.status),
        ("applied", applied or "–"),
        ("log loss before", format_log_loss(recalibration, "before")),
        ("log loss after", format_log_loss(recalibration, "after")),
        *([] if recalibration.status == TRAINING_ROWS else _gain_entries(recalibration)),
        *_accuracy_entries(recalibration, audit.data),
        *((f"rows used to {name}", format_integer(n)) for name, n in (recalibration.rows or {}).items()),
        ("share of the uniform distribution in the mixture", format_number(recalibration.mixing)),
        ("minimum probability in a logarithm", format_number(recalibration.min_prob)),
    ]
    return Table.from_entries("Recalibration", [entry for entry in entries if entry[1] != "–"])


def _gain_entries(recalibration: AuditRecalibration) -> list[tuple[str, str]]:
    limit = "confidence limit"
    if recalibration.alpha is not None:
        limit = f"{format_percent_in_text(1 - recalibration.alpha)} confidence limit"
    gain, gain_percent = format_number(recalibration.gain), recalibration.gain_percent
    detectable = format_number(recalibration.detectable_gain)
    return [
        ("gain", gain if gain_percent is None else f"{gain} ({format_gain_percent(gain_percent)})"),
        ("estimated for", _GAIN_SUBJECTS.get(recalibration.gain_of or "", "–")),
        ("standard error of the gain", format_number(recalibration.gain_se)),
        (f"lower {limit} of the gain", format_number(recalibration.gain_low)),
        (f"upper {limit} of the gain", format_number(recalibration.gain_high)),
        ("p-value of the null hypothesis that the predictions are calibrated", format_pvalue(recalibration.pvalue)),
        ("rows required to confirm this gain with 80 % power", format_integer(recalibration.required_rows)),
        ("smallest gain detectable with 80 % power", detectable),
    ]


def _accuracy_entries(recalibration: AuditRecalibration, data: AuditData) -> list[tuple[str, str]]:
    """Return entries on the accuracy before and after, and on changed classes; a confidence has no predicted class."""
    if data.kind == "confidence":
        return [("accuracy, changed classes", "not applicable: a confidence alone has no predicted class")]
    # The mean outcome of the predicted class is with votes no accuracy, because annotators disagree.
    label = "vote share of the predicted class" if data.votes else "accuracy"
    return [
        (f"{label} before", format_share(recalibration.accuracy_before)),
        (f"{label} after", format_share(recalibration.accuracy_after)),
        (
            "predictions that cross the 0.5 threshold" if data.is_binary else "rows whose predicted class changes",
            format_integer(recalibration.label_flips),
        ),
    ]
