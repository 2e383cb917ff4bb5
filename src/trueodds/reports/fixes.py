"""What is a fix called, what does it do to the answers, and does it tell more than one number for all rows would?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trueodds.core.results import figure
from trueodds.reports.words import count, is_binary, share

HARDLY = 0.995  # of the log loss of one constant answer: what is not below it tells hardly more than the constant

INSUFFICIENT_ROWS = "too few rows"  # the outcome of a fix that more rows may confirm

_NAMES = {
    "ensemble_temperature": "a mixture of temperatures",
    "bias_corrected_temperature": "a temperature with biases",
    "llo": "a shift and a slope in log odds",
    "mcllo": "a shift and a slope in log odds",
    "beta": "a beta curve",
    "structured": "a linear map of the logits",
    "matrix": "a linear map of the logits",
    "dirichlet": "a linear map of the logits",
    "vector": "a slope and a bias for each class",
    "spline": "a smooth curve",
    "irm": "a monotone curve",
    "centred_isotonic": "a monotone curve",
    "isotonic": "a monotone step curve",
    "venn_abers": "a pair of step curves",
    "histogram": "one value for each bin",
}


def called(method: str) -> str:
    """A method in words, its own name behind them.

    >>> called("irm"), called("temperature")
    ('a monotone curve (irm)', 'temperature')
    """
    words = _NAMES.get(method)
    return method.replace("_", " ") if words is None else f"{words} ({method})"


def named(fix: Mapping[str, Any]) -> str:
    """The chosen fix in words, with its parameters."""
    summary = fix.get("summary") or ""
    name = called(fix["chosen"])
    return f"{name}, {summary}" if summary and summary != fix["chosen"] else name


def log_loss(fix: Mapping[str, Any], when: str) -> str:
    """The log loss `before` or `after` the fix, as the table of scores has it.

    >>> log_loss({"candidates": [0], "log_loss_before": None}, "before"), log_loss({"log_loss_after": 0.5}, "after")
    ('infinite', '0.5')
    """
    loss = fix.get(f"log_loss_{when}")
    return "infinite" if loss is None and fix.get("candidates") else figure(loss)


def gain_lower_bound(fix: Mapping[str, Any]) -> str:
    """The lower end of the gain in words; nothing where it is none.

    >>> gain_lower_bound({"gain_low": 0.05, "gain_low_percent": 12.34}), gain_lower_bound({"gain_low": -0.1})
    ('at least 12.3 %', '')
    """
    low, percent = fix.get("gain_low"), fix.get("gain_low_percent")
    if low is None or low <= 0:
        return ""
    return f"at least {figure(low)} nats per row" if percent is None else f"at least {percent:.3g} %"


def flat(fix: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """What one constant answer would do as well; nothing where the fix tells more than it.

    Of confidences alone the constant is the share of right answers on the held-out rows, else equal probabilities.

    >>> flat({"log_loss_after": 0.6823, "accuracy_before": 0.576}, {"kind": "confidence", "k": 2})
    'saying 57.6 % every time would have log loss 0.6816'
    >>> flat({"log_loss_after": 0.5, "accuracy_before": 0.576}, {"kind": "confidence", "k": 2})
    ''
    """
    after, right = fix.get("log_loss_after"), fix.get("accuracy_before")
    if data["kind"] != "confidence":
        constant, constant_text = math.log(data["k"]), "equal probabilities every time"
    elif right is not None:
        constant, constant_text = _entropy(right), f"saying {share(right)} every time"
    else:
        return ""
    if after is None or after < HARDLY * constant:
        return ""
    return f"{constant_text} would have log loss {figure(round(constant, 4))}"


def _entropy(q: float) -> float:
    return -sum(x * math.log(x) for x in (q, 1 - q) if x > 0)


def side_effects(fix: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """What the fix does to the answers themselves, on the held-out rows; nothing where there are no answers.

    >>> side_effects({"label_flips": 2, "accuracy_before": 0.5, "accuracy_after": 0.5}, {"kind": "classes"})
    'on the held-out rows 2 answers change and accuracy stays 50.0 %'
    """
    if data["kind"] == "confidence" or fix.get("label_flips") is None:
        return ""
    flips = fix["label_flips"]
    text = f"on the held-out rows {count(flips, 'answer')} {'changes' if flips == 1 else 'change'}"
    before, after = fix.get("accuracy_before"), fix.get("accuracy_after")
    if is_binary(data):
        return f"{text} sides of 50 %"
    if before is None or after is None:
        return text
    what = "the share of votes for the answer" if data.get("votes") else "accuracy"
    same = share(before) == share(after)
    return f"{text} and {what} {f'stays {share(before)}' if same else f'goes from {share(before)} to {share(after)}'}"
