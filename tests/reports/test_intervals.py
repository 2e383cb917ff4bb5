"""Are the intervals of an audit ordered as the true errors are, and does a changed interval say so?"""

from __future__ import annotations

import numpy as np
import pytest

import trueodds as to
from tests.reports.example import example, typed
from trueodds.core.results import Estimate, Interval, Verdict
from trueodds.reports.analysis import reconcile_intervals
from trueodds.reports.text import result_tables


def error(lens: str, value: float, low: float, high: float, noise_floor: float = 0.01) -> Estimate:
    return Estimate("ece", lens, value, 900, Interval(low, high, 0.95, "folded-normal"), noise_floor)


def omnibus(lens: str, pvalue: float) -> Verdict:
    return Verdict("omnibus", lens, 1.0, pvalue, 900, "")


REJECTED = [omnibus(lens, 0.001) for lens in ("family", "confidence", "classwise", "canonical")]


def by_lens(errors: list[Estimate], tests: list[Verdict], classes: int) -> dict[str, Estimate]:
    return {estimate.lens: estimate for estimate in reconcile_intervals(errors, tests, classes, 0.05)}


@pytest.mark.parametrize("classes", [3, 7])
def test_the_true_errors_are_ordered_as_the_intervals_are_made(classes: int) -> None:
    # Any predictions p and any true probabilities q: E TV(p, q) ≥ E|p_c − q_c| for the predicted class c, and it is
    # K/2 times the mean over classes of E|p_k − q_k|.
    rng = np.random.default_rng(classes)
    p, q = rng.dirichlet(np.ones(classes), 500), rng.dirichlet(np.full(classes, 0.3), 500)
    distance = to.measure(to.Predictions(q, p), "distce", interval=None).value
    c = p.argmax(axis=1)
    assert distance >= np.abs(p - q)[np.arange(500), c].mean()
    assert distance == pytest.approx(classes / 2 * np.abs(p - q).mean())


def test_a_raised_interval_has_a_method_of_its_own_and_a_note() -> None:
    # The random forest of the README: the estimate .1743 lies below its noise floor and below the confidence error.
    errors = [
        error("confidence", 0.2410, 0.2265, 0.2565),
        error("classwise", 0.0489, 0.0435, 0.0511),  # 10/2 times: .2175 to .2555
        error("canonical", 0.1743, 0.0, 0.1871, noise_floor=0.1763),
    ]
    canonical = by_lens(errors, REJECTED, 10)["canonical"]
    assert canonical.interval == Interval(0.1743, 0.2565, 0.95, "reconciled")
    (note,) = canonical.notes
    assert note.code == "TN269"
    assert "The interval of the canonical error (folded-normal, 0 to 0.1871) is raised" in note.text
    assert note.text.endswith("; its lower limit does not exceed the estimate.")
    assert note.text.count(". ") == 0  # one sentence; the explanation of the code has the reasons
    assert canonical.settings["interval"] == "reconciled"


def test_an_interval_that_is_ordered_already_stays_as_it_is() -> None:
    errors = [
        error("confidence", 0.10, 0.08, 0.12),
        error("classwise", 0.05, 0.04, 0.06),
        error("canonical", 0.20, 0.15, 0.25),
    ]
    assert reconcile_intervals(errors, REJECTED, 3, 0.05) == errors


def test_the_class_errors_count_k_over_two_times() -> None:
    errors = [error("classwise", 0.10, 0.08, 0.12), error("canonical", 0.30, 0.05, 0.35)]
    canonical = by_lens(errors, REJECTED, 5)["canonical"]
    assert canonical.interval is not None
    assert canonical.interval.low == pytest.approx(0.2)  # 5/2 · .08
    assert "does not exceed the estimate" not in canonical.notes[0].text
    assert "noise floor" not in canonical.notes[0].text


def test_an_interval_starts_at_0_beside_a_test_that_does_not_reject_and_says_so() -> None:
    (estimate,) = reconcile_intervals([error("confidence", 0.05, 0.01, 0.08)], [omnibus("confidence", 0.3)], 3, 0.05)
    assert estimate.interval == Interval(0.0, 0.08, 0.95, "reconciled")
    assert "does not reject" in estimate.notes[0].text
    assert "(folded-normal, 0.01 to 0.08)" in estimate.notes[0].text


def test_a_vector_that_is_not_rejected_only_the_upper_limit_is_raised() -> None:
    errors = [error("confidence", 0.10, 0.08, 0.12), error("canonical", 0.09, 0.0, 0.11)]
    tests = [omnibus("confidence", 0.001), omnibus("canonical", 0.2)]
    canonical = by_lens(errors, tests, 3)["canonical"]
    assert canonical.interval == Interval(0.0, 0.12, 0.95, "reconciled")


def test_the_table_of_errors_points_to_the_note_on_a_changed_interval() -> None:
    audit = example()
    assert "TN269" not in result_tables.error_table(typed(audit)).intro
    audit["measures"][4]["notes"] = [{"code": "TN269", "text": "Raised."}]
    assert (
        "The canonical interval was reconciled with the others (TN269)."
        in result_tables.error_table(typed(audit)).intro
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["two classes", "three classes", "clusters", "weights"])
def test_intervals_and_noise_floors_of_an_audit_are_those_of_measure(kind: str) -> None:
    # The Brier score of the same rows had [0.1284, 0.1528] in the audit and [0.1291, 0.1526] from measure.
    n, k = 400, 2 if kind == "two classes" else 3
    rng = np.random.default_rng(2)
    q = rng.dirichlet(np.ones(k), n)
    p = q**2 / (q**2).sum(axis=1, keepdims=True)
    y = (q.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    cluster = rng.integers(0, 80, n) if kind == "clusters" else None
    weight = rng.gamma(2.0, size=n) if kind == "weights" else None
    preds = to.Predictions(y, p, cluster=cluster, weight=weight)
    reported = to.audit(preds, resamples=99, rng=5).to_dict()["measures"]
    for measure in reported:
        measured = to.measure(preds, measure["estimator"], lens=measure["lens"], rng=5)
        assert measure["noise_floor"] == pytest.approx(measured.noise_floor)
        if measure["interval"]["method"] != "reconciled":
            assert measure["interval"] == pytest.approx(measured.interval.to_dict())
    assert len(reported) == (3 if k == 2 else 5)


def test_an_interval_that_would_look_the_same_is_not_changed() -> None:
    # The mean gap is at least .02491, and the interval of the error starts at .02493: both are displayed as .0249.
    errors, gap = [error("positive", 0.1, 0.02493, 0.2133)], Interval(0.02491, 0.15, 0.95, "bca")
    assert reconcile_intervals(errors, [omnibus("positive", 0.3)], 2, 0.05, gap) == errors
    (changed,) = reconcile_intervals(errors, [omnibus("positive", 0.3)], 2, 0.05, Interval(0.0248, 0.15, 0.95, "bca"))
    assert "(folded-normal, 0.0249 to 0.2133) is extended to 0.0248, the lower limit" in changed.notes[0].text
    errors = [error("confidence", 0.1, 0.08123, 0.2), error("canonical", 0.1, 0.08121, 0.2)]
    assert reconcile_intervals(errors, REJECTED, 3, 0.05) == errors
