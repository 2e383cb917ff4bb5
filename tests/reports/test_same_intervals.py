"""Does a number have the same value and interval in an audit, in `measure` and in `by_group`, with the same seed?"""

import numpy as np
import pytest
from scipy.special import expit, softmax

import trueodds as to

OTHER_NAMES = {"observed_to_expected": "o_e"}  # of the estimators that have another name as standard measures
CLUSTER = np.arange(200) % 25


def two_classes(**columns):
    rng = np.random.default_rng(6)
    x = rng.normal(0, 1.5, 200)
    return to.Predictions((rng.random(200) < expit(0.7 * x + 0.2)).astype(int), expit(x), **columns)


def four_classes(**columns):
    rng = np.random.default_rng(4)
    z = rng.normal(0, 1.5, (200, 4))
    y = (softmax(0.7 * z, axis=1).cumsum(axis=1)[:, :-1] <= rng.random((200, 1))).sum(axis=1)
    return to.Predictions(y, softmax(z, axis=1), **columns)


def confidences():
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.3, 1, 200)
    return to.Predictions.from_confidence(confidence, (rng.random(200) < confidence).astype(int))


@pytest.mark.slow
@pytest.mark.parametrize(
    "preds",
    [
        two_classes(),
        two_classes(cluster=CLUSTER),
        two_classes(weight=np.linspace(0.5, 2, 200)),
        four_classes(),
        four_classes(cluster=CLUSTER),
        confidences(),
    ],
    ids=["two classes", "clusters", "weights", "four classes", "four classes in clusters", "confidences"],
)
def test_every_number_of_an_audit_is_that_of_measure_with_the_same_seed(preds) -> None:
    # The ICI of two classes had 199 resamples in an audit and 2,000 in measure: [.0421, .1106] and [.0414, .1118].
    audit = to.audit(preds, resamples=99, rng=5).to_dict()
    entries = [(entry, {"lens": entry["lens"]}) for entry in audit["measures"]]
    entries += [(entry, {}) for entry in audit["standard_measures"] if entry["name"] != "auc"]
    for entry, lens in entries:
        name = entry.get("estimator") or entry["name"]
        measured = to.measure(preds, OTHER_NAMES.get(name, name), rng=5, **lens).to_dict()
        assert entry["value"] == measured["value"]
        assert entry.get("noise_floor", measured["noise_floor"]) == measured["noise_floor"]
        if entry["interval"] is not None and entry["interval"]["method"] == "reconciled":  # with the tests of the audit
            assert entry["interval"]["high"] == measured["interval"]["high"]
        else:
            assert entry["interval"] == measured["interval"]


@pytest.mark.slow
def test_every_number_of_a_group_is_that_of_by_group_with_the_same_seed() -> None:
    preds = two_classes(group={"site": np.where(np.arange(200) < 80, "a", "b")})
    groups = to.audit(preds, resamples=99, rng=5).to_dict()["groups"]
    for group, own in zip(groups, to.by_group(preds, "ece", rng=5).groups, strict=True):
        assert (group["error"], group["interval"]) == (own.estimate.value, own.estimate.interval.to_dict())
    for name in ("o_e", "calibration_slope"):
        for group, own in zip(groups, to.by_group(preds, name, rng=5).groups, strict=True):
            (entry,) = (
                entry for entry in group["standard_measures"] if OTHER_NAMES.get(entry["name"], entry["name"]) == name
            )
            assert (entry["value"], entry["interval"]) == (own.estimate.value, own.estimate.interval.to_dict())
