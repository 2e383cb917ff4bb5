"""Texts and tables on the recalibration of an audit: its candidates, the gain in log loss and changed classes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from trueodds.calibrators import CALIBRATORS
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
from trueodds.reports.text.formatting import format_value, is_binary
from trueodds.reports.text.text_table import LABEL_AND_TEXT, AuditDict, TableColumn, TextTable

LOG_LOSS_TOLERANCE = 1e-9  # nats per row by which the log losses of equivalent candidates may differ by rounding
# Predictions are called hardly better than a constant if their log loss is at least this share of that of the constant.
MIN_RATIO_TO_CONSTANT_LOSS = 0.995

INSUFFICIENT_ROWS = "too few rows"  # the outcome of a recalibration that more rows may confirm
TRAINING_ROWS = "not judged"  # the outcome of one on rows that the model was probably trained on
# What the estimated gain belongs to: the chosen method, or the procedure of choosing if the folds chose different ones.
GAIN_OF_METHOD, GAIN_OF_PROCEDURE = "method", "procedure"

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


def calibrator_with_parameters(recalibration: Mapping[str, Any]) -> str:
    """Return the chosen calibrator with its parameters."""
    summary = recalibration.get("summary") or ""
    name = CALIBRATORS.title(recalibration["chosen"])
    return f"{name}, {summary}" if summary and summary != recalibration["chosen"] else name


def is_fitted_to_sample(recalibration: Mapping[str, Any], data: Mapping[str, Any]) -> bool:
    """Return whether the calibrators were fitted to a random sample of the rows, as is done if rows were tallied.

    >>> is_fitted_to_sample({"rows": {"fit": 500}}, {"n": 3000}), is_fitted_to_sample({}, {"n": 3000})
    (True, False)
    """
    return bool((recalibration.get("rows") or {}).get("fit", data["n"]) < data["n"])


def format_log_loss(recalibration: Mapping[str, Any], time: str) -> str:
    """Format the log loss `before` or `after` the recalibration, as in the table of scores.

    >>> format_log_loss({"candidates": [0], "log_loss_before": None}, "before")
    'infinite'
    >>> format_log_loss({"log_loss_after": 0.5}, "after")
    '0.5'
    """
    loss = recalibration.get(f"log_loss_{time}")
    return "infinite" if loss is None and recalibration.get("candidates") else format_number(loss)


def format_gain_bound(recalibration: Mapping[str, Any]) -> str:
    """Format the lower confidence limit of the gain in words; empty if it is not positive.

    >>> format_gain_bound({"gain_low": 0.05, "gain_low_percent": 12.34, "alpha": 0.05})
    'at least 12.3 % with 95 % confidence'
    >>> format_gain_bound({"gain_low": -0.1})
    ''
    """
    low, percent = recalibration.get("gain_low"), recalibration.get("gain_low_percent")
    if low is None or low <= 0:
        return ""
    amount = f"{format_number(low)} nats per row" if percent is None else format_gain_percent(percent)
    confidence = (
        ""
        if recalibration.get("alpha") is None
        else f" with {format_percent_in_text(1 - recalibration['alpha'])} confidence"
    )
    return f"at least {amount}{confidence}"


def format_gain_percent(percent: float) -> str:
    """Format a percentage of the log loss, with the same digits wherever it occurs.

    >>> format_gain_percent(78.0), format_gain_percent(0.984), format_gain_percent(0.0312)
    ('78.0 %', '1.0 %', '0.031 %')
    """
    return format_share(percent / 100)


def describe_mixing(recalibration: Mapping[str, Any]) -> str:
    """Return the effect of mixing on original probabilities of infinite log loss; empty if they were not mixed.

    >>> mixed = {"candidates": [0], "summary": "mixed with 0.0033 of the uniform distribution", "log_loss_after": 0.42}
    >>> describe_mixing(mixed)
    'mixed with 0.0033 of the uniform distribution, the original probabilities have log loss 0.42 instead of infinite'
    """
    before, after = (recalibration.get(f"log_loss_{time}") for time in ("before", "after"))
    if recalibration.get("confirmed") or before is not None or after is None:
        return ""
    loss = f"log loss {format_number(after)} instead of infinite"
    return f"{recalibration['summary']}, the original probabilities have {loss}"


def describe_unconfirmed_gain(recalibration: Mapping[str, Any]) -> str:
    """Return the estimated gain with its confidence interval, which includes 0.

    >>> gain = {"gain_percent": 0.52, "gain_low": -0.0005, "gain_high": 0.0139, "alpha": 0.05}
    >>> describe_unconfirmed_gain(gain)
    '0.5 % lower, 90 % confidence interval −0.0005 to 0.0139 nats per row'
    >>> describe_unconfirmed_gain({**gain, "gain_low": -2.27e-05})
    '0.5 % lower, 90 % confidence interval −0.00002 to 0.01390 nats per row'
    """
    percent, low, high = (recalibration.get(name) for name in ("gain_percent", "gain_low", "gain_high"))
    estimate = "" if percent is None else f"{format_gain_percent(abs(percent))} {'lower' if percent >= 0 else 'higher'}"
    if low is None or high is None or recalibration.get("alpha") is None:
        return estimate or "of uncertain size"
    level = format_percent_in_text(1 - 2 * recalibration["alpha"])
    limits = with_minus_signs(format_range(low, high))
    return f"{estimate}{', ' if estimate else ''}{level} confidence interval {limits} nats per row"


def describe_constant_prediction(recalibration: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return the constant prediction that is about as good as the recalibrated predictions; empty if they are better.

    For confidences alone the constant is the accuracy on the held-out rows, otherwise equal probabilities.

    >>> confidences = {"kind": "confidence", "k": 2}
    >>> describe_constant_prediction({"log_loss_after": 0.6823, "accuracy_before": 0.576}, confidences)
    'predicting 57.6 % for every row has log loss 0.6816'
    >>> describe_constant_prediction({"log_loss_after": 0.5, "accuracy_before": 0.576}, confidences)
    ''
    """
    after, accuracy = recalibration.get("log_loss_after"), recalibration.get("accuracy_before")
    if data["kind"] != "confidence":
        constant_loss, constant_text = math.log(data["k"]), "equal probabilities for every row have"
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


def describe_changed_classes(
    recalibration: Mapping[str, Any], data: Mapping[str, Any], *, only_relevant: bool = False
) -> str:
    """Return the effect of the recalibration on the predicted classes; empty for confidences alone.

    With `only_relevant` it is also empty for rare or frequent events, for which a threshold of 0.5 is hardly used.

    >>> changed = {"label_flips": 2, "accuracy_before": 0.5}
    >>> describe_changed_classes({**changed, "accuracy_after": 0.5}, {"kind": "classes"})
    'the predicted class changes in 2 rows, accuracy stays 50.0 %'
    >>> describe_changed_classes({**changed, "accuracy_after": 0.51}, {"kind": "classes"})
    'the predicted class changes in 2 rows, accuracy changes from 50.0 % to 51.0 % (cross-fitted)'
    >>> describe_changed_classes({"label_flips": 0}, {"kind": "classes", "event_rate": 0.5})
    'no prediction crosses the 0.5 threshold'
    >>> describe_changed_classes({"label_flips": 13}, {"kind": "classes", "event_rate": 0.05}, only_relevant=True)
    ''
    """
    if data["kind"] == "confidence" or recalibration.get("label_flips") is None:
        return ""
    low, high = _EVENT_RATES_OF_THRESHOLD
    if only_relevant and is_binary(data) and not low <= data["event_rate"] <= high:
        return ""
    n_changed = recalibration["label_flips"]
    before, after = recalibration.get("accuracy_before"), recalibration.get("accuracy_after")
    if is_binary(data):
        number = format_count(n_changed, "prediction") if n_changed else "no prediction"
        return f"{number} {'cross' if n_changed > 1 else 'crosses'} the 0.5 threshold"
    text = f"the predicted class changes in {format_count(n_changed, 'row') if n_changed else 'no row'}"
    if before is None or after is None:
        return text
    label = "the vote share of the predicted class" if data.get("votes") else "accuracy"
    old, new = format_share(before), format_share(after)
    return f"{text}, {label} {f'stays {old}' if old == new else f'changes from {old} to {new} (cross-fitted)'}"


def accuracy_label(data: AuditDict) -> str:
    """Return how the mean outcome of the predicted class is called: accuracy, or with votes their share."""
    return "vote share of the predicted class" if data.get("votes") else "accuracy"


def candidate_table(audit: AuditDict) -> TextTable:
    """Return the table of the candidate calibrators with their cross-validated scores."""
    recalibration = audit.get("recalibration") or {"candidates": ()}
    entries = recalibration["candidates"]
    has_classes = audit["data"]["kind"] != "confidence"  # else a row has no predicted class that could change
    columns = (
        TableColumn("method", numeric=False),
        TableColumn("parameters", numeric=False, detail=True),
        TableColumn("log loss"),
        TableColumn("brier", detail=True),
        TableColumn("difference"),
        TableColumn("standard error"),
        TableColumn("changed classes"),
        TableColumn("accuracy change", detail=True),
        TableColumn("", numeric=False),
    )
    rows = zip(
        (candidate["method"] for candidate in entries),
        (
            "–" if candidate.get("parameters") is None else format_value(candidate["parameters"])
            for candidate in entries
        ),
        *(
            format_column([candidate.get(name) for candidate in entries])
            for name in ("log_loss", "brier", "difference", "se")
        ),
        (format_integer(candidate.get("label_flips") if has_classes else None) for candidate in entries),
        (_format_signed(candidate.get("accuracy_change") if has_classes else None) for candidate in entries),
        (_candidate_status(candidate, recalibration) for candidate in entries),
        strict=True,
    )
    intro = (
        "Cross-validated scores: each candidate is evaluated on rows that it was not fitted to. Difference: mean log"
        f" loss minus that of the best candidate, with its standard error. {_explain_choice(entries)}"
    )
    original_loss = next((entry["log_loss"] for entry in entries if entry["method"] == "identity"), None)
    if original_loss is not None and format_number(original_loss) != format_log_loss(recalibration, "before"):
        n_rows = recalibration.get("rows") or {}
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
    if any(candidate.get("dropped") for candidate in entries):
        intro += (
            " A dash: dropped early, because the candidate was clearly worse than the best, or more complex than the"
            " chosen one and no better; its log loss is that of the first fits, to fewer rows."
        )
    return TextTable("Candidate calibrators", columns, tuple(rows), intro).without_empty_columns()


def _candidate_status(candidate: Mapping[str, Any], recalibration: AuditDict) -> str:
    """Return whether a candidate was chosen and confirmed, or dropped early; empty for the others."""
    if not candidate.get("chosen"):
        return "dropped" if candidate.get("dropped") else ""
    if recalibration.get("outcome") == TRAINING_ROWS:
        return "chosen, not judged"
    return "chosen" if recalibration.get("confirmed") or candidate["method"] == "identity" else "chosen, not confirmed"


_ONE_STANDARD_ERROR_RULE = (
    "the simplest candidate whose log loss is within one standard error of the best, and that has at least half of its"
    " gain"
)


def _explain_choice(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return why a candidate was chosen: by the one-standard-error rule, in advance, or because no other is better."""
    chosen_entry = next((entry for entry in entries if entry.get("chosen")), None)
    if chosen_entry is not None and chosen_entry["method"] == "identity":
        return "Chosen: the original probabilities, because no gain was found on held-out rows."
    if chosen_entry is None or chosen_entry["method"] == _select_by_one_standard_error(entries):
        return f"Chosen: {_ONE_STANDARD_ERROR_RULE}."
    name = CALIBRATORS.title(chosen_entry["method"])
    return (
        f"Chosen: {name}, which was specified in advance and needs fewer rows to be confirmed than"
        f" {_ONE_STANDARD_ERROR_RULE}."
    )


def _select_by_one_standard_error(entries: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the candidate that the one-standard-error rule selects [1]_; None if none is better than the identity.

    `entries` are the candidates in the order of complexity.

    References
    ----------
    .. [1] Breiman et al. (1984). Classification and Regression Trees, section 3.4.3.
    """
    gain = next((candidate["difference"] for candidate in entries if candidate["method"] == "identity"), None)
    for candidate in entries:
        difference, se = candidate.get("difference"), candidate.get("se")
        if candidate["method"] == "identity" or difference is None or se is None or gain is None:
            continue
        if difference <= min(se, gain / 2) + LOG_LOSS_TOLERANCE:
            return str(candidate["method"])
    return None


def _format_signed(x: float | None) -> str:
    """Format a change with its sign and four decimals; 0 if it is smaller than these show."""
    if x is None:
        return "–"
    return "0" if abs(x) < 5e-5 else f"{x:+.4f}"


# What the estimated gain belongs to, in words.
_GAIN_SUBJECTS = {
    GAIN_OF_METHOD: "the chosen method",
    GAIN_OF_PROCEDURE: "the whole procedure, because the folds chose different methods",
}


def _describe_outcome(recalibration: Mapping[str, Any]) -> str:
    """Return what was confirmed, or why nothing was.

    >>> _describe_outcome({"confirmed": True, "outcome": "confirmed", "gain_low": -0.1})
    'miscalibration confirmed, gain not confirmed'
    """
    if recalibration.get("confirmed"):
        gain_confirmed = (recalibration.get("gain_low") or 0.0) > 0
        return "confirmed" if gain_confirmed else "miscalibration confirmed, gain not confirmed"
    outcome = recalibration.get("outcome")
    return f"not confirmed, {outcome}" if outcome == INSUFFICIENT_ROWS else outcome or "–"


def recalibration_table(audit: AuditDict) -> TextTable:
    """Return the table of the chosen calibrator, evaluated on rows that were used neither to fit nor to choose it."""
    recalibration = audit.get("recalibration")
    if not recalibration:
        return TextTable("Recalibration", LABEL_AND_TEXT, ())
    chosen, applied = recalibration.get("chosen"), recalibration.get("applied")
    parameters = recalibration.get("summary") if applied == chosen else None
    entries = [
        ("chosen", chosen or "–"),
        ("parameters", parameters or "–"),
        ("outcome", _describe_outcome(recalibration)),
        ("applied", applied or "–"),
        ("log loss before", format_log_loss(recalibration, "before")),
        ("log loss after", format_log_loss(recalibration, "after")),
        *([] if recalibration.get("outcome") == TRAINING_ROWS else _gain_entries(recalibration)),
        *_accuracy_entries(recalibration, audit["data"]),
        *((f"rows used to {name}", format_integer(n)) for name, n in (recalibration.get("rows") or {}).items()),
        ("weight of the uniform distribution mixed in", format_number(recalibration.get("mixing"))),
        ("minimum probability in a logarithm", format_number(recalibration.get("min_prob"))),
    ]
    known_entries = tuple(entry for entry in entries if entry[1] != "–")
    return TextTable("Recalibration", LABEL_AND_TEXT, known_entries)


def _gain_entries(recalibration: AuditDict) -> list[tuple[str, str]]:
    """Return entries on the gain in log loss, its confidence limits and its test."""
    limit = "confidence limit"
    if recalibration.get("alpha") is not None:
        limit = f"{format_percent_in_text(1 - recalibration['alpha'])} confidence limit"
    gain, gain_percent = format_number(recalibration.get("gain")), recalibration.get("gain_percent")
    return [
        ("gain", gain if gain_percent is None else f"{gain} ({format_gain_percent(gain_percent)})"),
        ("gain of", _GAIN_SUBJECTS.get(recalibration.get("gain_of") or "", "–")),
        ("standard error of the gain", format_number(recalibration.get("gain_se"))),
        (f"lower {limit} of the gain", format_number(recalibration.get("gain_low"))),
        (f"upper {limit} of the gain", format_number(recalibration.get("gain_high"))),
        ("p-value of the gain", format_pvalue(recalibration.get("pvalue"))),
        ("rows required to confirm this gain with 80 % power", format_integer(recalibration.get("required_rows"))),
        ("gain detectable with 80 % power", format_number(recalibration.get("detectable_gain"))),
    ]


def _accuracy_entries(recalibration: AuditDict, data: AuditDict) -> list[tuple[str, str]]:
    """Return entries on the accuracy before and after, and on changed classes; a confidence has no predicted class."""
    if data["kind"] == "confidence":
        return [("accuracy, changed classes", "not applicable: a confidence alone has no predicted class")]
    label = accuracy_label(data)
    return [
        (f"{label} before", format_share(recalibration.get("accuracy_before"))),
        (f"{label} after", format_share(recalibration.get("accuracy_after"))),
        (
            "predictions that cross the 0.5 threshold" if is_binary(data) else "rows whose predicted class changes",
            format_integer(recalibration.get("label_flips")),
        ),
    ]
