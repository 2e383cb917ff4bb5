"""The lines of the summary: what each says of an audit, as one field after the other is changed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reports.example import example, typed
from trueodds.reports.text.summary import summary_lines

NOT_ESTABLISHED = {
    "recalibration.outcome": "gain not established",
    "recalibration.gain_low": -0.0005,
    "recalibration.gain_high": 0.0139,
}
NOT_CONFIRMED = {"recalibration.confirmed": False, "recalibration.applied": "identity"}
INFINITE = {
    "recalibration.log_loss_before": None,
    "recalibration.gain_percent": None,
    "recalibration.gain_low_percent": None,
}
# Of confidences that are right in 57.6 % of the rows: H(.576) = .6816, and .995 of it is .6781.
CONSTANT = {"data.kind": "confidence", "data.k": 2, "recalibration.accuracy_before": 0.576}
NOT_REJECTED = {"verdict.rejected": False, "verdict.pvalue": 0.4, "verdict.state": "no evidence"}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The example with other values at some paths, such as tests.1.pvalue."""
    audit = example()
    for path, value in changes.items():
        *parents, name = path.split(".")
        entry: Any = audit
        for key in parents:
            entry = entry[int(key) if isinstance(entry, list) else key]
        entry[name] = value
    return audit


@pytest.mark.parametrize(
    ("label", "changes", "value", "remark", "tone"),
    [
        ("Mean confidence", {}, "71.0 %", "", "plain"),  # 0.7104
        ("Accuracy", {}, "96.1 %", "", "plain"),  # 0.9611
        (
            "Expected calibration error",
            {},
            "0.251",
            "ECE of the confidence; 95 % confidence interval 0.239 to 0.263",
            "plain",
        ),
        (
            "Expected calibration error",
            {"data.clusters": 4, "measures.2.interval.low": 0.0, "measures.2.interval.high": 1.0},
            "0.251",
            "95 % confidence interval uninformative with 4 clusters",
            "plain",
        ),
        ("Miscalibration", {}, "detected", "calibration rejected, family-wise p ≤ 0.001", "bad"),  # may be smaller
        (
            "Miscalibration",
            {"tests.1.pvalue": 0.491},
            "detected in subgroups",
            "the test for the confidence lens alone has p = 0.491",
            "bad",
        ),
        ("Miscalibration", {"tests.1.pvalue": 0.491, "groups": []}, "detected by other tests", "p = 0.491", "bad"),
        ("Miscalibration", NOT_REJECTED, "not detected", "calibration not rejected", "good"),
        ("Miscalibration", NOT_REJECTED | {"verdict.state": "too few rows"}, "not detected", "family-wise", "plain"),
        (
            "Miscalibration",
            NOT_REJECTED | {"verdict.excludes_ideal": ["calibration_slope"]},
            "inconclusive",
            "but the calibration slope interval excludes its ideal value",
            "plain",
        ),
        (
            "Miscalibration",
            NOT_REJECTED | {"among_groups.min_pvalue": 0.06},
            "inconclusive",
            "but the groups could not be tested",
            "plain",
        ),
        (
            "Miscalibration",
            NOT_REJECTED | {"verdict.unexamined_groups": 2},
            "inconclusive",
            "but not all groups were examined",
            "plain",
        ),
        (
            "Miscalibration",
            {"verdict.rejected": None},
            "not tested",
            "no family-wise p below 0.001 is possible",
            "plain",
        ),
        (
            "Miscalibration",
            {"verdict.pvalue": 0.4},
            "detected",
            "by outcomes of predicted probability 0; not by the test, family-wise p = 0.4",
            "bad",
        ),
        (
            "Recalibration",
            {},
            "temperature scaling, T = 0.38",
            "0.4119 before, 0.1578 after: 61.7 % lower, at least 54.2 % with 95 % confidence; confirmed by",
            "good",
        ),
        (
            "Recalibration",
            {},
            None,
            "if the predictions were calibrated; the predicted class changes in no row, accuracy stays 96.3 %",
            "good",
        ),
        # The tests do not reject: 5 % of alpha.
        ("Recalibration", {"recalibration.alpha": 0.0025}, None, "at least 54.2 % with 99.75 % confidence", "good"),
        ("Recalibration", {"recalibration.pvalue": 1.74e-15}, None, "p < 0.0001", "good"),
        (
            "Recalibration",
            {"recalibration.chosen": "irm", "recalibration.map_text": "76 knots for all classes"},
            "isotonic regression of all classes (irm), 76 knots for all classes",
            "",
            "good",
        ),
        (
            "Recalibration",
            INFINITE,
            None,
            "infinite before, 0.1578 after: a gain of at",
            "good",
        ),
        (
            "Recalibration",
            INFINITE | NOT_ESTABLISHED,
            None,
            "90 % CI −0.0005 to 0.0139); miscalibration confirmed by",
            "plain",
        ),
        (
            "Recalibration",
            CONSTANT | {"recalibration.log_loss_after": 0.679},
            "hardly better than a constant",
            "predicting 57.6 % for every row has log loss 0.6816",
            "plain",
        ),
        (
            "Recalibration",
            CONSTANT | {"recalibration.log_loss_after": 0.677},
            "temperature scaling, T = 0.38",
            "",
            "good",
        ),
        (
            "Recalibration",
            NOT_CONFIRMED | {"recalibration.outcome": "too few rows", "recalibration.pvalue": 0.31},
            "too few rows",
            "log loss gain 0.2541 nats per row, p = 0.31 if the predictions were calibrated, not significant; smallest",
            "plain",
        ),
        (
            "Recalibration",
            NOT_CONFIRMED | {"recalibration.outcome": "no gain"},
            "no gain",
            "smallest gain detectable with 80 % power: 0.0402 nats per row",
            "plain",
        ),
        (
            "Recalibration",
            NOT_CONFIRMED | {"recalibration.outcome": "not judged"},
            "not judged",
            "fitted to these",
            "plain",
        ),
        ("Recalibration", {"recalibration": None}, "not attempted", "a tally keeps no rows", "plain"),
        ("Predicted probability 0", {}, "2 outcomes", "evidence against calibration by itself", "bad"),
        (
            "Confidence 0 or 1",
            {"data.kind": "confidence", "data.k": 2},
            "2 answers wrong at 1, or correct at 0",
            "evidence against calibration by itself",
            "bad",
        ),
        ("Miscalibrated groups", {}, "2 of 2 groups", "errors do not differ significantly between groups", "bad"),
        (
            "Miscalibrated groups",
            {"groups.0.status": "within"},
            "1 of 2 groups",
            "worst: site=south, ECE 0.237; none undecided",
            "bad",
        ),
        (
            "Miscalibrated groups",
            {"groups.0.status": "within", "groups.1.status": "undecided"},
            "none of 2",
            "1 undecided, the others within the equivalence margin 0.05",
            "plain",
        ),
        (
            "Miscalibrated groups",
            {"groups.0.status": "undecided", "groups.1.status": "undecided", "among_groups.min_pvalue": 0.06},
            "not tested",
            "too few resamples for 2 groups; see the notes",
            "plain",
        ),
    ],
)
def test_a_line_of_the_summary(label: str, changes: dict[str, Any], value: str | None, remark: str, tone: str) -> None:
    (line,) = (line for line in summary_lines(typed(changed(changes))) if line.label == label)
    assert value in (None, line.value)
    assert remark in line.remark
    assert line.tone == tone
